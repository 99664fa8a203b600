"""The records of a session's sub-agents: `subagents/001.jsonl` and so on in the session's folder."""

from collections.abc import Iterable
from pathlib import Path

from agent.core.events import Event, to_record
from agent.core.private_folder import make_private_folder
from agent.session.lines import LineAppender, plain
from agent.session.store import redact

FOLDER = "subagents"
_TRANSIENT = frozenset({"text_delta", "reasoning_delta", "tool_call_delta", "prefill", "tool_output"})


class SideRecord:
    """Writes the events of one sub-agent to a new file. A disk that takes none is no reason to stop it.

    `secrets` never reach the file.
    """

    def __init__(self, session_folder: Path, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)
        self._lines: LineAppender | None = None
        try:
            self._lines = _next_file(session_folder / FOLDER)
        except OSError:
            return

    def add(self, event: Event) -> None:
        if self._lines is None or event.type in _TRANSIENT:
            return
        try:
            self._lines.append(plain(to_record(event), lambda text: redact(text, self._secrets)))
        except (OSError, ValueError, TypeError, RecursionError):
            self.close()

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def _next_file(folder: Path) -> LineAppender:
    make_private_folder(folder)
    number = 1 + max((int(path.stem) for path in folder.glob("*.jsonl") if path.stem.isdigit()), default=0)
    while True:
        try:
            return LineAppender(folder / f"{number:03d}.jsonl", exclusive=True)
        except FileExistsError:
            number += 1
