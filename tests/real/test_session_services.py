"""What a person does inside of a session, with a real server: a measurement, and an image that stays out."""

from pathlib import Path

import pytest

from agent.app.interactive import open_session
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
