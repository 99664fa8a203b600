"""`agent session`: the recorded sessions of this folder. Everything is on this machine only.

A session is its events, and the originals of the files that it changed, which `agent undo` needs.
"""

import argparse
import sys
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `session list`, `session show` and `session rm`."""
    parser = subparsers.add_parser(
        "session",
        help="list, show and remove recorded sessions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument(
        "-C", "--directory", metavar="DIR", type=Path, help="the folder that the runs worked in"
    )

    listing = actions.add_parser("list", parents=[folder], help="newest first: id, result, files, task")
    listing.set_defaults(func=list_sessions)

    show = actions.add_parser("show", parents=[folder], help="print what happened in a session")
    show.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="an id, or its beginning or end (default: the last run or conversation)",
    )
    show.add_argument("--raw", action="store_true", help="print the recorded events as JSON lines")
    show.set_defaults(func=show_session)

    remove = actions.add_parser("rm", parents=[folder], help="delete sessions; they cannot be undone then")
    remove.add_argument("sessions", metavar="SESSION", nargs="+", help="an id, or its beginning or end")
    remove.set_defaults(func=remove_sessions)


def list_sessions(arguments: argparse.Namespace) -> int:
    """Prints one line for each session, newest first."""
    from agent.resources import state_folder
    from agent.session.catalogue import session_folders, summarise
    from agent.session.readable import excerpt

    state = state_folder()
    workspace = workspace_of(state, arguments.directory)
    folders = session_folders(state, workspace)
    for summary in map(summarise, folders):
        result = excerpt(summary.result.replace("_", " "), 14)
        files = f"{len(summary.files)} file{'s' if len(summary.files) != 1 else ''}"
        print(f"{summary.id}  {result:<14}  {files:>8}  {excerpt(summary.task, 80)}")
    if not folders:
        print(f"no sessions in {workspace}", file=sys.stderr)
    return 0


def show_session(arguments: argparse.Namespace) -> int:
    """Prints a session's events, readable or as they were recorded."""
    import json

    from agent.core.errors import UsageError
    from agent.resources import state_folder
    from agent.session.lines import read_lines
    from agent.session.readable import describe
    from agent.session.store import EVENTS_NAME

    state = state_folder()
    folder = _chosen(state, workspace_of(state, arguments.directory), arguments.session)
    try:
        for record in read_lines(folder / EVENTS_NAME):
            lines = [json.dumps(record)] if arguments.raw else describe(record)
            for line in lines:
                print(line)
    except OSError as error:
        raise UsageError(f"cannot read {folder / EVENTS_NAME}: {error.strerror or error}") from error
    return 0


def remove_sessions(arguments: argparse.Namespace) -> int:
    """Deletes sessions, after all names are known to be right."""
    from agent.resources import state_folder
    from agent.session.catalogue import find_session, remove_session

    state = state_folder()
    workspace = workspace_of(state, arguments.directory)
    for folder in [find_session(state, workspace, name) for name in arguments.sessions]:
        remove_session(folder)
        print(f"removed  {folder.name}")
    return 0


def workspace_of(state: Path, directory: Path | None) -> Path:
    """The folder whose sessions are meant: the given or current one, or the nearest above with sessions.

    Raises:
        UsageError: there is no such folder.
    """
    from agent.core.errors import UsageError
    from agent.session.catalogue import find_workspace

    start = Path() if directory is None else directory
    if not start.is_dir():
        raise UsageError(f"{start} is not a folder", "name the folder that the run worked in")
    return find_workspace(state, start)


def _chosen(state: Path, workspace: Path, name: str | None) -> Path:
    from agent.core.errors import UsageError
    from agent.session.catalogue import find_session, session_folders, summarise

    if name is not None:
        return find_session(state, workspace, name)
    folders = session_folders(state, workspace)
    if not folders:
        raise UsageError(f"no sessions in {workspace}")
    # An undo is recorded too, but who asks what happened means what was undone.
    return next((folder for folder in folders if summarise(folder).kind != "undo"), folders[0])
