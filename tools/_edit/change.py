"""Changes of files that are known beforehand, and carrying out several of them or none."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.tool import FileDiff, ToolContext
from tools._text.encodings import presentable
from tools._text.files import replace_file
from tools._text.line_ends import shared_beginning, shared_end
from tools._text.paths import RefusalError, reason, shown

LONGEST_SHOWN = 256 * 1024
"""Characters of a text that is shown to people as a whole; of a longer one only what differs is shown."""
_AROUND = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one file.

    `before` and `after` are its bytes, None where there is no file. `status` is that of the file when
    `before` was read; `said` tells the model what was done. `mode` is for a file that is made.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    status: os.stat_result | None
    diff: FileDiff
    said: str
    mode: int | None = None


def carry_out(changes: Sequence[Change], context: ToolContext) -> None:
    """Makes all changes. If one fails, those before it are taken back.

    Raises:
        RefusalError: a place cannot be written.
        AgentError: an original could not be kept; nothing was changed.
    """
    for change in changes:
        context.ledger.before_change(change.path)
    made: list[Change] = []
    try:
        for change in changes:
            _make(change, context.workspace)
            made.append(change)
    except RefusalError as refusal:
        left = [change for change in reversed(made) if not _taken_back(change, context.workspace)]
        if left:
            names = ", ".join(change.diff.path for change in left)
            raise RefusalError(f"{refusal} What was changed in {names} could not be taken back.") from None
        if len(changes) > 1:
            raise RefusalError(f"{refusal} No file was changed.") from None
        raise
    finally:
        for change in changes:
            context.ledger.record(change.path)


def diff_of(name: str, before: str | None, after: str | None) -> FileDiff:
    """A change for display. Of long texts only the part that differs, with some lines around it."""
    if max(len(before or ""), len(after or "")) <= LONGEST_SHOWN:
        return FileDiff(name, _shown(before), _shown(after))
    first = shared_beginning(before or "", after or "")
    last = shared_end((before or "")[first:], (after or "")[first:])
    return FileDiff(name, _shown(_part(before, first, last)), _shown(_part(after, first, last)))


def _shown(text: str | None) -> str | None:
    return presentable(text) if text is not None else None


def _part(text: str | None, first: int, last: int) -> str | None:
    if text is None:
        return None
    start, end = max(0, first - _AROUND), min(len(text), len(text) - last + _AROUND)
    part = text[start:end]
    if len(part) > LONGEST_SHOWN:
        part = part[:LONGEST_SHOWN] + "\n[... the rest is not shown ...]\n"
    return f"[... {start} characters before ...]\n{part}" if start else part


def _make(change: Change, workspace: Path) -> None:
    if change.after is None:
        _remove(change.path, workspace)
        return
    if change.before is None and change.path.exists():
        raise RefusalError(
            f"{shown(workspace, change.path)} was made just now by somebody else. Read it first."
        )
    replace_file(workspace, change.path, change.after, change.status)
    if change.mode is not None:
        change.path.chmod(change.mode)


def _remove(path: Path, workspace: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise RefusalError(f"{shown(workspace, path)} cannot be deleted: {reason(error)}.") from None


def _taken_back(change: Change, workspace: Path) -> bool:
    with contextlib.suppress(RefusalError):
        if change.before is None:
            _remove(change.path, workspace)
        else:
            replace_file(workspace, change.path, change.before)
            if change.status is not None and change.after is None:
                change.path.chmod(change.status.st_mode & 0o7777)
        return True
    return False
