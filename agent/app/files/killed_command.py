"""What a command had changed when its session was killed, for whoever opens the session or undoes it."""

from pathlib import Path

from agent.app.files.commanded import state_in_git
from agent.core.errors import AgentError
from agent.repo.trees import TreeFinder
from agent.session.held import HeldFiles, drop_held, load_note
from agent.session.kept import KeptFiles
from agent.session.states import state_below


def recover_held(session_folder: Path, workspace: Path) -> None:
    """Makes originals of what a command had changed when its session was killed. Waits for git.

    What the command left is not known, as others may have changed it since: undo says so, and where the
    originals are. For a session that nobody records any more.
    """
    note = load_note(session_folder)
    if note is None:
        return
    workspace = workspace.resolve()
    held = HeldFiles(session_folder, workspace)
    kept = KeptFiles(session_folder, workspace)
    try:
        states = note.states
        originals = {key: state for key, state in states.items() if state_below(workspace, key) != state}
        trees = TreeFinder(workspace, held.folder).again(note.inner) if note.has_index else ()
        for tree in trees:
            found = tree.look()
            if isinstance(found, str):
                continue
            known = {**originals, **states}
            entries = [
                entry
                for entry in found.entries
                if not entry.untracked and entry.differs and entry.key not in known
            ]
            for entry, data in tree.original_bytes(entries):
                state = state_in_git(entry, data, note.modes, held)
                if state is not None:
                    originals[entry.key] = state
        for key, state in originals.items():
            if key not in kept.files:
                kept.adopt(key, state, (), held.contents)
        held.remove_note()
        drop_held(session_folder)
    except (OSError, AgentError):
        return  # the held copies stay where they are
    finally:
        kept.close()
