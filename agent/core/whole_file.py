"""Writing a file so that neither a reader nor a crash ever meets half of it."""

import os
from contextlib import suppress
from pathlib import Path

from agent.core.private_folder import make_private_folder


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces `path` for its owner only (0600), text as UTF-8. Its folder is made if it is missing.

    Raises:
        OSError: it cannot be written; what was there is as it was, and nothing lies beside it.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
