"""Signs of life while a run says nothing, by a clock that the test turns."""

import io

import pytest

from agent.core.events import (
    Event,
    Notice,
    Prefill,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolStarted,
)
from agent.core.stats import StepStats
from agent.headless.text import TextFront

READING = Prefill(total=403, cached=0, processed=180)


class Place:
    """A front, and the time."""

    def __init__(self, *, terminal: bool) -> None:
        self.now = 0.0
        self.progress = io.StringIO()
        self.front = TextFront(self.progress, io.StringIO(), terminal=terminal, clock=lambda: self.now)

    def after(self, seconds: float, busy: str = "") -> str:
        """What a tick adds so many seconds later."""
        before = len(self.progress.getvalue())
        self.now += seconds
        self.front.tick(busy)
        return self.progress.getvalue()[before:]


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (READING, "reading the prompt: 180 of 403 tokens (3 s)"),
        (StepStarted(step=1), "waiting for the model (3 s)"),
        (TextDelta(text="I"), "answering (3 s)"),
        (ToolStarted(call_id="c", tool="shell", arguments={}), "shell is at work (3 s)"),
    ],
)
def test_a_terminal_has_one_line_that_is_drawn_over(event: Event, shown: str):
    place = Place(terminal=True)
    place.front.show(event)
    assert place.after(3) == f"\r\x1b[2K{shown}"
    assert place.after(1).startswith("\r\x1b[2K")
    place.front.show(Notice(text="next"))
    assert place.progress.getvalue().endswith("\r\x1b[2K  info: next\n")


def test_a_busy_server_is_named_as_what_is_waited_for():
    place = Place(terminal=True)
    place.front.show(StepStarted(step=1))
    assert not place.front.is_unanswered
    place.now += 5
    assert place.front.is_unanswered
    assert place.after(0, "the only slot is busy") == "\r\x1b[2Kwaiting: the only slot is busy (5 s)"
    place.front.show(READING)
    assert not place.front.is_unanswered
    assert "reading" in place.after(3, "the only slot is busy")


def test_how_much_of_an_answer_has_come_is_said():
    place = Place(terminal=False)
    for _ in range(25):
        place.front.show(ToolCallDelta(text="{"))
    assert place.after(30) == "  answering: about 25 tokens (30 s)\n"
    place.front.show(StepStarted(step=2))
    place.front.show(ToolCallDelta(text="{"))
    assert place.after(30) == "  answering (30 s)\n"


def test_on_a_terminal_an_answer_that_keeps_coming_says_how_long_it_is():
    place = Place(terminal=True)
    for _ in range(25):
        place.now += 1
        place.front.show(TextDelta(text="on and on "))
    assert place.progress.getvalue().endswith("\r\x1b[2Kanswering: about 25 tokens (24 s)")
    assert "…" not in place.progress.getvalue()


def test_on_a_terminal_reading_that_goes_on_says_for_how_long():
    place = Place(terminal=True)
    for read in (100, 200, 300):
        place.now += 1
        place.front.show(Prefill(total=403, cached=0, processed=read))
    assert place.progress.getvalue().endswith("\r\x1b[2Kreading the prompt: 300 of 403 tokens (2 s)")


def test_a_log_has_a_line_every_thirty_seconds():
    place = Place(terminal=False)
    place.front.show(READING)
    told = [place.after(10) for _ in range(6)]
    line = "  reading the prompt: 180 of 403 tokens ({} s)\n"
    assert told == ["", "", line.format(30), "", "", line.format(60)]


def test_what_else_is_said_keeps_a_log_from_a_line_of_waiting():
    place = Place(terminal=False)
    place.front.show(READING)
    place.now += 29
    place.front.show(Notice(text="something"))
    assert place.after(29) == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_said_where_nothing_is_waited_for(terminal: bool):
    place = Place(terminal=terminal)
    assert place.after(100) == ""
    place.front.show(StepStarted(step=1))
    place.front.show(StepFinished(step=1, stop_reason="stop", stats=StepStats()))
    assert place.after(100) == ""


def test_a_quick_run_shows_no_waiting_on_a_terminal():
    place = Place(terminal=True)
    place.front.show(StepStarted(step=1))
    assert place.after(1.5) == ""
