"""`agent server`: starts, stops and looks at the model server that this program manages."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli import server_view
from agent.cli.server_install import add_actions
from agent.cli.server_states import add_action

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.app.servers.serving import Serving
    from agent.core.events import ServerState
    from agent.server.caps import Capabilities
    from agent.server.model_file import ModelFile
    from agent.server.profile import Profile
    from agent.server.record import Record

FOLLOW_SECONDS = 0.3
TAIL_BYTES = 256 * 1024
DIALECTS = ("bee-0.3", "bee-0.4", "llama.cpp", "ik")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `server` with its actions; without one it is `status`."""
    parser = subparsers.add_parser(
        "server", help="start, stop and look at the model server", description=__doc__
    )
    parser.set_defaults(func=server_view.run_status, json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    start = actions.add_parser("start", help="start the server of a profile, or reuse the running one")
    start.add_argument("profile", nargs="?", metavar="PROFILE", help="default: the profile of your settings")
    start.set_defaults(func=run_start)
    stop = actions.add_parser("stop", help="stop the running servers")
    stop.add_argument("profile", nargs="?", metavar="PROFILE", help="only the server of this profile")
    _add_force(stop)
    stop.set_defaults(func=run_stop)
    restart = actions.add_parser("restart", help="stop the running servers and start one")
    restart.add_argument(
        "profile", nargs="?", metavar="PROFILE", help="default: the profile of your settings"
    )
    _add_force(restart)
    restart.set_defaults(func=run_restart)
    logs = actions.add_parser("logs", help="the end of a server's log")
    logs.add_argument("profile", nargs="?", metavar="PROFILE", help="default: the log written last")
    logs.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many lines (default: 50)")
    logs.add_argument("-f", "--follow", action="store_true", help="go on printing what is added")
    logs.set_defaults(func=run_logs)
    _add_command(actions)
    server_view.add_actions(actions)
    add_action(actions)
    add_actions(actions)


def _add_command(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = actions.add_parser(
        "command",
        help="print the exact command line of a profile, one flag a line",
        description="Prints what would be run, for bash: one flag a line, each with its reason. Nothing is "
        "started. Exit code 2 when the server could not do what the profile says.",
    )
    command.add_argument(
        "profile",
        nargs="?",
        metavar="PROFILE",
        help="a name, or a path to a .toml file (default: the profile of your settings)",
    )
    target = command.add_mutually_exclusive_group()
    target.add_argument(
        "--binary", metavar="PATH", help="the llama-server to ask; default: the one that would be started"
    )
    target.add_argument("--dialect", choices=DIALECTS, help="without a binary: what this family understands")
    command.add_argument("--models", metavar="DIR", help="folder of the model files; default: your settings")
    command.add_argument("--host", help="instead of the profile's")
    command.add_argument("--port", type=_port, metavar="N", help="instead of the profile's")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="arguments, warnings and refusals as JSON")
    form.add_argument("--one-line", action="store_true", help="one line, for any shell")
    command.set_defaults(func=run_command)


def _add_force(action: argparse.ArgumentParser) -> None:
    action.add_argument("--force", action="store_true", help="also one that is answering somebody's request")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 1 to 65535")
    return int(text)


def run_start(arguments: argparse.Namespace) -> int:
    """Starts the server, or finds that it runs."""
    import asyncio

    from agent.cli.progress import ProgressLine

    serving = _managed(arguments.profile)
    line = ProgressLine()
    begin = time.monotonic()

    def show(event: "ServerState") -> None:
        if event.state == "warning":
            line.end(f"warning: {event.detail}")
        else:
            line.show(f"{event.state} {event.elapsed_seconds:.0f} s: {event.detail}", event.detail)

    try:
        endpoint = asyncio.run(serving.endpoint(show))
    finally:
        line.end()
    print(
        f"{endpoint.profile}: ready at {endpoint.base_url} after {time.monotonic() - begin:.1f} s, "
        f"context {endpoint.context_tokens} tokens, process {endpoint.pid}",
        file=sys.stderr,
    )
    return 0


def run_stop(arguments: argparse.Namespace) -> int:
    """Stops servers, those that are at work only with --force.

    Raises:
        UsageError: an unknown profile.
        ServerError: one is answering a request and was left running.
    """
    import asyncio

    from agent.core.errors import ServerError
    from agent.resources import runtime_folder
    from agent.server.probe import is_busy, stays_busy
    from agent.server.process import stop_server
    from agent.server.record import list_records

    folder = runtime_folder()
    records = list_records(folder)
    if arguments.profile is not None:
        name = _name_of(arguments.profile, records)
        records = [record for record in records if record.profile == name]
    stopped = 0
    for record in records:
        if not arguments.force and record.is_running and stays_busy(record):
            raise ServerError(
                f"the server of profile {record.profile!r} (process {record.pid}) is answering a request, "
                "so it is left running",
                f"wait until it is done, or end that too: `agent server stop --force {record.profile}`",
            )
        if record.is_running and is_busy(record):
            print(f"{record.profile}: was answering a request, which ends now", file=sys.stderr)
        outcome = asyncio.run(stop_server(record, folder))
        stopped += outcome == "stopped"
        print(f"{record.profile}: {outcome.replace('-', ' ')} (process {record.pid})", file=sys.stderr)
    if not stopped:
        whose = f" of profile {arguments.profile}" if arguments.profile else ""
        print(f"no server{whose} was running", file=sys.stderr)
    return 0


def _name_of(profile: str, records: "Sequence[Record]") -> str:
    """The name of a profile that is there, or that a server was started with. Raises UsageError."""
    from agent.resources import places_of_profiles
    from agent.server.profile_files import find_profile

    if any(record.profile == profile for record in records):
        return profile
    return find_profile(profile, places_of_profiles()).stem


def run_restart(arguments: argparse.Namespace) -> int:
    """Stops every server, then starts one. An unknown profile is noticed before anything is stopped."""
    _managed(arguments.profile)
    run_stop(argparse.Namespace(profile=None, force=arguments.force))
    return run_start(arguments)


def run_logs(arguments: argparse.Namespace) -> int:
    """Prints the end of a log, and with --follow what comes after."""
    from agent.core.errors import UsageError
    from agent.resources import state_folder

    logs = sorted((state_folder() / "logs").glob("server-*.log"), key=lambda path: path.stat().st_mtime)
    if arguments.profile:
        own = [path for path in logs if path.name == f"server-{arguments.profile}.log"]
        # Of a profile that is gone by now the log may still be read.
        name = arguments.profile if own else _name_of(arguments.profile, ())
        logs = [path for path in logs if path.name == f"server-{name}.log"]
    if not logs:
        whose = f" of profile {arguments.profile!r}" if arguments.profile else ""
        raise UsageError(f"there is no server log{whose}", "a log is written once a server was started")
    log_file = logs[-1]
    print(f"==> {log_file} <==", file=sys.stderr)
    text, position, number = _end_of(log_file)
    lines = text.splitlines(keepends=True)[-arguments.lines :] if arguments.lines > 0 else []
    # The rest of an unfinished line comes later, if anybody waits for it.
    unfinished = bool(lines) and not lines[-1].endswith("\n") and not arguments.follow
    print("".join(lines), end="\n" if unfinished else "", flush=True)
    if arguments.follow:
        _follow(log_file, position, number)
    return 0


def _end_of(log_file: Path) -> tuple[str, int, int]:
    """The last part of a log, how many bytes the whole had then, and the number of the file."""
    with log_file.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = file.seek(max(0, size - TAIL_BYTES))
        return file.read(size - start).decode("utf-8", "replace"), size, os.fstat(file.fileno()).st_ino


def run_command(arguments: argparse.Namespace) -> int:
    """Prints the command line of a profile; what the server cannot do goes to stderr."""
    from agent.app.servers.fitting import fit_to_machine
    from agent.config.load import find_project_root, load_settings
    from agent.core.errors import ExitCode
    from agent.resources import expand_home, places_of_profiles
    from agent.server.argv import Places, command_for
    from agent.server.profile_files import load_profile

    settings = load_settings(find_project_root(Path.cwd()), os.environ, {}).settings
    profile = load_profile(arguments.profile or settings.profile, places_of_profiles())
    capabilities = _capabilities(arguments, profile, settings.server.binary)
    fit = fit_to_machine(profile, settings.server.threads)
    profile = fit.profile
    folder = expand_home(arguments.models) if arguments.models else settings.models.folder
    files_by_path = {
        (None if arguments.models else file.found_in(folder)) or file.path_in(folder): file
        for file in profile.model_files
    }
    files = list(files_by_path)
    command = command_for(
        profile,
        capabilities,
        Places(
            program="llama-server" if capabilities.is_built_in else capabilities.source,
            target=str(files[0]) if files else "",
            draft=str(files[1]) if len(files) > 1 else "",
            host=arguments.host,
            port=arguments.port,
            threads=settings.server.threads,
        ),
    )
    if arguments.json:
        import json

        print(json.dumps({"server": capabilities.name, **command.as_table()}, indent=2))
        return int(ExitCode.USAGE) if command.refusals else 0
    for word, notices in (("refused", command.refusals), ("warning", command.warnings)):
        for notice in notices:
            hint = f"\nhint: {notice.hint}" if notice.hint else ""
            print(f"{word}: {notice.message}{hint}", file=sys.stderr)
    if command.refusals:
        return int(ExitCode.USAGE)
    for note in (
        *_notes_on(profile, files_by_path, capabilities.name),
        *([fit.why] if fit.batch_limit else []),
    ):
        print(f"note: {note}", file=sys.stderr)
    print(command.one_line + "\n" if arguments.one_line else command.script, end="")
    return 0


def _notes_on(profile: "Profile", files: "Mapping[Path, ModelFile]", server: str) -> "Iterator[str]":
    """What somebody who types the command has to know besides; `files` are those of the model."""
    from agent.resources import expand_home
    from agent.server.missing import is_downloadable

    for path, file in files.items():
        if not path.is_file():
            remedy = (
                f"see `agent model pull {profile.name}`" if is_downloadable(file) else "supply it yourself"
            )
            yield f"{path} is not there yet; {remedy}"
    for name in (profile.chat_template_file, profile.api_key_file, profile.slot_save_path):
        if name and not expand_home(name).exists():
            yield f"{name} is not there, and without it the server ends at once"
    if profile.engine in ("embedded", "llama-server"):
        yield f"for {server}"
    if profile.engine == "embedded":
        yield "this profile is served inside the program, without a command line"
    if profile.engine == "llama-server" and not profile.api_key_file:
        yield "`agent server start` adds a key file by itself, and closes CORS where the server can"


def _capabilities(arguments: argparse.Namespace, profile: "Profile", setting: str) -> "Capabilities":
    """Of the binary or dialect that is named, of the binary that `agent server start` takes, or a guess."""
    from agent.core.errors import ServerError
    from agent.resources import cache_folder, servers_folder
    from agent.server.binaries import find_binary
    from agent.server.caps import built_in, read_capabilities

    if arguments.binary:
        return read_capabilities(Path(arguments.binary), cache_folder())
    if not arguments.dialect:
        try:
            binary = find_binary(profile, servers_folder(), os.environ, setting)
        except ServerError:
            if setting:
                raise
        else:
            return read_capabilities(binary, cache_folder())
    return built_in(arguments.dialect or profile.dialect or "llama.cpp")


def _follow(log_file: Path, position: int, number: int) -> None:
    """Prints what is added behind `position`; ends with the program."""
    while True:
        time.sleep(FOLLOW_SECONDS)
        status = log_file.stat() if log_file.exists() else None
        size = status.st_size if status else 0
        # Another file, or a shorter one: the server was started again, or its log was cut.
        if size < position or (status and status.st_ino != number):
            position, number = 0, status.st_ino if status else number
        if size > position:
            with log_file.open("rb") as file:
                file.seek(position)
                added = file.read()
            position += len(added)
            print(added.decode("utf-8", "replace"), end="", flush=True)


def _managed(profile: str | None) -> "Serving":
    from agent.app.servers.serving import choose
    from agent.config.load import find_project_root, load_settings
    from agent.core.errors import UsageError

    flags = {"profile": profile} if profile else {}
    serving = choose(load_settings(find_project_root(Path.cwd()), os.environ, flags))
    if serving.is_managed:
        return serving
    name, engine = serving.profile.name, serving.profile.engine
    if engine in ("vllm", "sglang"):
        raise UsageError(
            f"a server of engine {engine} is not started from here",
            f"`agent server command {name}` prints the command that does; the profile uses what then runs",
        )
    raise UsageError(
        f"the server at {serving.profile.url} is not managed here",
        'choose a profile with engine = "embedded" or "llama-server", and leave url and server.url empty',
    )
