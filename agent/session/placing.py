"""Putting a kept state back in place."""

import os
import secrets as random_source
import tempfile
from pathlib import Path

from agent.session.states import ABSENT, ContentStore, FileState, copy_and_digest


def put_back(state: FileState, destination: Path, contents: ContentStore) -> None:
    """Makes `destination` what `state` says, in one step.

    Raises:
        OSError: it cannot be written, or the kept bytes are damaged.
    """
    if state == ABSENT:
        destination.unlink(missing_ok=True)
    else:
        ready = prepared(state, destination, contents)
        try:
            make_way(destination)
            ready.replace(destination)
        except OSError:
            remove_own(ready)
            raise


def prepared(
    state: FileState, destination: Path, contents: ContentStore, *, beside: Path | None = None
) -> Path:
    """A new file or link beside `destination`, or in the folder `beside`, that only has to be renamed.

    Raises:
        OSError: it cannot be written, or the kept bytes are damaged.
    """
    folder = beside or destination.parent
    if state.kind == "link":
        link = folder / f".undo-{random_source.token_hex(8)}"
        link.symlink_to(state.content)
        return link
    descriptor, name = tempfile.mkstemp(prefix=".undo-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file, contents.path_of(state.content).open("rb") as source:
            if copy_and_digest(source, file.write) != state.content:
                raise OSError(f"the kept content of {destination.name} is damaged")
            _own_like(destination, file.fileno())
            os.fchmod(file.fileno(), state.mode)
    except BaseException:
        remove_own(Path(name))
        raise
    return Path(name)


def _own_like(destination: Path, descriptor: int) -> None:
    """Gives the new file the owner of the one it replaces, where we may: that matters to root."""
    try:
        status = destination.lstat()
        os.fchown(descriptor, status.st_uid, status.st_gid)
    except OSError:
        return


def remove_if_empty(folder: Path) -> None:
    """Deletes a folder unless something is in it."""
    try:
        folder.rmdir()
    except OSError:
        return


def make_way(destination: Path) -> bool:
    """Deletes a folder where a file shall be, if nothing but folders is in it. Whether no folder is there."""
    if not destination.is_dir() or destination.is_symlink():
        return True
    found = list(os.walk(destination, topdown=False))
    if any(files or any(Path(at, name).is_symlink() for name in folders) for at, folders, files in found):
        return False
    for folder, _, _ in found:
        remove_if_empty(Path(folder))
    return not destination.is_dir()


def remove_own(path: Path) -> None:
    """Deletes a temporary file of ours, if it can be."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
