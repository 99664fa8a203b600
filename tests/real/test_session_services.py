"""What a person does inside of a session, with a real server: a measurement, an image, a question beside."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.app.chat.interactive import open_session
from agent.core.events import Prefill, ToolFinished
from agent.core.messages import AssistantMessage, UserMessage
from tests.real.test_conversation import next_of, settings

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


async def test_a_measurement_leaves_the_server_to_the_conversation_and_an_image_stays_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    loaded = settings(tmp_path, monkeypatch)
    work = tmp_path / "work"
    work.mkdir()
    (work / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    session = await open_session(work, loaded=loaded)
    events = session.events()
    try:
        run = await session.command("bench", {"options": "--limit 1 --max-tokens 8"})
        before = (await session.command("server", {})).pid
        blind = await session.command("blindness", {})
        session.prompt("what is on @shot.png ?")
        notices = [await next_of(events, "notice")]
        while blind not in getattr(notices[-1], "text", ""):
            notices.append(await next_of(events, "notice", "turn_finished"))
            assert notices[-1].type == "notice", notices
        await next_of(events, "tool_call_delta", "text_delta")
        session.cancel()
        await next_of(events, "turn_finished")
        after = (await session.command("server", {})).pid
    finally:
        await session.close()
    assert run.outcome == "ok"
    assert float(run.text.splitlines()[1].split()[1].replace(",", "")) > 0
    assert blind == "its server says that the model cannot see images"
    assert before == after


async def test_a_question_beside_the_work_finds_the_prompt_cached_and_so_does_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    loaded = settings(tmp_path, monkeypatch)
    limits = loaded.settings.limits.model_copy(update={"max_steps": 1, "reply_tokens": 48})
    loaded = replace(loaded, settings=loaded.settings.model_copy(update={"limits": limits}))
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("The lamp is green.\n" * 40, encoding="utf-8")
    session = await open_session(work, loaded=loaded)
    events = session.events()
    try:
        session.prompt("What is in notes.txt?")
        await next_of(events, "turn_finished")
        talk = session._live.record.conversation
        talk.add(UserMessage("The lamp is green. " * 20))
        talk.add(AssistantMessage("I see."))
        await session.command("btw", {"question": "What colour has the lamp?"})
        first = await next_of(events, "prefill")
        answer = await next_of(events, "tool_finished")
        session.prompt("Go on.")
        second = await next_of(events, "prefill")
        session.cancel()
    finally:
        await session.close()
    assert isinstance(first, Prefill)
    assert isinstance(second, Prefill)
    assert isinstance(answer, ToolFinished)
    assert (answer.tool, answer.outcome) == ("btw", "ok")
    assert answer.text
    assert first.cached > 300
    assert second.total - second.cached < 40
