"""What an undo notes besides its files: what a killed one had done, and what the session's files are now."""

from contextlib import suppress
from pathlib import Path

from agent.core.errors import AgentError
from agent.session.kept import KeptFiles, contents_of, load_kept
from agent.session.states import FileState
from agent.session.steps import is_half_redone, undo_record
from agent.session.store import session_names


def take_over_killed(session: Path, own_record: Path, kept: KeptFiles) -> None:
    """Has in this undo what earlier ones of the same session hold of the same step: one redo for all.

    That is one that was killed, or one whose redo was killed, of which only a part is to be undone again.

    Raises:
        AgentError: it could not be kept.
    """
    names = sorted(set(session_names(session.parent)) - {own_record.name})
    records = [found for name in names if (found := undo_record(session.parent / name)) is not None]
    for found in records:
        folder = found.folder
        if found.of != session.name or (found.is_done and not is_half_redone(found, records)):
            continue
        for path, file in load_kept(folder).items():
            if path in kept.files or file.result is None or file.result == file.original:
                continue
            if _is(kept, path, file.result):
                kept.adopt(path, file.original, file.made_folders, contents_of(folder))
                kept.set_result(path, file.result)


def note_results(session: Path, kept: KeptFiles, own: str) -> None:
    """Lets a session know what its files are now, so that nobody takes it for somebody else's change.

    A session that is open (`own`) looks itself. Where it cannot be noted a later undo is refused, no more.
    """
    root = session
    while (found := undo_record(root)) is not None:
        root = root.parent / found.of
    if root.name == own or not root.is_dir():
        return
    files = KeptFiles(root, kept.workspace)
    with suppress(AgentError):
        for path, file in kept.files.items():
            if path in files.files and file.result is not None and _is(kept, path, file.result):
                files.set_result(path, file.result, undoing=True)
    files.close()


def _is(kept: KeptFiles, path: str, state: FileState) -> bool:
    try:
        return kept.present(path) == state
    except OSError:
        return False
