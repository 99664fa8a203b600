"""Before a session of the past is undone."""

from pathlib import Path

from agent.core.errors import UsageError
from agent.session.catalogue import find_session, session_folders
from agent.session.held import load_note
from agent.session.store import is_active


def recover_interrupted(state_folder: Path, workspace: Path, session: str | None) -> None:
    """Sees to it that undo knows of a command during which a session was killed: the one named, else any."""
    try:
        folders = (
            [find_session(state_folder, workspace, session)]
            if session
            else session_folders(state_folder, workspace)
        )
    except UsageError:
        return  # undo says it
    for folder in folders:
        if load_note(folder) is not None and not is_active(folder):
            from agent.app.files.killed_command import recover_held

            recover_held(folder, workspace)
