"""Writing the small files that the input field keeps."""

from pathlib import Path

from agent.core.whole_file import write_whole


def write_private(path: Path, content: str | bytes) -> bool:
    """Replaces `path` for its owner only; False where that does not work, as on a full disk."""
    try:
        write_whole(path, content)
    except OSError:
        return False
    return True
