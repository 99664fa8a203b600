"""What the terminal interface is given."""

from pathlib import Path

import pytest

from agent.app.front import FrontRequest, Looks, options_for, read_looks, settings_for
from agent.session.store import SessionStore
from agent.ui.options import Opening


def looks_of(tmp_path: Path, text: str, **variables: str) -> Looks:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return read_looks({"AGENT_CONFIG_HOME": str(tmp_path), **variables})


def test_the_looks_come_from_the_persons_file(tmp_path: Path):
    text = '[ui]\ntheme = "light"\nmouse = false\nnotify = "desktop"\n[ui.keys]\nsend = "ctrl+s"\n'
    assert looks_of(tmp_path, text) == Looks(
        theme="light", mouse=False, notify="desktop", keys={"send": "ctrl+s"}
    )


def test_a_variable_wins_over_the_file(tmp_path: Path):
    looks = looks_of(tmp_path, '[ui]\ntheme = "light"\n', AGENT_UI_THEME="dark", AGENT_UI_MOUSE="off")
    assert (looks.theme, looks.mouse) == ("dark", False)


def test_a_broken_file_counts_as_none_until_the_session_reports_it(tmp_path: Path):
    assert looks_of(tmp_path, "[ui\n") == Looks()


def test_wrong_values_count_as_not_said(tmp_path: Path):
    assert looks_of(tmp_path, '[ui]\nnotify = 5\nkeys = "x"\nlong_turn_seconds = "y"\n') == Looks()


async def test_files_of_the_folder_are_listed_without_a_session(tmp_path: Path):
    (tmp_path / "a.py").write_text("", encoding="utf-8")
    options = options_for(FrontRequest(workspace=tmp_path), Looks())
    assert await options.services["files"]({}) == ["a.py"]


def test_a_session_goes_on_with_the_profile_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(tmp_path / "config"))
    with SessionStore.create(tmp_path / "state", tmp_path, profile="embedded-small", kind="chat") as store:
        session = store.id
    assert settings_for(tmp_path, Opening(resume=session)).settings.profile == "embedded-small"
    assert settings_for(tmp_path, Opening(resume=session, profile="remote")).settings.profile == "remote"
    assert settings_for(tmp_path, Opening()).settings.profile == "embedded"
