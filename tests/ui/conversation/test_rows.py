"""The whole view at three sizes, compared row by row with what was looked at and found good.

Only text is compared: colours and escape sequences belong to the version of Textual. After a wanted change,
delete the file in `rows/`, run the test once and look at what it wrote.
"""

from pathlib import Path

import pytest

from agent.core.events import (
    ApprovalRequest,
    CheckFinished,
    Event,
    Notice,
    PrefixBroken,
    ReasoningDelta,
    Retry,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
)
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from tests.ui.conversation.rig import shown

HERE = Path(__file__).parent
REPLY = (HERE / "reply.md").read_text(encoding="utf-8")
BEFORE = "def taken(spans):\n    last = spans[0]\n    return [last]\n\n\ndef free(spans):\n    return []\n"
AFTER = BEFORE.replace("return [last]", "return merged(spans)").replace("return []", "return gaps(spans)")


def call(number: int, tool: str, **arguments: str) -> ToolStarted:
    return ToolStarted(call_id=str(number), tool=tool, arguments=arguments)


def ended(number: int, text: str, outcome: str = "ok", diff: FileDiff | None = None) -> ToolFinished:
    return ToolFinished(
        call_id=str(number),
        tool="x",
        outcome="denied" if outcome == "denied" else "ok",
        text=text,
        seconds=0.3 * number,
        diffs=(diff,) if diff else (),
    )


WORK: list[Event] = [
    ReasoningDelta(text="The end of a span is wrong. " * 30),
    call(1, "read", path="booking.py"),
    ended(1, "line\n" * 46),
    call(2, "search", pattern="taken\\(", path="src"),
    ended(2, "a\nb"),
    call(3, "edit", path="booking.py", old="x"),
    ended(3, "edited", diff=FileDiff("booking.py", BEFORE, AFTER)),
    CheckFinished(command="python3 -m unittest -q", passed=False, text="FAIL: test_x\n1 != 2", seconds=0.2),
    Retry(cause="the server did not answer", attempt=2),
    PrefixBroken(cause="a reply was dropped"),
    Notice(text="the profile names no draft model", level="warning"),
    call(4, "shell", command="rm -rf build"),
    ended(4, "Denied: keep the build.", "denied"),
    call(5, "shell", command="python -m pytest -q"),
    *(ToolOutput(call_id="5", text=f"tests/test_{number}.py ....\n") for number in range(12)),
    call(6, "shell", command="git push --force-with-lease"),
    ApprovalRequest(
        request_id="r", call_id="6", tool="shell", arguments={"command": "git push"}, reason="asks"
    ),
]
STATS = StepStats(decoded_tokens=812, decode_seconds=5.9, prompt_seconds=1, drafted=1000, accepted=630)
ANSWER: list[Event] = [
    *(TextDelta(text=REPLY[at : at + 5]) for at in range(0, len(REPLY), 5)),
    TurnFinished(reason="done", answer=REPLY.strip(), detail="", steps=4, stats=STATS),
]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(("name", "events"), [("work", WORK), ("answer", ANSWER)], ids=["work", "answer"])
async def test_rows_are_the_ones_that_were_looked_at(name: str, events: list[Event], size: tuple[int, int]):
    path = HERE / "rows" / f"{name}-{size[0]}x{size[1]}.txt"
    async with shown(events, size=size) as (view, _):
        rows = view.plain_text() + "\n"
    if not path.exists():
        path.write_text(rows, encoding="utf-8")
        pytest.fail(f"{path} was not there and is now; look at it")
    assert rows == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("theme", ["agent-dark", "agent-light", "ansi-dark", "textual-light"])
async def test_every_theme_has_a_look(theme: str):
    async with shown(ANSWER, theme=theme) as (view, _):
        styles = {segment.style for y in range(20) for segment in view.render_line(y)}
        assert len(styles) > 3
