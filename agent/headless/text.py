"""Human text: progress on stderr, the closing answer on stdout."""

import time
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO

from agent.core.events import (
    AssistantReplied,
    CheckFinished,
    CompactionFinished,
    CompactionStarted,
    Event,
    Notice,
    Prefill,
    Retry,
    ServerState,
    SessionStarted,
    StepFinished,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
)
from agent.core.tool import FileDiff
from agent.headless.figures import figures_line, token_count
from agent.headless.waiting import LOG_SECONDS, TERMINAL_SECONDS, Waiting

_ARGUMENT_CHARACTERS = 100
_RESULT_LINES = 6
_LAST_WORDS_LINES, _LAST_WORDS_CHARACTERS = 10, 2_000
_DELEGATES = "task"  # a sub-agent may work for minutes; what it does is shown as it does it
_PREFILL_WORTH_SHOWING = 256
_TRANSIENT_CHARACTERS = 78  # a line that wraps cannot be taken back


# Formatting characters that words of some languages and emoji need; all others can hide or reorder text.
_HARMLESS_FORMATTING = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{SOFT HYPHEN}"
_HIDING_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    """Makes control characters visible, so that no output of a model or a tool steers the terminal."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character.isprintable() or character in "\n\t" or character in _HARMLESS_FORMATTING:
        return character
    if unicodedata.category(character) not in _HIDING_CATEGORIES:
        return character
    number = ord(character)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _encodable(text: str, output: TextIO) -> str:
    """What the output's encoding lacks becomes an escape: half an answer is no answer."""
    encoding = output.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


# SGR codes of ECMA-48: the colours are the person's own, whatever the terminal makes of these numbers.
Style = Literal["", "1", "2", "31", "32", "33"]
_BOLD: Style = "1"
_FAINT: Style = "2"
_RED: Style = "31"
_GREEN: Style = "32"
_YELLOW: Style = "33"


