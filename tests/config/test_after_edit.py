"""`[[after_edit]]` in the settings: its form, and who may set it."""

from pathlib import Path

import pytest

from agent.config.load import load_settings
from agent.config.trust import TrustStore
from agent.core.errors import UsageError


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {f"AGENT_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "STATE", "DATA")}


def write(path: Path, text: str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return text.encode()


def test_entries_of_the_person_and_a_trusted_project_add_up(tmp_path: Path, environment: dict[str, str]):
    write(tmp_path / "config/config.toml", 'after_edit = ["ruff"]\n')
    content = write(
        tmp_path / "p/.agent/config.toml", '[[after_edit]]\nglob = "*.c"\nformat = "clang-format -i {file}"\n'
    )
    loaded = load_settings(tmp_path / "p", environment, {})
    assert loaded.settings.after_edit == ("ruff",)
    assert "after_edit" in loaded.notices[0]
    assert "not trusted" in loaded.notices[0]
    TrustStore.of(environment).trust(tmp_path / "p", content)
    loaded = load_settings(tmp_path / "p", environment, {})
    assert loaded.settings.after_edit == (
        "ruff",
        {"glob": "*.c", "format": "clang-format -i {file}"},
    )


def test_project_cannot_switch_on_what_the_person_has_switched_off(
    tmp_path: Path, environment: dict[str, str]
):
    write(tmp_path / "config/config.toml", "project_formatters = false\n")
    write(tmp_path / "p/.agent/config.toml", "project_formatters = true\n")
    assert load_settings(tmp_path / "p", environment, {}).settings.project_formatters is False


def test_project_may_switch_its_formatters_off(tmp_path: Path, environment: dict[str, str]):
    write(tmp_path / "p/.agent/config.toml", "project_formatters = false\n")
    loaded = load_settings(tmp_path / "p", environment, {})
    assert loaded.settings.project_formatters is False
    assert loaded.notices == ()


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('use = "black"', "others need glob"),
        ('format = "x {file}"', "glob"),
        ('glob = "*.py"', "format or a check"),
        ('glob = []\nuse = "ruff"', "list of texts"),
        ('glob = "*.py"\nformat = "black ."', "only the file that was edited"),
        ('glob = "*.py"\nformat = "black \'{file}\'"', "without quotes"),
        ('glob = "*.py"\ncheck = 3', "as a text"),
        ('use = "ruff"\nseconds = 0', "above 0"),
        ('use = "ruff"\ntimeout = 3', "'timeout'"),
    ],
)
def test_wrong_entry_is_said_with_its_place(
    tmp_path: Path, environment: dict[str, str], entry: str, problem: str
):
    write(tmp_path / "config/config.toml", f"[[after_edit]]\n{entry}\n")
    with pytest.raises(UsageError, match=problem) as caught:
        load_settings(None, environment, {})
    assert "config.toml:1: after_edit needs" in caught.value.message.replace("knows", "needs")


def test_names_may_come_from_the_environment(environment: dict[str, str]):
    loaded = load_settings(None, {**environment, "AGENT_AFTER_EDIT": "ruff, gofmt"}, {})
    assert loaded.settings.after_edit == ("ruff", "gofmt")
