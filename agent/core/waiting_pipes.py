"""A named pipe in the place of a file that programs read by themselves (`.gitignore`) holds them for ever.

Neither git nor ripgrep can be told to leave it out. But whoever opens such a pipe for writing and closes it
again has given the reader an empty file.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READ_BY_THEMSELVES = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".ignore", ".rgignore"})
_PATIENCE_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_MOST_ENTRIES = 100_000
_SKIPPED = frozenset({".git", "node_modules"})


@contextmanager
def nobody_waits_for_pipes(folder: Path) -> Iterator[None]:
    """While a program reads below `folder`: after half a second, lets go who waits for a pipe there."""
    over = threading.Event()
    threading.Thread(target=_let_go, args=(folder, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _let_go(folder: Path, over: threading.Event) -> None:
    if over.wait(_PATIENCE_SECONDS):
        return
    pipes = [*_above(folder), *_below(folder, over)]
    while pipes and not over.wait(_PAUSE_SECONDS):
        for pipe in pipes:
            # Without a reader this fails at once.
            with suppress(OSError):
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW))


def _above(folder: Path) -> Iterator[str]:
    for place in folder.absolute().parents:
        names = (str(place / name) for name in READ_BY_THEMSELVES)
        yield from (name for name in names if _is_pipe(name))


def _below(folder: Path, over: threading.Event) -> Iterator[str]:
    looked_at, waiting = 0, [str(folder)]
    while waiting and looked_at < _MOST_ENTRIES and not over.is_set():
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                looked_at += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting += [entry.path] if entry.name not in _SKIPPED else []
                elif entry.name in READ_BY_THEMSELVES and _is_pipe(entry.path):
                    yield entry.path


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:
        return False
