"""Folders for one person: what is kept in them is nobody else's business."""

from pathlib import Path


def make_private_folder(folder: Path) -> Path:
    """Creates `folder`, and those of its parents that are missing, for their owner only (0700).

    A folder that is there keeps its mode. Returns `folder`.

    Raises:
        OSError: it cannot be created, or something else has its name.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        # `Path.mkdir(parents=True)` gives its mode to the last folder only.
        if folder.parent == folder:
            raise
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder
