"""`agent undo`: puts back what the last run or turn changed in this folder, all of it or nothing.

Once more it takes back the one before, and so on; `agent undo --redo` brings the last one back. With an id
it takes back all of that session, or brings it back where the id is that of an undo.

Files get their old content and permissions, also those that only a shell command changed; files that the
run created are deleted. If somebody else changed one of them since, nothing is touched, and the exit code is
1. Not covered are files that git ignores, big ones that were not in git (the run has said so), and what
happened outside of this folder.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.session.stepping import Stepped
    from agent.session.undo import UndoResult

_LONGEST_TASK = 60


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `undo`."""
    parser = subparsers.add_parser(
        "undo",
        help="take back what the last run changed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="an id, or its beginning or end (default: what was changed last)",
    )
    which.add_argument("--redo", action="store_true", help="bring back what was undone last")
    parser.add_argument(
        "-C", "--directory", metavar="DIR", type=Path, help="the folder that the run worked in"
    )
    parser.add_argument("--list", action="store_true", help="list what can be undone, change nothing")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Undoes or redoes, or lists the sessions that can be undone."""
    from agent.app.files.undoing import recover_interrupted
    from agent.cli.session import workspace_of
    from agent.resources import state_folder

    state = state_folder()
    workspace = workspace_of(state, arguments.directory)
    if arguments.list:
        return _list(state, workspace, arguments.session)
    recover_interrupted(state, workspace, arguments.session)
    if arguments.session:
        return _undo_session(state, workspace, arguments.session)
    return _redo(state, workspace) if arguments.redo else _undo(state, workspace)


def _undo(state: Path, workspace: Path) -> int:
    from agent.session.stepping import step_back

    step = step_back(state, workspace)
    further = ", agent undo goes further back" if step.goes_further else ""
    if _print_files(step.result):
        _tell(f"undid {_named(step)}; agent undo --redo brings it back{further}")
    else:
        _tell(f"every file is already as it was before {_named(step)}{further}")
    return 0


def _redo(state: Path, workspace: Path) -> int:
    from agent.session.stepping import step_forward

    step = step_forward(state, workspace)
    _print_files(step.result)
    further = ", agent undo --redo brings back the next" if step.goes_further else ""
    _tell(f"brought back {_named(step)}; agent undo takes it back again{further}")
    return 0


def _undo_session(state: Path, workspace: Path, session: str) -> int:
    from agent.session.undo import undo

    result = undo(state, workspace, session)
    if _print_files(result):
        _tell(f"undid {result.session_id}; to take that back: agent undo {result.recorded_as}")
    else:
        _tell(f"every file is already as it was before {result.session_id}")
    return 0


def _print_files(result: "UndoResult") -> bool:
    """Names the files on standard output. Whether there are any."""
    from agent.session.readable import visible

    for word, paths in (("restored", result.restored), ("deleted", result.deleted)):
        for path in paths:
            print(f"{word}  {visible(path)}")
    return bool(result.restored or result.deleted)


def _named(step: "Stepped") -> str:
    from agent.session.readable import excerpt
    from agent.session.stepping import words_for

    name = words_for(step.session_id, step.turn)
    return f"{name} ({excerpt(step.task, _LONGEST_TASK)})" if step.task else name


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _list(state: Path, workspace: Path, session: str | None) -> int:
    from agent.session.catalogue import find_session, session_folders, summarise
    from agent.session.readable import excerpt, visible
    from agent.session.steps import read_steps
    from agent.session.undo import plan_undo

    folders = [find_session(state, workspace, session)] if session else session_folders(state, workspace)
    steps = read_steps(state, workspace)
    undone = {step.session for record in steps.records.values() for step in record.taken}
    undone -= {step.session for step in steps.in_force}
    shown = False
    for summary in map(summarise, folders):
        if not summary.files or (summary.kind == "undo" and not session):
            continue
        shown = True
        is_undone = summary.id in undone
        print(f"{summary.id}  {excerpt(summary.task, 70)}{'  (is taken back)' if is_undone else ''}")
        plan = plan_undo(summary.folder, workspace)
        reasons = dict(plan.conflicts) | {step.path: "" for step in plan.steps}
        for path in summary.files:
            reason = "" if is_undone else reasons.get(path, "is already as before")
            print(f"    {visible(path)}{f'  ({reason})' if reason else ''}")
    if not shown:
        print(f"no session has changed files in {workspace}", file=sys.stderr)
    return 0
