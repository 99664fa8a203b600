"""Events as lines of text that are never taken back."""

import contextlib
from typing import TextIO

from agent.core.events import (
    OWN_CALL,
    CheckFinished,
    CompactionFinished,
    CompactionStarted,
    Event,
    ModeChanged,
    Notice,
    Prefill,
    ReasoningDelta,
    Rewound,
    ServerState,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent.ui.change_text import change_text
from agent.ui.conversation.text import visible
from agent.ui.meter import accepted_length
from agent.ui.text import count, one_line, rate, share

MOST_RESULT_LINES = 12


class PlainWriter:
    """Prints whole lines; streamed text is held back until its line is complete, for screen readers."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._partial = ""
        self._server = ""
        self._is_thinking = False
        self._is_writing = False
        self._has_told_reading = False

    def line(self, text: str) -> None:
        self._end_partial()
        self._print(text)

    def show(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._stream(event.text)
        elif isinstance(event, ReasoningDelta):
            if not self._is_thinking:
                self.line("(thinking)")
            self._is_thinking = True
            return
        elif isinstance(event, ToolCallDelta):
            if not self._is_writing:
                self.line("(writing a call)")
            self._is_writing = True
            return
        elif isinstance(event, Prefill):
            self._tell_reading(event)
            return
        elif text := self._told(event):
            self.line(text)
        self._is_thinking = self._is_writing = False
        if isinstance(event, TurnFinished):
            self._has_told_reading = False

    def _told(self, event: Event) -> str:
        if isinstance(event, ServerState):
            known, self._server = self._server, event.state
            return "" if known == event.state else f"(server {event.state} {event.detail})".replace(" )", ")")
        if isinstance(event, ToolStarted):
            arguments = ", ".join(
                f"{name}: {one_line(str(value), 120)}" for name, value in event.arguments.items()
            )
            return f"* {event.tool} {arguments}"
        if isinstance(event, ToolFinished):
            lines = visible(event.text).strip().split("\n")
            # What a person asked for themselves is theirs to read; nothing here opens a result that is cut.
            most = len(lines) if event.call_id.startswith(OWN_CALL) else MOST_RESULT_LINES
            more = [f"  … {len(lines) - most} more lines"] if len(lines) > most else []
            shown = [f"  {line}" for line in lines[:most] if line]
            return "\n".join([f"  {event.outcome} after {event.seconds:.1f} s", *shown, *more])
        if isinstance(event, CheckFinished):
            return f"check {'passed' if event.passed else 'failed'}: {one_line(event.command)}"
        if isinstance(event, Notice):
            return visible(event.text) if event.level == "info" else f"{event.level}: {visible(event.text)}"
        if isinstance(event, Rewound | CompactionStarted | CompactionFinished):
            return f"({visible(change_text(event))})"
        if isinstance(event, ModeChanged):
            return f"(mode {event.mode})"
        return _closing(event) if isinstance(event, TurnFinished) else ""

    def _tell_reading(self, event: Prefill) -> None:
        if not self._has_told_reading and event.total - event.cached > 1000:
            self._has_told_reading = True
            self.line(f"(reading {count(event.total - event.cached)} tokens)")

    def _stream(self, text: str) -> None:
        whole, newline, rest = (self._partial + text).rpartition("\n")
        self._partial = rest
        if newline:
            self._print(visible(whole))

    def _end_partial(self) -> None:
        if self._partial:
            self._print(visible(self._partial))
            self._partial = ""

    def _print(self, text: str) -> None:
        encoding = self._output.encoding or "utf-8"
        safe = text.encode(encoding, "backslashreplace").decode(encoding)
        with contextlib.suppress(BrokenPipeError):
            self._output.write(f"{safe}\n")
            self._output.flush()


def _closing(event: TurnFinished) -> str:
    stats = event.stats
    parts = [event.reason.replace("_", " ")]
    if event.detail and event.reason != "done":
        parts.append(one_line(event.detail))
    if stats.decode_rate is not None:
        parts.append(f"{rate(stats.decode_rate)} tok/s")
    if stats.acceptance_rate is not None:
        length = accepted_length(stats)
        parts.append(
            f"accepted {share(stats.acceptance_rate)}" + (f", {length:.1f} a pass" if length else "")
        )
    return f"({', '.join(parts)})"
