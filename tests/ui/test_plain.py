"""Line mode."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.core.events import (
    ApprovalRequest,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent.core.handle import Answer
from agent.core.stats import StepStats
from agent.ui.options import Opening, UiOptions
from agent.ui.plain import run_plain
from tests.fakes.fake_handle import FakeHandle

DONE = TurnFinished(
    reason="done",
    answer="ok",
    detail="",
    steps=1,
    stats=StepStats(decoded_tokens=100, decode_seconds=2.0, drafted=80, accepted=60),
)


class Talking(FakeHandle):
    """Answers each prompt with the same events."""

    def __init__(self, *events: Event) -> None:
        super().__init__()
        self._told = events

    def prompt(self, text: str) -> None:
        self.prompts.append(text)
        self.emit(*self._told)


async def run(handle: FakeHandle, text: str, prompt: str = "") -> str:
    async def open_session(_: Opening) -> FakeHandle:
        return handle

    output = io.StringIO()
    options = UiOptions(workspace=Path("/home/me"), open_session=open_session, prompt=prompt)
    assert await run_plain(options, io.StringIO(text), output) == 0
    return output.getvalue()


async def test_a_turn_is_lines_and_its_figures():
    handle = Talking(
        TextDelta(text="first li"),
        TextDelta(text="ne\nsecond"),
        ToolStarted(call_id="1", tool="read", arguments={"path": "a.py"}),
        ToolFinished(call_id="1", tool="read", outcome="ok", text="x = 1", seconds=0.1),
        DONE,
    )
    text = await run(handle, "hello\n")
    assert handle.prompts == ["hello"]
    assert "first line\nsecond\n* read path: a.py\n  ok after 0.1 s\n  x = 1\n" in text
    assert "(done, 50.0 tok/s, accepted 75 %, 2.5 a pass)" in text


async def test_that_a_call_is_being_written_is_said_once_before_it_runs():
    handle = Talking(
        ToolCallDelta(text='{"tool": '),
        ToolCallDelta(text='"read"}'),
        ToolStarted(call_id="1", tool="read", arguments={"path": "a.py"}),
        ToolFinished(call_id="1", tool="read", outcome="ok", text="x = 1", seconds=0.1),
        ToolCallDelta(text="{"),
        DONE,
    )
    text = await run(handle, "hello\n")
    assert "(writing a call)\n* read path: a.py\n  ok after 0.1 s\n  x = 1\n(writing a call)\n" in text
    assert text.count("(writing a call)") == 2


async def test_the_cursor_is_never_moved():
    text = await run(Talking(TextDelta(text="a\x1b[2Jb\r"), ReasoningDelta(text="hm"), DONE), "hello\n")
    assert not any(character in text for character in "\x1b\r\b")


async def test_the_end_of_the_input_ends_the_session():
    handle = FakeHandle()
    await run(handle, "")
    assert handle.is_closed


async def test_a_command_is_run_and_an_unknown_one_is_said():
    handle = FakeHandle(services={"diff": "--- a\n+++ b"})
    text = await run(handle, "/diff\n/nonsense-x\n")
    assert "--- a" in text
    assert "there is no command" in text


async def test_output_of_a_persons_own_command_is_there_once_and_whole():
    output = "\n".join(f"row {number}" for number in range(30))

    class Running(FakeHandle):
        async def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
            for call_id in ("user-1", "1"):
                self.emit(ToolFinished(call_id=call_id, tool="shell", outcome="ok", text=output, seconds=0.0))
            return await super().command(name, arguments)

    text = await run(Running(services={"shell": output}), "!seq 30\n")
    assert text.count("row 29") == 1
    assert text.count("row 11\n") == 2
    assert text.count("… 18 more lines") == 1


async def test_a_prompt_of_the_command_line_comes_before_the_input():
    handle = Talking(DONE)
    await run(handle, "and this\n", prompt="first this")
    assert handle.prompts == ["first this", "and this"]


async def test_quit_ends_before_the_input_does():
    handle = Talking(DONE)
    await run(handle, "/quit\nnever sent\n")
    assert handle.prompts == []


async def test_a_question_that_nobody_can_answer_is_denied():
    request = ApprovalRequest(request_id="r", call_id="c", tool="shell", arguments={}, reason="why")
    handle = Talking(request, DONE)
    text = await run(handle, "hello\n")
    assert "May I run this?" in text
    assert handle.answers in ([("r", Answer(kind="deny", reason="nobody is there to ask"))], [])
