"""Where the events and the result of a run go, and what happens when nobody takes them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from agent.app.run.request import OutputForm
from agent.core.errors import AgentError
from agent.core.events import Event, Notice, TurnFinished
from agent.headless.jsonl import JsonLinesFront
from agent.headless.text import TextFront


class RunOutput:
    """Progress on stderr and the answer on stdout; or one JSON object, or a line per event, on stdout.

    Progress that nobody takes is dropped. When the reader of JSON lines has left, `reader_left` is called
    once: what the run does from then on nobody would hear of.
    """

    def __init__(self, form: OutputForm, *, progress: TextIO, answer: TextIO) -> None:
        self.form: OutputForm = form
        self.reader_left: Callable[[], None] = lambda: None
        self.delivered = True
        self._progress = progress
        self._answer = answer
        self._json = JsonLinesFront(answer)
        self._text = TextFront(progress, answer, terminal=progress.isatty(), colour=_may_colour(progress))

    def show(self, event: Event) -> None:
        """Shows one event. Never raises for a stream that cannot be written to."""
        if self.form == "jsonl":
            self._on_stdout(lambda: self._json.show(event))
        elif not isinstance(event, TurnFinished):
            self._on_stderr(lambda: self._text.show(event))

    @property
    def is_unanswered(self) -> bool:
        """Whether a request waits for the server's first sign, and somebody is to be told."""
        return self.form != "jsonl" and self._text.is_unanswered

    def tick(self, busy: str) -> None:
        """Shows that the run goes on, where it has been silent for a while. `busy`: why the server waits."""
        if self.form != "jsonl":
            self._on_stderr(lambda: self._text.tick(busy))

    def finish(
        self,
        finished: TurnFinished,
        record: Mapping[str, Any],
        *,
        changed: Sequence[str],
        denied: str,
        summary: str,
        failure: AgentError | None,
    ) -> None:
        """The end of a run. `denied` says what was refused, if the exit code is about that."""
        if self.form == "jsonl":
            self._on_stdout(lambda: self._json.write(record))
            return
        if denied:
            self.show(Notice(text=f"part of the work was refused: {denied}", level="warning"))
        detail = finished.detail
        if failure and failure.message == detail:
            detail = str(failure)
        elif failure:
            self.show(Notice(text=str(failure), level="error"))
        spoken = replace(finished, answer="", detail=detail)
        if self.form == "text" and finished.reason != "done" and not finished.answer.strip():
            self._on_stderr(self._text.last_words)
        self._on_stderr(lambda: self._text.finish(spoken, changed=list(changed), summary=summary))
        if self.form == "json":
            self._on_stdout(lambda: self._json.write(record))
            return
        answer = replace(finished, reason="done")
        self._on_stdout(lambda: self._text.finish(answer, changed=[], summary=""))

    def refuse(self, error: AgentError) -> None:
        """The end of a run that could not begin. People read about it elsewhere."""
        if self.form != "text":
            self._on_stdout(lambda: self._json.write(error_record(error)))

    def _on_stdout(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError:
            self.delivered = False
            _redirect_to_nowhere(self._answer)
            self.reader_left()

    def _on_stderr(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError:
            _redirect_to_nowhere(self._progress)


def error_record(error: AgentError) -> dict[str, Any]:
    """The result of a run that could not begin, as one object."""
    return {
        "type": "result",
        "exit_code": int(error.exit_code),
        "error": error.message,
        "hint": error.hint,
    }


def _redirect_to_nowhere(stream: TextIO) -> None:
    """For what is in the stream's buffer too, or the interpreter complains about it while it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _may_colour(stream: TextIO) -> bool:
    """Colours for a terminal that has them, unless the person wants none (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
