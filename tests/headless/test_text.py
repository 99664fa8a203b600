"""Human text: progress on one stream, the answer alone on the other, and no control over the terminal."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.events import (
    AssistantReplied,
    CheckFinished,
    CompactionFinished,
    CompactionStarted,
    Event,
    Notice,
    Prefill,
    PrefixBroken,
    ReasoningDelta,
    Retry,
    ServerState,
    SessionStarted,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnReason,
    UserMessageAdded,
)
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from agent.headless.text import TextFront, printable, unified

ATTACK = "\x1b[2J\x07\x9b\x08\r\x00\u202e"


class Screen:
    """Two streams that remember what came."""

    def __init__(self, *, terminal: bool = False) -> None:
        self.progress, self.answer = io.StringIO(), io.StringIO()
        self.front = TextFront(self.progress, self.answer, terminal=terminal)

    def show(self, *events: Event) -> str:
        """What the events added to the progress."""
        before = len(self.progress.getvalue())
        for event in events:
            self.front.show(event)
        return self.progress.getvalue()[before:]


def started(tool: str, **arguments: Any) -> ToolStarted:
    return ToolStarted(call_id="c1", tool=tool, arguments=arguments)


def session(profile: str = "embedded", model: str = "q.gguf") -> SessionStarted:
    return SessionStarted(
        session_id="s",
        workspace="/w",
        profile=profile,
        model=model,
        context_tokens=4096,
        tool_protocol="native",
    )


def ended(tool: str = "read", outcome: Any = "ok", text: str = "", **more: Any) -> ToolFinished:
    return ToolFinished(call_id="c1", tool=tool, outcome=outcome, text=text, seconds=0.1, **more)


def finished(answer: str = "Done.", reason: TurnReason = "done", detail: str = "done") -> TurnFinished:
    return TurnFinished(reason=reason, answer=answer, detail=detail, steps=1, stats=StepStats())


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\x07 back\x08", "bell\\x07 back\\x08"),
        ("line\r\nline\r", "line\nline\\x0d"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\U000e0041", "\\U000e0041"),
        ("half \ud800", "half \\ud800"),
        ("caf\xe9 \u65e5\u672c \U0001f600", "caf\xe9 \u65e5\u672c \U0001f600"),
        ("10\xa0km \u3000", "10\xa0km \u3000"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
    ],
)
def test_what_steers_a_terminal_or_hides_text_is_made_visible(text: str, visible: str):
    assert printable(text) == visible


@settings(deadline=None)
@given(st.text())
def test_nothing_printable_controls_a_terminal(text: str):
    assert not [character for character in printable(text) if ord(character) < 32 and character not in "\n\t"]
    assert "\x7f" not in printable(text)


@pytest.mark.parametrize(
    "event",
    [
        session(ATTACK, ATTACK),
        ServerState(state="loading", detail=ATTACK),
        ToolStarted(call_id="c1", tool=ATTACK, arguments={ATTACK: ATTACK}),
        ended(text=ATTACK, outcome="error"),
        ended(diffs=(FileDiff(ATTACK, ATTACK, ATTACK + "x"),)),
        CheckFinished(command=ATTACK, passed=False, text=ATTACK, seconds=0.1),
        Retry(cause=ATTACK, attempt=1),
        Notice(text=ATTACK),
    ],
    ids=lambda event: event.type,
)
def test_no_event_steers_the_terminal(event: Event):
    text = Screen().show(event)
    assert "\\x1b[2J" in text
    assert not set(text) & set("\x1b\x07\x9b\x08\r\x00\u202e")


def test_a_compaction_is_told_with_tokens_before_and_after():
    screen = Screen()
    screen.show(
        CompactionStarted(before=9_000, automatic=True),
        CompactionFinished(before=9_000, after=2_000, summary="(Summed up.)"),
    )
    told = screen.progress.getvalue()
    assert told == "• the context is nearly full: summing up 9000 tokens\n  9000 tokens became about 2000\n"


def test_the_answer_is_alone_on_its_stream():
    screen = Screen()
    screen.show(TextDelta(text="I mend "), started("edit"), ended("edit"))
    screen.front.finish(finished("  Mended.\n"), changed=["a.py"], summary="1 step")
    assert screen.answer.getvalue() == "Mended.\n"
    assert "Mended." not in screen.progress.getvalue()
    assert screen.progress.getvalue().endswith("changed: a.py\n1 step\n")


def test_an_answer_cannot_steer_the_terminal():
    screen = Screen()
    screen.front.finish(finished(f"a{ATTACK}b"), changed=[], summary="")
    assert screen.answer.getvalue() == "a\\x1b[2J\\x07\\x9b\\x08\\x0d\\x00\\u202eb\n"


@pytest.mark.parametrize("answer", ["", " \n"])
def test_without_an_answer_nothing_is_written_as_one(answer: str):
    screen = Screen()
    screen.front.finish(finished(answer), changed=[], summary="")
    assert (screen.answer.getvalue(), screen.progress.getvalue()) == ("", "")


def test_a_run_that_did_not_get_done_says_why():
    screen = Screen()
    screen.front.finish(finished("", "step_limit", "the limit of 3 steps is reached"), changed=[], summary="")
    assert screen.progress.getvalue() == "step limit: the limit of 3 steps is reached\nnothing was changed\n"


def test_server_that_failed_is_named_once():
    screen = Screen()
    screen.front.finish(finished("", "server_failed", "the server failed: no room"), changed=[], summary="")
    assert screen.progress.getvalue() == "the server failed: no room\nnothing was changed\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_narrow_encoding_loses_no_answer(encoding: str):
    raw = io.BytesIO()
    answer = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    front = TextFront(io.StringIO(), answer, terminal=False)

    front.finish(finished("caf\xe9 → \U0001f600"), changed=[], summary="")

    expected = {"ascii": "caf\\xe9 \\u2192 \\U0001f600", "latin-1": "caf\xe9 \\u2192 \\U0001f600"}
    assert raw.getvalue().decode(encoding) == expected.get(encoding, "caf\xe9 → \U0001f600") + "\n"


def test_the_progress_fits_a_narrow_encoding_too():
    raw = io.BytesIO()
    progress = io.TextIOWrapper(raw, encoding="ascii")
    TextFront(progress, io.StringIO(), terminal=False).show(started("read"))
    assert raw.getvalue().startswith(b"\\u2022 read")


def test_a_session_introduces_itself():
    assert Screen().show(session()) == "embedded: q.gguf, 4096 tokens of context, native tool calls\n"


def test_a_call_shows_what_it_is_about_in_one_line():
    [line] = Screen().show(started("write", path="a.py", content="x = 1\ny = 2\n" * 50)).splitlines()
    assert line.startswith("• write a.py content=x = 1 y = 2 ")
    assert line.endswith("… (600 characters)")


def test_a_change_is_shown_as_a_diff():
    text = Screen().show(ended("edit", diffs=(FileDiff("a.py", "x = 1\ny = 2\n", "x = 1\ny = 3\n"),)))
    assert text.splitlines() == [
        "  --- a.py",
        "  +++ a.py",
        "  @@ -1,2 +1,2 @@",
        "   x = 1",
        "  -y = 2",
        "  +y = 3",
    ]


@pytest.mark.parametrize(
    ("before", "after", "heads"),
    [(None, "x\n", ["--- /dev/null", "+++ a.py"]), ("x\n", None, ["--- a.py", "+++ /dev/null"])],
)
def test_a_file_that_comes_or_goes_is_shown_as_such(before: str | None, after: str | None, heads: list[str]):
    assert unified(FileDiff("a.py", before, after)).splitlines()[:2] == heads


def test_what_was_read_is_not_repeated():
    assert Screen().show(ended("read", text="one\ntwo")) == ""


def test_of_long_results_the_beginning_is_shown():
    text = Screen().show(ended("shell", text="\n".join(f"line {number}" for number in range(100))))
    assert text.splitlines()[0] == "  line 0"
    assert text.splitlines()[-1] == "  … 95 more lines"


@pytest.mark.parametrize("outcome", ["error", "denied", "cancelled"])
def test_why_a_call_did_not_work_is_shown(outcome: str):
    assert Screen().show(ended("read", outcome, "there is no a.py")) == "  there is no a.py\n"


def test_a_check_says_whether_it_passed():
    passed = CheckFinished(command="make test", passed=True, text="", seconds=1.25)
    assert Screen().show(passed) == "check passed: make test (1.2 s)\n"
    failed = CheckFinished(command="make test", passed=False, text="1 != 2", seconds=1.25)
    assert Screen().show(failed) == "check failed: make test (1.2 s)\n  1 != 2\n"


def test_a_step_shows_its_figures():
    stats = StepStats(decoded_tokens=50, decode_seconds=0.5, drafted=40, accepted=30)
    line = Screen().show(StepFinished(step=2, stop_reason="stop", stats=stats))
    acceptance = "acceptance 75% (30/40 drafted tokens) · 2.5 tokens a pass"
    assert line == f"  step 2: 50 tokens, decode 100.0 tok/s · {acceptance}\n"


PASSING = [
    ServerState(state="loading", detail="q.gguf", elapsed_seconds=3.2),
    TextDelta(text="I"),
    ToolCallDelta(text="{"),
    Prefill(total=2000, cached=0, processed=512),
]


def test_a_log_is_not_filled_with_passing_states():
    assert Screen(terminal=False).show(*PASSING[1:]) == ""


def test_a_log_has_each_state_of_the_server_once():
    seconds = [ServerState(state="loading", detail="q.gguf", elapsed_seconds=passed) for passed in range(9)]
    text = Screen(terminal=False).show(ServerState(state="starting"), *seconds, ServerState(state="ready"))
    assert text == "server: starting\nserver: loading q.gguf\nserver: ready\n"


@pytest.mark.parametrize("event", PASSING, ids=lambda event: event.type)
def test_on_a_terminal_a_passing_state_is_replaced_by_the_next_line(event: Event):
    screen = Screen(terminal=True)
    shown = screen.show(event)
    assert shown.startswith("\r\x1b[2K")
    assert "\n" not in shown
    assert screen.show(Notice(text="next")) == "\r\x1b[2K  info: next\n"
    assert screen.show(Notice(text="last")) == "  info: last\n"


def test_a_passing_state_never_wraps():
    shown = Screen(terminal=True).show(ServerState(state="loading", detail="very/long/name\n" * 50))
    assert len(shown.removeprefix("\r\x1b[2K")) < 80
    assert "\n" not in shown


def test_no_passing_state_is_left_when_the_answer_comes():
    screen = Screen(terminal=True)
    screen.show(TextDelta(text="I"))
    screen.front.finish(finished("Done."), changed=[], summary="")
    assert screen.progress.getvalue().endswith("\r\x1b[2K")


@pytest.mark.parametrize(
    "event",
    [
        Prefill(total=100, cached=0, processed=100),
        ReasoningDelta(text="Hm"),
        ToolOutput(call_id="c1", text="noise"),
        AssistantReplied(text="I", reasoning=""),
        StepStarted(step=1),
        UserMessageAdded(text="Do it."),
        PrefixBroken(cause="x"),
        finished(),
    ],
    ids=lambda event: event.type,
)
def test_everything_else_is_left_to_other_fronts(event: Event):
    assert Screen(terminal=True).show(event) == ""


def test_colours_mark_the_lines_of_a_diff_and_cannot_be_steered_by_its_text():
    progress = io.StringIO()
    front = TextFront(progress, io.StringIO(), terminal=True, colour=True)
    diff = FileDiff("a.py", "old\n", f"{ATTACK}new\n")
    front.show(ToolFinished(call_id="c1", tool="edit", outcome="ok", text="", seconds=0.0, diffs=(diff,)))
    shown = progress.getvalue()
    assert "\x1b[31m  -old\x1b[0m" in shown
    assert "\x1b[32m  +" in shown
    assert "\x1b[2J" not in shown


def test_without_colour_there_is_no_escape_sequence():
    screen = Screen()
    diff = FileDiff("a.py", "old\n", "new\n")
    shown = screen.show(
        ToolFinished(call_id="c1", tool="edit", outcome="ok", text="", seconds=0.0, diffs=(diff,))
    )
    assert "\x1b" not in shown


def test_a_state_of_the_server_is_not_said_twice():
    text = Screen(terminal=False).show(ServerState(state="starting", detail="starting the engine"))
    assert text == "server: starting the engine\n"


def test_a_run_that_comes_to_no_answer_ends_with_the_last_words_of_the_model():
    screen = Screen()
    screen.show(AssistantReplied(text="\n".join(f"line {number}" for number in range(12)), reasoning=""))
    before = len(screen.progress.getvalue())
    screen.front.last_words()
    told = screen.progress.getvalue()[before:].splitlines()
    assert told == ["the model said last:", "  …", *(f"  line {number}" for number in range(2, 12))]


def test_last_words_are_those_that_were_interrupted():
    screen = Screen()
    screen.show(
        AssistantReplied(text="I look.", reasoning=""), TextDelta(text="It is "), TextDelta(text="the")
    )
    screen.front.last_words()
    assert screen.progress.getvalue().endswith("the model said last:\n  It is the\n")


@pytest.mark.parametrize("text", ["", "  ", '{"tool": "read"}'])
def test_nothing_and_calls_are_no_last_words(text: str):
    screen = Screen()
    screen.show(AssistantReplied(text=text, reasoning=""))
    screen.front.last_words()
    assert screen.progress.getvalue() == ""
