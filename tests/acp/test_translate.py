"""Events as updates: what an editor is told, and what it is spared."""

from pathlib import Path
from typing import Any

import pytest

from agent.acp.cards import first_change, title_of
from agent.acp.translate import Translator
from agent.core.events import (
    Event,
    Notice,
    Prefill,
    ServerState,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from agent.core.stats import StepStats
from agent.core.tool import FileDiff


class Told:
    """A translator with a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.translator = Translator(Path("/somewhere"), lambda: self.now)

    def of(self, *events: Event) -> list[dict[str, Any]]:
        updates = [update for event in events for update in self.translator.live(event)]
        return [update.model_dump(mode="json", by_alias=True, exclude_none=True) for update in updates]


def ended(answer: str, reason: Any = "done", detail: str = "") -> TurnFinished:
    return TurnFinished(reason=reason, answer=answer, detail=detail, steps=1, stats=StepStats())


def shell(call_id: str = "c") -> ToolStarted:
    return ToolStarted(call_id=call_id, tool="shell", arguments={"command": "make"})


def test_an_answer_that_came_as_a_call_is_told_once():
    told = Told()
    finish = ToolStarted(call_id="f", tool="finish", arguments={"summary": "Done."})
    assert [one["content"]["text"] for one in told.of(TurnStarted(attempt=1), finish, ended("Done."))] == [
        "Done."
    ]
    assert told.of(TurnStarted(attempt=1), TextDelta(text="Hi."), ended("Hi."))[1:] == []


def test_text_of_two_replies_in_a_row_is_set_apart():
    told = Told()
    updates = told.of(StepStarted(step=1), TextDelta(text="a"), StepStarted(step=2), TextDelta(text="b"))
    assert [one["content"]["text"] for one in updates] == ["a", "\n\nb"]


def test_output_is_told_as_a_whole_and_not_with_every_line():
    told = Told()
    told.of(shell())
    first = told.of(ToolOutput(call_id="c", text="one\n"), ToolOutput(call_id="c", text="two\n"))
    assert len(first) == 1
    told.now += 1
    (second,) = told.of(ToolOutput(call_id="c", text="\x1b[31mthree\x1b[0m\x07\n"))
    assert second["content"][0]["content"]["text"] == "```\none\ntwo\nthree\n```"


def test_output_cannot_close_its_fence_and_of_too_much_the_end_is_kept():
    told = Told()
    told.of(shell())
    text = "x" * 50_000 + "\n```\nend"
    done = ToolFinished(call_id="c", tool="shell", outcome="ok", text=text, seconds=1.0)
    shown = told.of(done)[0]["content"][0]["content"]["text"]
    assert len(shown) < 21_000
    assert shown.startswith("````\n…\n")
    assert shown.endswith("\n```\nend\n````")


def test_a_long_wait_for_the_first_word_is_a_card_and_a_short_one_is_none():
    told = Told()
    reading = Prefill(total=5000, cached=0, processed=1000)
    assert told.of(StepStarted(step=1), reading) == []
    told.now += 4
    assert told.of(reading)[0]["title"] == "Reading the prompt: 1,000 of 5,000 tokens"
    assert told.of(reading) == []
    told.now += 2
    assert told.of(ToolCallDelta(text="x" * 400))[0]["title"] == "Writing a call, about 100 tokens"
    assert [one["status"] for one in told.of(shell())] == ["completed", "in_progress"]


def test_a_server_on_its_way_is_a_card_only_for_who_waits():
    told = Told()
    loading = ServerState(state="loading", detail="model.gguf", elapsed_seconds=12.3)
    assert told.of(loading) == []
    assert told.of(TurnStarted(attempt=1))[0]["title"] == "Model server: loading, 12 s"
    assert told.of(ServerState(state="ready", elapsed_seconds=20))[0]["status"] == "completed"
    assert told.of(ended(""), TurnStarted(attempt=1)) == []


def test_notices_wait_for_a_turn_and_the_reason_of_an_early_end_is_told():
    told = Told()
    assert told.of(Notice(text="the folder is read-only", level="warning")) == []
    assert told.of(TurnStarted(attempt=1))[0]["title"] == "the folder is read-only"
    assert told.of(ended("", "gave_up", "going in circles"))[0]["title"] == "going in circles"


def test_an_error_is_kept_on_one_line_for_the_answer():
    told = Told()
    assert told.of(TurnStarted(attempt=1), Notice(text="no model\nhint: pull it", level="error")) == []
    assert told.translator.last_error == "no model; pull it"


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("read", {"path": "a.py", "start": 3, "lines": 2}, "Read a.py:3-4"),
        ("shell", {"command": "ls\n  -l"}, "`ls -l`"),
        ("shell", {"command": "echo `date`"}, "echo `date`"),
        ("shell", {}, "`a command`"),
        ("search", {"pattern": "x|y", "path": "src"}, "Search `x|y` in src"),
        ("edit", {"path": "a\x1b[2Jb"}, "Edit a[2Jb"),
        ("other", {"one": 1, "two": {"a": 1}}, "other one=1"),
    ],
)
def test_titles_are_one_line(tool: str, arguments: dict[str, Any], title: str):
    assert title_of(tool, arguments) == title


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [(None, "a\n", 1), ("a\nb\n", "a\nc\n", 2), ("a\n", "a\nb\n", 2), ("a\nb\n", None, 1), ("a", "a", 1)],
)
def test_the_place_of_a_change_is_its_first_line(before: str | None, after: str | None, line: int):
    assert first_change(FileDiff("a", before, after)) == line
