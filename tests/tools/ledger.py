"""A file ledger that lives in memory."""

import hashlib
import threading
from pathlib import Path

from agent.core.tool import FileVersion


class MemoryLedger:
    """`threads` are those that have asked or told it something."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()
        self.versions: dict[Path, FileVersion] = {}
        self.originals: dict[Path, bytes | None] = {}

    def seen(self, path: Path) -> FileVersion | None:
        self.threads.add(threading.current_thread())
        return self.versions.get(path)

    def record(self, path: Path) -> None:
        self.threads.add(threading.current_thread())
        if path.exists():
            self.versions[path] = _version(path)
        else:
            self.versions.pop(path, None)

    def is_stale(self, path: Path) -> bool:
        return path in self.versions and _version(path).sha256 != self.versions[path].sha256

    def before_change(self, path: Path) -> None:
        self.originals.setdefault(path, path.read_bytes() if path.exists() else None)


def _version(path: Path) -> FileVersion:
    status = path.stat()
    return FileVersion(status.st_size, status.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
