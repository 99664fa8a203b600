"""What the commands in a skill or custom command print is in what the model reads, under the rules."""

import asyncio
from pathlib import Path

import pytest

from agent.core.handle import Answer, AnswerKind
from tests.app.talk import talking
from tests.conftest import StartServer


@pytest.fixture
def place(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, and a person with a command of their own, `look`."""
    monkeypatch.setenv("HOME", str(work.parent / "home"))
    (work / ".git").mkdir()
    return work


def give(place: Path, body: str) -> None:
    file = place.parent / "home/.claude/commands/look.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(body, "utf-8")


async def test_what_a_command_prints_stands_in_the_message_and_is_shown_as_a_call(
    scripted_server: StartServer, place: Path
):
    give(place, "Here: !`echo hello; echo $1`\nGo on.")
    async with talking(place, scripted_server()) as talk:
        text = await talk.session.command("expand", {"name": "look", "arguments": "'a b'"})
        assert "prints:\n```\nhello\na b\n" in text
        assert text.endswith("\nGo on.")
        finished = await talk.until("tool_finished")
        assert (finished.tool, finished.outcome) == ("shell", "ok")


async def test_a_command_that_no_rule_allows_waits_for_a_yes(scripted_server: StartServer, place: Path):
    give(place, "Made: !`touch made && echo done`")
    async with talking(place, scripted_server()) as talk:
        answers: list[tuple[AnswerKind, bool]] = [("deny", False), ("once", True)]
        for kind, seen in answers:
            asked = len(talk.of("approval_request")) + 1
            expanding = asyncio.ensure_future(talk.session.command("expand", {"name": "look"}))
            request = await talk.until("approval_request", asked)
            talk.session.answer(request.request_id, Answer(kind=kind))
            text = await expanding
            assert (place / "made").exists() is seen
            assert ("prints:" in text) is seen


async def test_nothing_in_a_command_of_a_stranger_is_run(scripted_server: StartServer, place: Path):
    file = place / ".claude/commands/strange.md"
    file.parent.mkdir(parents=True)
    file.write_text("See !`echo hello`", "utf-8")
    async with talking(place, scripted_server()) as talk:
        text = await talk.session.command("expand", {"name": "strange"})
        assert text.endswith("```\nSee `echo hello`\n```")
        assert talk.of("tool_started") == []
