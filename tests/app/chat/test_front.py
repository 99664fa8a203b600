"""What the terminal interface is given."""

from collections.abc import Awaitable
from pathlib import Path

import pytest

from agent.app.chat.front import (
    FrontRequest,
    Looks,
    options_for,
    read_looks,
    resume_line,
    run_front,
    settings_for,
)
from agent.app.setup.first_run import FirstRun
from agent.core.errors import UsageError
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


@pytest.mark.parametrize("name", ["20990101-000000-000-aaaaaa", "last"])
def test_a_session_that_is_not_there_is_told_before_the_interface_opens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(UsageError, match=r"no (earlier )?session"):
        run_front(FrontRequest(workspace=tmp_path, resume=name))


def test_a_session_that_is_open_elsewhere_is_told_before_the_interface_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with (
        SessionStore.create(tmp_path / "state", tmp_path, profile="embedded", kind="chat") as store,
        pytest.raises(UsageError, match="is open in another program"),
    ):
        run_front(FrontRequest(workspace=tmp_path, resume=store.id))


def resumable(tmp_path: Path, name: str, present: str = "") -> Awaitable[str]:
    services = options_for(FrontRequest(workspace=tmp_path), Looks()).services
    return services["resumable"]({"name": name, "present": present})


async def test_what_is_to_be_resumed_is_looked_up_by_the_end_of_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with SessionStore.create(tmp_path / "state", tmp_path, kind="chat") as store:
        session = store.id
    assert await resumable(tmp_path, session[-6:]) == session


async def test_a_mistyped_session_is_told_with_the_one_that_may_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with SessionStore.create(tmp_path / "state", tmp_path, kind="chat") as store:
        session = store.id
    for typed in (session[:-1] + "-", session[-6:-1] + "-"):
        with pytest.raises(UsageError, match="no session") as caught:
            await resumable(tmp_path, typed)
        assert f"did you mean {session}?" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        await resumable(tmp_path, "nonsense")
    assert "did you mean" not in caught.value.hint


async def test_a_session_that_is_open_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with SessionStore.create(tmp_path / "state", tmp_path, kind="chat") as store:
        with pytest.raises(UsageError, match="is the one that is open"):
            await resumable(tmp_path, store.id, store.id)
        with pytest.raises(UsageError, match="is open in another program"):
            await resumable(tmp_path, store.id, "20990101-000000-000-aaaaaa")


async def test_a_profile_can_be_chosen_before_there_is_a_session(tmp_path: Path):
    services = options_for(FrontRequest(workspace=tmp_path), Looks()).services
    assert "embedded-small" in [row.name for row in await services["profiles"]({})]
    assert await services["profiles"]({"name": "embedded-small"}) == []
    with pytest.raises(UsageError, match="embeded-small"):
        await services["profiles"]({"name": "embeded-small"})


async def test_what_is_missing_is_that_of_the_profile_that_a_session_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AGENT_DATA_HOME", str(tmp_path / "data"))
    with SessionStore.create(tmp_path / "state", tmp_path, profile="remote", kind="chat") as store:
        session = store.id
    setup = FirstRun(tmp_path)
    assert await setup.missing(Opening())
    assert await setup.missing(Opening(resume=session)) == []


def test_only_a_session_that_was_kept_is_named_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with SessionStore.create(tmp_path / "state", tmp_path, profile="remote", kind="chat") as store:
        session = store.id
    assert resume_line(tmp_path, session) == f"agent --resume {session}"
    assert resume_line(tmp_path, "20990101-000000-000-aaaaaa") == resume_line(tmp_path, "") == ""


@pytest.mark.parametrize(
    ("name", "start"), [("", "# A session"), ("talk.html", "<!doctype"), ("x.json", "{")]
)
async def test_an_export_has_the_form_of_its_ending_and_no_key(
    name: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    with SessionStore.create(tmp_path / "state", tmp_path, kind="chat") as store:
        store.append({"type": "user_message", "text": "use sk-0123456789abcdefghij for it"})
    export = options_for(FrontRequest(workspace=tmp_path), Looks()).services["export"]
    told = await export({"path": name, "session": store.id})
    path = tmp_path / (name or f"session-{store.id}.md")
    text = path.read_text(encoding="utf-8")
    assert told == f"Written to {path}."
    assert text.startswith(start)
    assert "for it" in text
    assert "sk-0123" not in text
    with pytest.raises(UsageError, match="exists; name another file"):
        await export({"path": path.name, "session": store.id})
    with pytest.raises(UsageError, match=r"not written as \.pdf"):
        await export({"path": "talk.pdf", "session": store.id})
    with pytest.raises(UsageError, match="there is no folder"):
        await export({"path": "slip/talk.md", "session": store.id})
    assert not (tmp_path / "slip").exists()
    assert not (tmp_path / "talk.pdf").exists()
