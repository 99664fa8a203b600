"""`agent session`: the recorded sessions of this folder. Everything is on this machine only.

A session is its events, and the originals of the files that it changed, which `agent undo` needs.
"""

import argparse
import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
SHOWN = 20
LAST = "last"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `session list`, `show`, `resume`, `fork`, `export` and `rm`."""
    parser = subparsers.add_parser(
        "session",
        help="list, show, go on with, copy, export and remove recorded sessions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(func=list_sessions, directory=None, limit=None, all=False, json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument(
        "-C", "--directory", metavar="DIR", type=Path, help="the folder that the runs worked in"
    )

    listing = actions.add_parser(
        "list",
        parents=[folder],
        help="newest first: id, age, result, number of changed files, task",
        description="Lists the runs and conversations of a folder, newest first. A terminal shows columns, "
        f"the age and the newest {SHOWN}; anything else gets all of them, a line each without a head: id, "
        "start in UTC, result, number of changed files and task, with tabs between. What `agent undo` "
        "records of itself is among them with --all, and in --json as the kind `undo`.",
    )
    how_many = listing.add_mutually_exclusive_group()
    how_many.add_argument("-n", "--limit", metavar="N", type=int, help="only the newest N")
    how_many.add_argument(
        "--all", action="store_true", help=f"all of them in a terminal too, not {SHOWN}, and undos"
    )
    listing.add_argument("--json", action="store_true", help="a JSON array on stdout, with all that is known")
    listing.set_defaults(func=list_sessions)

    show = actions.add_parser("show", parents=[folder], help="print what happened in a session")
    show.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="an id, its beginning or end, or last (default: the last run or conversation)",
    )
    show.add_argument("--raw", action="store_true", help="print the recorded events as JSON lines")
    show.set_defaults(func=show_session)

    _add_going_on(actions, folder)
    _add_export(actions, folder)
    remove = actions.add_parser("rm", parents=[folder], help="delete sessions; they cannot be undone then")
    remove.add_argument("sessions", metavar="SESSION", nargs="+", help="an id, or its beginning or end")
    remove.set_defaults(func=remove_sessions)


def _add_going_on(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", folder: argparse.ArgumentParser
) -> None:
    resume = actions.add_parser(
        "resume",
        parents=[folder],
        help="go on with a session in the terminal; the same as `agent --resume`",
        description="Goes on in the terminal interface. `agent run --resume` does it without one.",
    )
    fork = actions.add_parser(
        "fork",
        parents=[folder],
        help="copy a session and print the id of the copy",
        description="Copies the conversation. Both go on from there; files stay as they are, and what was "
        "changed before is undone with the first of the two.",
    )
    for parser in (resume, fork):
        parser.add_argument(
            "session",
            metavar="SESSION",
            nargs="?",
            help="an id, its beginning or end, or last (default: the last conversation)",
        )
    resume.set_defaults(func=resume_session)
    fork.set_defaults(func=fork_session)


def _add_export(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", folder: argparse.ArgumentParser
) -> None:
    export = actions.add_parser(
        "export",
        parents=[folder],
        help="write a session as Markdown, HTML or JSON",
        description="Writes a session for other people to read. Known secrets of this machine and what looks "
        "like a key are taken out; read it before you give it away.",
    )
    export.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="an id, its beginning or end, or last (default: the last run or conversation)",
    )
    export.add_argument(
        "--format",
        choices=("markdown", "html", "json"),
        help="default: by the ending of FILE (.md, .html, .json), else markdown",
    )
    export.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="a new file (default: standard output)"
    )
    export.add_argument("--force", action="store_true", help="replace FILE if it exists")
    export.set_defaults(func=export_session)


def list_sessions(arguments: argparse.Namespace) -> int:
    """Prints one line for each session, newest first. Raises UsageError for a limit that is none."""
    import json
    from datetime import UTC, datetime
    from itertools import islice

    from agent.cli.session_list import as_data, as_table, as_tabs
    from agent.cli.wrapping import terminal_width
    from agent.core.errors import UsageError
    from agent.resources import state_folder
    from agent.session.catalogue import session_folders, summarise

    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError(f"--limit takes a number from 1 on, not {arguments.limit}")
    state = state_folder()
    workspace = workspace_of(state, arguments.directory)
    folders = session_folders(state, workspace)
    width = 0 if arguments.json else terminal_width(sys.stdout)
    most = arguments.limit or (SHOWN if width and not arguments.all else len(folders))
    undos_too = arguments.all or arguments.json
    rest = iter(folders)  # what is not shown is not read either
    found = list(islice((one for one in map(summarise, rest) if undos_too or one.kind != "undo"), most))
    if arguments.json:
        print(json.dumps([as_data(one) for one in found], indent=2))
        return 0
    for line in as_table(found, width, datetime.now(UTC)) if width and found else as_tabs(found):
        print(line)
    if not folders:
        print(f"no sessions in {workspace}", file=sys.stderr)
    elif width and (older := len(list(rest))):
        print(f"… {older} older; --all shows them", file=sys.stderr)
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
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in FULL_DISK:
            raise
        raise UsageError(f"cannot read {folder / EVENTS_NAME}: {error.strerror or error}") from error
    return 0


def resume_session(arguments: argparse.Namespace) -> int:
    """Opens the terminal interface with a session."""
    from agent.cli import chat

    return chat.run(
        argparse.Namespace(
            directory=arguments.directory,
            profile=None,
            mode=None,
            resume=arguments.session or chat.LAST,
            fork=False,
            plain=False,
            prompt="",
        )
    )


def fork_session(arguments: argparse.Namespace) -> int:
    """Copies a session; prints the id of the copy."""
    from agent.app.chat.record import fork_of
    from agent.resources import state_folder

    workspace = workspace_of(state_folder(), arguments.directory)
    print(fork_of(workspace, arguments.session or LAST))
    return 0


def export_session(arguments: argparse.Namespace) -> int:
    """Writes a session in another form, to a file in one step or to standard output."""
    import os
    from shlex import quote

    from agent.core.errors import UsageError
    from agent.resources import state_folder
    from agent.session.export import exported
    from agent.session.lines import read_lines
    from agent.session.store import EVENTS_NAME, secrets_in

    state = state_folder()
    target: Path | None = arguments.output
    name = arguments.session or ""
    if "." in name and target is None:  # no id has a point in it
        raise UsageError(
            f"{name!r} is no session", f"to write the last one there: agent session export -o {quote(name)}"
        )
    folder = _chosen(state, workspace_of(state, arguments.directory), arguments.session)
    if target is not None and target.exists() and not arguments.force:
        raise UsageError(f"{target} exists already", "name another file, or replace it with --force")
    form = arguments.format or _form_of(target)
    pieces = exported(read_lines(folder / EVENTS_NAME), form, secrets_in(os.environ))
    try:
        if target is None:
            sys.stdout.writelines(pieces)
            return 0
        _write_whole(target, pieces)
    except BrokenPipeError:
        raise
    except OSError as error:
        if target is None and error.errno in FULL_DISK:  # that of the output; the record is only read
            raise
        record = str(folder / EVENTS_NAME)
        # A file that is being written has another name until it is whole.
        place = error.filename or folder if target is None or error.filename == record else target
        raise UsageError(
            f"cannot export session {folder.name}: {error.strerror or error}: {place}",
            "" if target is None else "name a file in a folder that is there and may be written to",
        ) from error
    print(f"wrote {target}", file=sys.stderr)
    return 0


def _form_of(target: Path | None) -> str:
    from agent.core.errors import UsageError
    from agent.session.export import form_for

    try:
        return form_for(target or Path())
    except UsageError as error:
        raise UsageError(error.message, f"{error.hint}; --format writes a file of any name") from None


def _write_whole(target: Path, pieces: "Iterable[str]") -> None:
    """A file that is there as a whole or not at all. Raises OSError."""
    import os

    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_sessions(arguments: argparse.Namespace) -> int:
    """Deletes sessions, after all names are known to be right."""
    from agent.resources import state_folder
    from agent.session.catalogue import find_session, remove_session

    state = state_folder()
    workspace = workspace_of(state, arguments.directory)
    for folder in [find_session(state, workspace, name) for name in arguments.sessions]:
        remove_session(folder)
        print(f"removed  {folder.name}")
    from agent.app.servers.kept_states import delete_states_of_removed_sessions

    delete_states_of_removed_sessions()
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

    if name not in (None, LAST):
        return find_session(state, workspace, name)
    folders = session_folders(state, workspace)
    if not folders:
        raise UsageError(f"no sessions in {workspace}")
    # An undo is recorded too, but who asks what happened means what was undone.
    return next((folder for folder in folders if summarise(folder).kind != "undo"), folders[0])
