"""`agent undo`: puts back what a run changed in this folder, all of it or nothing.

Files get their old content and permissions, also those that only a shell command changed; files that the
run created are deleted. If somebody else changed one of them since, nothing is touched, and the exit code is
1. `agent undo` again brings the changes back. Not covered are files that git ignores, big ones that were not
in git (the run has said so), and what happened outside of this folder.
"""

import argparse
import sys
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `undo`."""
    parser = subparsers.add_parser(
        "undo",
        help="take back what the last run changed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "session", metavar="SESSION", nargs="?", help="an id, or its beginning or end (default: the last run)"
    )
    parser.add_argument(
        "-C", "--directory", metavar="DIR", type=Path, help="the folder that the run worked in"
    )
    parser.add_argument("--list", action="store_true", help="list what can be undone, change nothing")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Undoes a session or lists the sessions that can be undone."""
    from agent.cli.session import workspace_of
    from agent.resources import state_folder

    state = state_folder()
    workspace = workspace_of(state, arguments.directory)
    if arguments.list:
        return _list(state, workspace, arguments.session)
    return _undo(state, workspace, arguments.session)


def _undo(state: Path, workspace: Path, session: str | None) -> int:
    from agent.app.undoing import recover_interrupted
    from agent.session.readable import visible
    from agent.session.undo import undo

    recover_interrupted(state, workspace, session)
    result = undo(state, workspace, session)
    for word, paths in (("restored", result.restored), ("deleted", result.deleted)):
        for path in paths:
            print(f"{word}  {visible(path)}")
    if result.recorded_as:
        print(
            f"undid {result.session_id}; to take that back: agent undo {result.recorded_as}", file=sys.stderr
        )
    else:
        print(f"every file is already as it was before {result.session_id}", file=sys.stderr)
    return 0


def _list(state: Path, workspace: Path, session: str | None) -> int:
    from agent.session.catalogue import find_session, session_folders, summarise
    from agent.session.readable import excerpt, visible
    from agent.session.undo import plan_undo

    folders = [find_session(state, workspace, session)] if session else session_folders(state, workspace)
    shown = False
    for summary in map(summarise, folders):
        if not summary.files:
            continue
        shown = True
        print(f"{summary.id}  {excerpt(summary.task, 70)}")
        plan = plan_undo(summary.folder, workspace)
        reasons = dict(plan.conflicts) | {step.path: "" for step in plan.steps}
        for path in summary.files:
            reason = reasons.get(path, "is already as before")
            print(f"    {visible(path)}{f'  ({reason})' if reason else ''}")
    if not shown:
        print(f"no session has changed files in {workspace}", file=sys.stderr)
    return 0
