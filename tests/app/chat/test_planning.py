"""What the model is told about plan mode, and when."""

from pathlib import Path

from tests.app.talk import messages_of, talking
from tests.conftest import StartServer


async def test_a_plan_is_asked_for_in_plan_mode_and_kept_up_after_it(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("- [ ] a\n- [ ] b", "- [x] a", "- [x] b")
    async with talking(work, server, mode="plan") as talk:
        await talk.turn("Make a page")
        talk.session.set_mode("auto")
        await talk.turn("Go")
        await talk.turn("On")
    told = [message["content"] for message in messages_of(server)[-1] if message["role"] == "user"]
    assert "as a checklist: - [ ] step.)\n\nMake a page" in told[0]
    assert told[1] == "(Plan mode is over. When a step is done, write it again as - [x] step.)\n\nGo"
    assert told[2] == "On"
    assert [event.text for event in talk.of("user_message")] == ["Make a page", "Go", "On"]
