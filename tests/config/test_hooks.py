"""The hooks of the settings: their form, and who may set them."""

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


def test_hooks_of_the_person_and_a_trusted_project_add_up(tmp_path: Path, environment: dict[str, str]):
    write(tmp_path / "config/config.toml", '[hooks]\nafter_tool = ["a"]\n')
    content = write(
        tmp_path / "p/.agent/config.toml", '[hooks]\nafter_tool = [{command = "b", tools = ["edit"]}]\n'
    )
    loaded = load_settings(tmp_path / "p", environment, {})
    assert loaded.settings.hooks.after_tool == ("a",)
    assert "not trusted" in loaded.notices[0]
    TrustStore.of(environment).trust(tmp_path / "p", content)
    loaded = load_settings(tmp_path / "p", environment, {})
    assert loaded.settings.hooks.after_tool == ("a", {"command": "b", "tools": ["edit"]})


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('{tools = ["edit"]}', "command"),
        ('""', "command"),
        ('{command = "a", tool = "edit"}', "'tool'"),
        ('{command = "a", tools = "edit"}', "list of names"),
        ('{command = "a", seconds = 0}', "above 0"),
        ('{command = "a", seconds = true}', "above 0"),
        ("7", "hooks.before_tool needs"),
    ],
)
def test_wrong_hook_is_said_with_its_place(
    tmp_path: Path, environment: dict[str, str], entry: str, problem: str
):
    write(tmp_path / "config/config.toml", f"[hooks]\nbefore_tool = [{entry}]\n")
    with pytest.raises(UsageError, match=problem) as caught:
        load_settings(None, environment, {})
    assert "config.toml:2" in caught.value.message


def test_hook_may_come_from_the_environment(environment: dict[str, str]):
    loaded = load_settings(None, {**environment, "AGENT_HOOKS_BEFORE_FINISH": "make test"}, {})
    assert loaded.settings.hooks.before_finish == ("make test",)
