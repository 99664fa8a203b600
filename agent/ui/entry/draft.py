"""The text that was not sent yet, kept across a crash."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.core.file_times import last_change
from agent.ui.entry.files import write_private


@dataclass(frozen=True, slots=True)
class Draft:
    """`pastes` has the text behind each placeholder in `text`."""

    text: str
    pastes: dict[str, str]


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class DraftFile:
    """One file for each program that runs in the project, named by its process id."""

    def __init__(self, folder: Path | None, process_id: int, alive: Callable[[int], bool] = is_alive) -> None:
        self._folder = folder
        self._path = folder / f"draft-{process_id}.json" if folder else None
        self._process_id = process_id
        self._alive = alive

    def save(self, draft: Draft) -> None:
        if self._path is None:
            return
        if not draft.text:
            self.remove()
            return
        write_private(self._path, json.dumps({"text": draft.text, "pastes": draft.pastes}))

    def remove(self) -> None:
        if self._path is not None:
            try:
                self._path.unlink(missing_ok=True)
            except OSError:
                return

    def take_abandoned(self) -> Draft | None:
        """The newest draft of a program that ended without sending or dropping it; its file is removed."""
        if self._folder is None:
            return None
        now = time.time()
        try:
            files = sorted(self._folder.glob("draft-*.json"), key=lambda path: last_change(path, now))
        except OSError:
            return None
        for path in reversed(files):
            owner = path.stem.removeprefix("draft-")
            if not owner.isdecimal() or (int(owner) != self._process_id and self._alive(int(owner))):
                continue
            draft = _read(path)
            try:
                path.unlink(missing_ok=True)
            except OSError:
                return None
            if draft is not None:
                return draft
        return None


def _read(path: Path) -> Draft | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str) or not record["text"]:
        return None
    pastes = record.get("pastes")
    known = pastes if isinstance(pastes, dict) else {}
    return Draft(record["text"], {str(key): str(value) for key, value in known.items()})
