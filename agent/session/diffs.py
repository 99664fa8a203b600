"""What a session changed, as a unified diff."""

import difflib
import io
from pathlib import Path

from agent.session.kept import contents_of, load_kept
from agent.session.states import FileState, state_below

_LARGEST_SHOWN_BYTES = 2_000_000


def session_diff(session_folder: Path, workspace: Path) -> str:
    """The difference between the originals of a session and what is in `workspace` now, file by file.

    Reads files, so call it in a thread. Files that are no text, or too big, are only named.
    """
    contents = contents_of(session_folder)
    parts: list[str] = []
    for name, kept in load_kept(session_folder).items():
        try:
            present = state_below(workspace, name)
        except OSError:
            present = FileState("other")
        if present == kept.original:
            continue
        before = _text_of(contents.path_of(kept.original.content), kept.original)
        after = _text_of(workspace / name, present)
        parts.append(_unified(name, before, after, kept.original, present))
    return "".join(parts)


def _unified(name: str, before: str | None, after: str | None, old: FileState, new: FileState) -> str:
    was = "/dev/null" if old.kind == "absent" else f"a/{name}"
    is_now = "/dev/null" if new.kind == "absent" else f"b/{name}"
    if before is None or after is None:
        return f"--- {was}\n+++ {is_now}\nBinary, big or special file: {old.kind} -> {new.kind}\n"
    if before == after:
        return f"--- {was}\n+++ {is_now}\n{_same_text(old, new)}\n"
    lines = difflib.unified_diff(
        list(io.StringIO(before, newline="\n")),
        list(io.StringIO(after, newline="\n")),
        was,
        is_now,
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _same_text(old: FileState, new: FileState) -> str:
    """What differs where the text does not."""
    if "absent" in (old.kind, new.kind):
        return "empty file"
    return f"mode {old.mode:o} -> {new.mode:o}" if old.kind == new.kind else f"{old.kind} -> {new.kind}"


def _text_of(path: Path, state: FileState) -> str | None:
    """The text of a file, empty where there is none, None where it is not to be shown."""
    if state.kind == "absent":
        return ""
    if state.kind == "link":
        return state.content
    if state.kind != "file":
        return None
    try:
        if path.stat().st_size > _LARGEST_SHOWN_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
