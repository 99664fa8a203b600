"""Machine-readable output: lines that cannot be split, and an object that says how it went."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.events import Notice, TextDelta, ToolFinished, TurnFinished
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from agent.headless.figures import figures_line
from agent.headless.jsonl import JsonLinesFront, result_record

STATS = StepStats(
    prompt_tokens=20,
    cached_tokens=80,
    decoded_tokens=30,
    prompt_seconds=0.2,
    decode_seconds=0.6,
    drafted=40,
    accepted=25,
)

MEASURED = StepStats(decoded_tokens=10, decode_seconds=1, source="measured")


def finished(stats: StepStats = STATS) -> TurnFinished:
    return TurnFinished(reason="done", answer="Mended.", detail="done", steps=3, stats=stats)


def result(stats: StepStats = STATS) -> dict:
    return result_record(
        finished(stats),
        exit_code=0,
        session_id="s1",
        changed=["a.py"],
        denied=[],
        check_passed=True,
        seconds=1.23456,
        commit=None,
    )


def test_each_event_is_one_line_with_its_type_first():
    output = io.StringIO()
    front = JsonLinesFront(output)

    front.show(Notice(text="one\ntwo"))
    front.show(
        ToolFinished(
            call_id="c1", tool="edit", outcome="ok", text="", seconds=0.1, diffs=(FileDiff("a", None, "x"),)
        )
    )

    first, second = output.getvalue().splitlines()
    assert first == '{"type": "notice", "text": "one\\ntwo", "level": "info"}'
    assert json.loads(second)["diffs"] == [{"path": "a", "before": None, "after": "x"}]


@settings(deadline=None)
@given(st.text(alphabet=st.characters()))
def test_no_character_splits_a_line_or_gets_lost(text: str):
    output = io.StringIO()
    JsonLinesFront(output).show(TextDelta(text=text))
    [line] = output.getvalue().splitlines()
    assert line.isascii()
    assert json.loads(line)["text"] == text


def test_each_line_is_flushed():
    class Pipe(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    pipe = Pipe()
    JsonLinesFront(pipe).write({"type": "result"})
    assert pipe.flushed == 1


def test_the_result_says_how_it_went():
    record = result()
    assert record["type"] == "result"
    assert (record["exit_code"], record["reason"], record["answer"]) == (0, "done", "Mended.")
    assert (record["steps"], record["seconds"], record["check_passed"]) == (3, 1.235, True)
    assert (record["files_changed"], record["denied"], record["commit"]) == (["a.py"], [], None)
    assert json.loads(json.dumps(record)) == record


def test_the_result_has_every_figure():
    assert result()["stats"] == {
        "prompt_tokens": 20,
        "cached_tokens": 80,
        "decoded_tokens": 30,
        "prompt_seconds": 0.2,
        "decode_seconds": 0.6,
        "decode_tokens_per_second": 50.0,
        "prefill_tokens_per_second": 100.0,
        "drafted_tokens": 40,
        "accepted_tokens": 25,
        "acceptance_rate": 0.625,
        "accepted_length": None,
        "tokens_per_pass": 6.0,
        "accepted_by_position": [],
        "cached_share": 0.8,
        "source": "server",
        "draft_source": "",
        "counted": True,
    }


def test_what_was_not_measured_is_null():
    stats = result(StepStats())["stats"]
    names = ("decode_tokens_per_second", "prefill_tokens_per_second", "acceptance_rate", "cached_share")
    assert [stats[name] for name in names] == [None] * 4


@pytest.mark.parametrize(
    ("stats", "line"),
    [
        (
            STATS,
            "decode 50.0 tok/s · prefill 100.0 tok/s · acceptance 62% (25/40 drafted tokens)"
            " · 6.0 tokens a pass · prompt cache 80% (80/100 tokens)",
        ),
        (StepStats(), ""),
        (
            MEASURED,
            "decode 10.0 tok/s · measured here",
        ),
        (StepStats(source="measured"), ""),
        (
            StepStats(drafted=40, accepted=10, draft_source="engine metrics"),
            "acceptance 25% (10/40 drafted tokens, engine metrics)",
        ),
        (
            StepStats(engine_acceptance=0.5, draft_source="engine metrics"),
            "acceptance 50% (engine metrics)",
        ),
    ],
)
def test_figures_in_words_leave_out_what_there_is_not(stats: StepStats, line: str):
    assert figures_line(stats) == line
