"""What a sub-agent did: a line for each of its steps to people, one bounded text to the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.core.events import (
    AssistantReplied,
    Event,
    Retry,
    StepFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent.core.outside_text import one_line
from agent.core.tool import FileDiff, ToolResult

LONGEST_REPORT = 6_000
_LONGEST_LINE = 160
_LAST_WORDS = 1_000
_MOST_NAMED = 5


@dataclass(slots=True)
class Delegated:
    """Sees the events of a sub-agent's turn. `emit` gets a line of text, its end included, for people."""

    emit: Callable[[str], None]
    steps: int = 0
    tokens: int = 0
    finished: TurnFinished | None = None
    diffs: dict[str, FileDiff] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    last_words: str = ""

    def observe(self, event: Event) -> None:
        match event:
            case StepFinished():
                self.steps += 1
                self.tokens += event.stats.decoded_tokens
            case AssistantReplied():
                self.last_words = event.text.strip() or self.last_words
            case ToolStarted() if event.tool != "finish":
                self._say(f"{event.tool} {_arguments(event.arguments)}")
            case ToolFinished():
                self._tool_finished(event)
            case Retry():
                self._say(f"{event.cause}; asking again")
            case TurnFinished():
                self.finished = event
                steps = f"{self.steps} step{'' if self.steps == 1 else 's'}"
                end = "" if event.reason == "done" else f", ended: {event.detail}"
                self._say(f"{steps}, {self.tokens} tokens{end}")
            case _:
                return

    def _tool_finished(self, event: ToolFinished) -> None:
        for diff in event.diffs:
            before = self.diffs.get(diff.path)
            self.diffs[diff.path] = FileDiff(diff.path, before.before if before else diff.before, diff.after)
        if event.outcome == "denied":
            self.refused.append(event.decision)
        if event.outcome != "ok":
            self._say(f"  {event.outcome}: {event.text}")

    def _say(self, text: str) -> None:
        self.emit(f"{one_line(text, _LONGEST_LINE)}\n")


def report_of(done: Delegated) -> ToolResult:
    """The result of the call: the report, or why there is none, and what was refused or changed."""
    end = done.finished
    if end is None:
        return _result(done, "The sub-agent ended without a result. Do it yourself.", is_error=True)
    if end.reason == "done":
        report = end.answer.strip()
        if not report:
            return _result(done, "The sub-agent ended without a report. Do it yourself.", is_error=True)
        return _result(done, _cut(report, LONGEST_REPORT))
    if end.reason == "server_failed":
        text = f"The model server failed while the sub-agent worked: {end.detail}"
        return _result(done, text, is_error=True)
    said = f" Its last words: {_cut(done.last_words, _LAST_WORDS)}" if done.last_words else ""
    text = f"The sub-agent was stopped before it was done: {end.detail}.{said}"
    return _result(done, text, is_error=True)


def _result(done: Delegated, text: str, *, is_error: bool = False) -> ToolResult:
    lines = [text]
    if done.diffs:
        lines.append(f"Changed by it: {_named(list(done.diffs))}.")
    if done.refused:
        lines.append(f"Refused to it: {_named([one_line(reason, 300) for reason in done.refused], '; ')}.")
    return ToolResult(
        "\n".join(lines), is_error=is_error, diffs=tuple(done.diffs.values()), refused=tuple(done.refused)
    )


def _named(names: list[str], between: str = ", ") -> str:
    more = len(names) - _MOST_NAMED
    return between.join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[… {len(text) - most} characters left out …]"


def _arguments(arguments: Mapping[str, Any]) -> str:
    return " ".join(" ".join(str(value).split()) for value in arguments.values())
