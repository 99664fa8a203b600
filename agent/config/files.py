"""Writing small files so that a reader, or a crash, never meets half of one."""

import os
import tempfile
from pathlib import Path

from agent.core.errors import UsageError
from agent.resources import ensure_private_folder


def write_atomically(path: Path, content: str) -> None:
    """Replaces `path` by `content` (UTF-8, line ends as given).

    An existing file keeps its mode, a new one is for its owner only (0600).
    A symbolic link stays one: people keep their configuration in a repository of its own.

    Raises:
        UsageError: the folder or file cannot be written; the old file is untouched.
    """
    target = path.resolve()
    ensure_private_folder(target.parent)
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
