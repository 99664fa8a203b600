"""Formatters and checks after an edit in whole sessions: what the model, the person and undo see of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.app.talk import messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call

UPPER = {"glob": "*.txt", "format": "sed -i s/two/TWO/ {file}"}
NO_BAD = {"glob": "*.txt", "check": "! grep -n bad {file} /dev/null"}


@pytest.fixture
def place(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one file, whose person has a home folder without anything in it."""
    monkeypatch.setenv("HOME", str(work.parent / "home"))
    (work / ".git").mkdir()
    (work / "a.txt").write_text("one\n")
    return work


def results(server: Any) -> list[str]:
    """What the model was told by tools."""
    return [message["content"] for message in messages_of(server)[-1] if message["role"] == "tool"]


async def test_formatted_file_is_told_shown_and_can_be_edited_on(scripted_server: StartServer, place: Path):
    server = scripted_server(
        call("read", path="a.txt"),
        call("edit", path="a.txt", old="one", new="one\ntwo"),
        call("edit", path="a.txt", old="TWO", new="three"),
        "Done.",
    )
    async with talking(place, server, after_edit=[UPPER], mode="accept-edits") as talk:
        await talk.turn("Edit")
        finished = talk.of("tool_finished")
    assert [event.outcome for event in finished] == ["ok", "ok", "ok"]
    assert finished[1].diffs[0].after == "one\nTWO\n"
    told = results(server)[1].splitlines()
    assert told[1:] == ["`sed -i s/two/TWO/` then formatted a.txt: line 2 is laid out differently."]
    assert (place / "a.txt").read_text() == "one\nthree\n"


async def test_edit_that_nothing_has_to_be_said_of_costs_no_token(scripted_server: StartServer, place: Path):
    edit = (call("read", path="a.txt"), call("edit", path="a.txt", old="one", new="fine"), "Done.")
    plain, watched = scripted_server(*edit), scripted_server(*edit)
    async with talking(place, plain, mode="accept-edits") as talk:
        await talk.turn("Edit")
    (place / "a.txt").write_text("one\n")
    async with talking(place, watched, after_edit=[UPPER, NO_BAD], mode="accept-edits") as talk:
        await talk.turn("Edit")
    assert results(plain) == results(watched)
    assert plain.chats[0].body["tools"] == watched.chats[0].body["tools"]


async def test_undo_takes_back_edit_and_formatting_together(scripted_server: StartServer, place: Path):
    server = scripted_server(
        call("read", path="a.txt"), call("edit", path="a.txt", old="one", new="two"), "Done."
    )
    async with talking(place, server, after_edit=[UPPER], mode="accept-edits") as talk:
        await talk.turn("Edit")
        assert (place / "a.txt").read_text() == "TWO\n"
        await talk.session.command("undo", {})
    assert (place / "a.txt").read_text() == "one\n"


async def test_only_new_findings_are_told_and_no_more_than_eight(scripted_server: StartServer, place: Path):
    (place / "a.txt").write_text("bad from before\n")
    many = "\n".join(f"bad {number}" for number in range(20))
    server = scripted_server(
        call("read", path="a.txt"), call("edit", path="a.txt", old="before", new=f"before\n{many}"), "Done."
    )
    async with talking(place, server, after_edit=[NO_BAD], mode="accept-edits") as talk:
        await talk.turn("Edit")
    told = results(server)[1].splitlines()
    assert told[1].startswith("New problems, says")
    assert told[2] == "a.txt:2:bad 0"
    assert told[-1] == "(12 more)"
    assert len(told) == 11


async def test_new_file_is_formatted_and_checked(scripted_server: StartServer, place: Path):
    server = scripted_server(call("write", path="b.txt", content="two\nbad\n"), "Done.")
    async with talking(place, server, after_edit=[UPPER, NO_BAD], mode="accept-edits") as talk:
        await talk.turn("Write")
        (diff,) = talk.of("tool_finished")[0].diffs
    assert (diff.before, diff.after) == (None, "TWO\nbad\n")
    assert results(server)[0].endswith("b.txt:2:bad")


async def test_formatter_that_takes_the_edit_back_is_told(scripted_server: StartServer, place: Path):
    undo = {"glob": "*.txt", "format": "echo one > {file}"}
    server = scripted_server(
        call("read", path="a.txt"), call("edit", path="a.txt", old="one", new="one "), "Done."
    )
    async with talking(place, server, after_edit=[undo], mode="accept-edits") as talk:
        await talk.turn("Edit")
    assert "it reads as before this edit again" in results(server)[1]


async def test_edit_that_was_made_is_told_when_the_formatter_is_cancelled(
    scripted_server: StartServer, place: Path
):
    hang = {"glob": "*.txt", "format": "echo x >> {file}; touch begun; sleep 60", "seconds": 60}
    server = scripted_server(
        call("read", path="a.txt"), call("edit", path="a.txt", old="one", new="two"), "Never said."
    )
    async with talking(place, server, after_edit=[hang], mode="accept-edits") as talk:
        talk.session.prompt("Edit")
        await talk.until("tool_started", 2)
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
    assert (place / "a.txt").read_text() in ("one\n", "two\n")


async def test_formatter_and_hook_see_the_edit_one_after_the_other(scripted_server: StartServer, place: Path):
    hook = {"command": """grep -q TWO a.txt && echo '{"feedback": "seen"}'""", "tools": ["edit"]}
    server = scripted_server(
        call("read", path="a.txt"), call("edit", path="a.txt", old="one", new="two"), "Done."
    )
    options: dict[str, Any] = {"after_edit": [UPPER], "hooks": {"after_tool": [hook]}, "mode": "accept-edits"}
    async with talking(place, server, **options) as talk:
        await talk.turn("Edit")
    assert "A hook says: seen" in results(server)[1]


async def test_link_stays_a_link(scripted_server: StartServer, place: Path):
    (place / "link.txt").symlink_to("a.txt")
    replace = {"glob": "*.txt", "format": "sed -i s/two/TWO/ {file}"}
    server = scripted_server(
        call("read", path="link.txt"), call("edit", path="link.txt", old="one", new="two"), "Done."
    )
    async with talking(place, server, after_edit=[replace], mode="accept-edits") as talk:
        await talk.turn("Edit")
    assert (place / "link.txt").is_symlink()
    assert (place / "a.txt").read_text() == "TWO\n"


async def test_nothing_runs_where_an_edit_is_refused(scripted_server: StartServer, place: Path):
    step = {"glob": "*.txt", "format": "touch ran; : {file}"}
    server = scripted_server(call("edit", path="a.txt", old="nothing like it", new="x"), "Done.")
    async with talking(place, server, after_edit=[step], mode="accept-edits") as talk:
        await talk.turn("Edit")
    assert not (place / "ran").exists()