class TextFront:
    """Prints events as they come. `terminal` allows a line that is rewritten in place.

    `colour` marks what the words and signs say anyway; it never says anything alone. `clock` gives seconds.
    """

    def __init__(
        self,
        progress: TextIO,
        answer: TextIO,
        *,
        terminal: bool,
        colour: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress = progress
        self._answer = answer
        self._terminal = terminal
        self._colour = colour
        self._transient = False
        self._server = ""
        self._delegated = ""
        self._clock = clock
        self._waiting = Waiting(clock)
        self._drawn = self._said = clock()
        self._last_words = self._unfinished = ""

    @property
    def is_unanswered(self) -> bool:
        """Whether a request waits for the server's first sign."""
        return self._waiting.is_unanswered

    def tick(self, busy: str = "") -> None:
        """To be called now and then: says what is waited for, if nothing else was said for a while.

        `busy` tells why the server does not begin.
        """
        line, now = self._waiting.line(busy), self._clock()
        if not line:
            return
        if self._terminal and now - self._drawn >= TERMINAL_SECONDS:
            drawn = self._drawn
            self._rewrite(line)
            self._drawn = drawn  # so that the seconds go on
        elif not self._terminal and now - self._said >= LOG_SECONDS:
            self._line(f"  {line}")

    def show(self, event: Event) -> None:
        self._waiting.observe(event)
        self._listen(event)
        match event:
            case ServerState():
                self._server_state(event)
            case SessionStarted():
                window = f", {event.context_tokens} tokens of context" if event.context_tokens else ""
                self._line(f"{event.profile}: {event.model}{window}, {event.tool_protocol} tool calls")
            case Prefill() if event.total - event.cached >= _PREFILL_WORTH_SHOWING:
                self._rewrite(self._waiting.line(""))
            case TextDelta() | ToolCallDelta():
                self._rewrite(self._waiting.line(""))
            case ToolStarted():
                self._delegated = event.call_id if event.tool == _DELEGATES else ""
                self._line(f"• {event.tool} {_arguments(event.arguments)}", _BOLD)
            case ToolOutput() if event.call_id == self._delegated:
                self._block(event.text)
            case ToolFinished():
                self._tool_finished(event)
            case CheckFinished():
                self._check_finished(event)
            case StepFinished():
                self._step_finished(event)
            case CompactionStarted() | CompactionFinished() | Retry() | Notice():
                self._remark(event)
            case _:
                return

    def _listen(self, event: Event) -> None:
        """Keeps what the model said last, for the end of a run that comes to no answer."""
        match event:
            case TextDelta():
                self._unfinished = (self._unfinished + event.text)[-_LAST_WORDS_CHARACTERS:]
            case Retry():
                self._unfinished = ""
            case AssistantReplied():
                self._unfinished = ""
                if _are_words(event.text):
                    self._last_words = event.text.strip()[-_LAST_WORDS_CHARACTERS:]
            case _:
                return

    def last_words(self) -> None:
        """Shows the end of what the model said last, if it said anything."""
        said = self._unfinished.strip() if _are_words(self._unfinished) else self._last_words
        lines = said.splitlines()
        if not lines:
            return
        self._line("the model said last:")
        if len(lines) > _LAST_WORDS_LINES:
            lines = ["…", *lines[-_LAST_WORDS_LINES:]]
        self._block("\n".join(lines))

    def _remark(self, event: CompactionStarted | CompactionFinished | Retry | Notice) -> None:
        match event:
            case CompactionStarted():
                self._line(f"• the context is nearly full: summing up {event.before} tokens", _BOLD)
            case CompactionFinished():
                done = event.after != event.before
                told = f"{event.before} tokens became about {event.after}" if done else event.detail
                self._line(f"  {told}")
            case Retry():
                self._line(f"  {event.cause}; asking again ({event.attempt})", _YELLOW)
            case Notice():
                self._line(f"  {event.level}: {event.text}", "" if event.level == "info" else _YELLOW)

    def finish(self, finished: TurnFinished, *, changed: list[str], summary: str) -> None:
        """The end of the run: why it ended, which files changed, the figures, the answer."""
        self._waiting.observe(finished)
        if finished.reason == "server_failed":
            # What is said of a server begins with "the server" anyway.
            self._line(finished.detail, _RED)
        elif finished.reason != "done":
            self._line(f"{finished.reason.replace('_', ' ')}: {finished.detail}", _RED)
        if changed:
            self._line(f"changed: {', '.join(changed)}")
        elif finished.reason != "done":
            self._line("nothing was changed")
        if summary:
            self._line(summary, _BOLD)
        self._clear()
        self._progress.flush()
        if finished.answer.strip():
            self._answer.write(_encodable(printable(finished.answer.strip()) + "\n", self._answer))
            self._answer.flush()

    def _server_state(self, event: ServerState) -> None:
        """Seconds that go by on a terminal; in a log a line for each new state. Warnings stay."""
        if event.state == "warning":
            self._line(f"  warning: {event.detail}", _YELLOW)
            return
        is_said = event.detail.startswith(event.state)
        text = f"server: {event.detail if is_said else f'{event.state} {event.detail}'.rstrip()}"
        self._rewrite(f"{text} ({event.elapsed_seconds:.0f} s)")
        if not self._terminal and event.state != self._server:
            self._line(text)
        self._server = event.state

    def _tool_finished(self, event: ToolFinished) -> None:
        for diff in event.diffs:
            for line in unified(diff).splitlines():
                self._line(f"  {line}", _diff_style(line))
        if event.outcome == "ok" and (event.diffs or event.tool != "shell"):
            return
        lines = event.text.splitlines()
        shown = lines[:_RESULT_LINES]
        if len(lines) > _RESULT_LINES:
            shown = [*lines[: _RESULT_LINES - 1], f"… {len(lines) - _RESULT_LINES + 1} more lines"]
        self._block("\n".join(shown))

    def _check_finished(self, event: CheckFinished) -> None:
        word, style = ("passed", _GREEN) if event.passed else ("failed", _RED)
        self._line(f"check {word}: {event.command} ({event.seconds:.1f} s)", style)
        if not event.passed:
            self._block("\n".join(event.text.splitlines()[:_RESULT_LINES]))

    def _step_finished(self, event: StepFinished) -> None:
        figures = figures_line(event.stats)
        if figures:
            self._line(f"  step {event.step}: {token_count(event.stats)}, {figures}", _FAINT)

    def _block(self, text: str) -> None:
        for line in text.splitlines():
            self._line(f"  {line}")

    def _line(self, text: str, style: Style = "") -> None:
        self._clear()
        self._drawn = self._said = self._clock()
        shown = _encodable(printable(text), self._progress)
        marked = f"\x1b[{style}m{shown}\x1b[0m" if style and self._colour else shown
        self._progress.write(f"{marked}\n")
        self._progress.flush()

    def _rewrite(self, text: str) -> None:
        """A line that the next one replaces; only on a terminal, a log would fill up with it."""
        if not self._terminal:
            return
        line = printable(text).replace("\n", " ")[:_TRANSIENT_CHARACTERS]
        self._progress.write(f"\r\x1b[2K{_encodable(line, self._progress)}")
        self._progress.flush()
        self._transient = True
        self._drawn = self._clock()

    def _clear(self) -> None:
        if self._transient:
            self._progress.write("\r\x1b[2K")
            self._transient = False


def _are_words(text: str) -> bool:
    """Not a call in the form of text, as models without native tool calls write it."""
    return bool(text.strip()) and not text.lstrip().startswith(("{", "```json"))


def _diff_style(line: str) -> Style:
    if line.startswith(("---", "+++", "@@")):
        return _FAINT
    if line.startswith("+"):
        return _GREEN
    return _RED if line.startswith("-") else ""


def _arguments(arguments: Mapping[str, Any]) -> str:
    parts = []
    for key, value in arguments.items():
        text = " ".join(str(value).split())
        if len(text) > _ARGUMENT_CHARACTERS:
            text = f"{text[:_ARGUMENT_CHARACTERS]}… ({len(str(value))} characters)"
        parts.append(text if key in ("path", "command", "pattern") else f"{key}={text}")
    return " ".join(parts)


def unified(diff: FileDiff, context_lines: int = 2) -> str:
    """The change as a unified diff."""
    import difflib  # most runs have made their first request by then

    before = (diff.before or "").splitlines()
    after = (diff.after or "").splitlines()
    old = diff.path if diff.before is not None else "/dev/null"
    new = diff.path if diff.after is not None else "/dev/null"
    return "\n".join(difflib.unified_diff(before, after, old, new, n=context_lines, lineterm=""))
