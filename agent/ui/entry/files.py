"""Writing the small files that the input field keeps."""

import os
import tempfile
from pathlib import Path

from agent.core.private_folder import make_private_folder


def write_private(path: Path, text: str) -> bool:
    """Replaces `path` for its owner only; False where that does not work, as on a full disk."""
    return write_private_bytes(path, text.encode("utf-8"))


def write_private_bytes(path: Path, content: bytes) -> bool:
    """The same for what is no text."""
    temporary = ""
    try:
        make_private_folder(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(path)
    except OSError:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        return False
    return True
