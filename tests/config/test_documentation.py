"""docs/configuration.md lists the settings as they are."""

import re
from pathlib import Path

import pytest

from agent.config.model import SettingInfo, all_settings, default_settings, value_of
from agent.config.text import show_value

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
ROW = re.compile(r"^\| `(?P<key>[a-z_.]+)` \| (?P<default>.+?) \| (?P<meaning>.+) \|$", re.MULTILINE)
ROWS = {row["key"]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_the_page_has_exactly_the_settings() -> None:
    assert list(ROWS) == [info.key for info in all_settings()]


@pytest.mark.parametrize("key", [info.key for info in all_settings() if info.key != "models.folder"])
def test_the_page_gives_the_real_default(key: str) -> None:
    assert ROWS[key]["default"] == f"`{show_value(value_of(default_settings(Path()), key))}`"


@pytest.mark.parametrize("info", list(all_settings()), ids=lambda info: info.key)
def test_the_page_and_the_program_describe_a_setting_alike(info: SettingInfo) -> None:
    beginning = re.split("[,;]", ROWS[info.key]["meaning"])[0].replace("`", "")
    assert info.description.replace("`", "").startswith(beginning)
