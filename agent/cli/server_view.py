"""`agent server status`, `open` and `fit`: what is to be seen of a server, and of one that is to come."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.server.profile import Profile
    from agent.server.record import Record
    from agent.server.status import ServerStatus


def add_actions(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the three actions to `agent server`."""
    status = actions.add_parser("status", help="which servers run; exit code 1 when there is none")
    status.add_argument("--json", action="store_true", help="a JSON array on stdout")
    status.set_defaults(func=run_status)
    page = actions.add_parser("open", help="open the web page of a running server in your browser")
    page.add_argument("profile", nargs="?", metavar="PROFILE", help="default: the server started last")
    page.set_defaults(func=run_open)
    fit = actions.add_parser(
        "fit",
        help="what a profile takes of memory, and what would make it fit",
        description="Adds up weights, context and buffers against what this machine has free. Exit code 1 "
        "when it does not fit.",
    )
    fit.add_argument(
        "profile",
        nargs="?",
        metavar="PROFILE",
        help="a name, or a path to a .toml file (default: the profile of your settings)",
    )
    fit.add_argument(
        "--online",
        action="store_true",
        help="of files that are not here fetch the header alone (at most 16 MB each, from Hugging Face)",
    )
    fit.add_argument("--json", action="store_true", help="the figures as JSON on stdout")
    fit.set_defaults(func=run_fit)


def run_status(arguments: argparse.Namespace) -> int:
    """Prints every server that was started here and not stopped."""
    from agent.resources import runtime_folder
    from agent.server.status import all_statuses

    statuses = all_statuses(runtime_folder())
    if arguments.json:
        import json
        from dataclasses import asdict

        print(json.dumps([asdict(status) for status in statuses], indent=2))
    else:
        for status in statuses:
            print("\n".join(status_lines(status)))
        if not statuses:
            print(_where_there_is_one(), file=sys.stderr)
    return 0 if any(status.state != "ended" for status in statuses) else 1


def _where_there_is_one() -> str:
    """What to do where nothing runs that was started here."""
    from agent.app.servers.serving import choose
    from agent.config.load import find_project_root, load_settings
    from agent.core.errors import AgentError

    none = "no server is running; start one with `agent server start`"
    try:
        serving = choose(load_settings(find_project_root(Path.cwd()), os.environ, {}))
    except AgentError:  # said by whatever needs the settings
        return none
    address = serving.profile.url
    if serving.is_managed or not address:
        return none
    return f"no server was started here; your settings use the one at {address}, which `agent doctor` asks"


def status_lines(status: "ServerStatus") -> list[str]:
    """One server for people: a line of figures, one about the program, one for each thing that is wrong."""
    parts = [f"{status.profile}: {status.state}", f"process {status.pid}", f"port {status.port}"]
    if status.context_tokens:
        parts.append(f"context {status.context_tokens} tokens")
    if status.state == "ready":
        busy = "busy" if status.busy_slots is None else f"{status.busy_slots} of {status.slots} slots busy"
        parts.append(busy)
    if status.memory_bytes:
        parts.append(f"{_memory(status.memory_bytes)} of memory")
    if status.state != "ended":
        parts.append(f"up {_duration(status.uptime_seconds)}")
    program = [status.engine, *([status.version] if status.version else []), f"at {status.url}"]
    reads = f", reads {status.batch_limit} tokens at once" if status.batch_limit else ""
    lines = [", ".join(parts), f"  {' '.join(program)}; {_drafting(status)}{reads}"]
    if status.problem:
        lines.append(f"  {status.problem} (log: {status.log_file})")
    lines += [
        f"  {finding.get('level', 'warning')}: {finding.get('message', '')}"
        for finding in status.findings
        if finding.get("level") != "info"
    ]
    return lines


def run_open(arguments: argparse.Namespace) -> int:
    """Opens the server's own page, or says where it is."""
    import webbrowser

    record = _running(arguments.profile)
    url, key_file = (record.base_url, record.key_file) if record else (_address(arguments.profile), "")
    if record is not None and record.engine == "embedded":
        from agent.core.errors import UsageError

        raise UsageError(
            f"the server of profile {record.profile!r} has no web page: it runs inside this program",
            'use a profile with engine = "llama-server", or talk to the model with `agent`',
        )
    print(url)
    if key_file:
        print(
            f"the page asks for a key (Settings, API key); it is in {key_file}: copy it from there",
            file=sys.stderr,
        )
    try:
        opened = webbrowser.open(url)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        print("no browser was found here; open the address in one yourself", file=sys.stderr)
    return 0


def run_fit(arguments: argparse.Namespace) -> int:
    """Prints what a profile would take, before anything is started or downloaded."""
    from dataclasses import replace

    from agent.app.servers.fitting import fit_to_machine
    from agent.config.load import find_project_root, load_settings
    from agent.core.errors import ModelFileError
    from agent.resources import cache_folder, places_of_profiles
    from agent.server.fit_report import fit_report, render_fit
    from agent.server.hardware import detect_hardware
    from agent.server.profile_files import load_profile

    settings = load_settings(find_project_root(Path.cwd()), os.environ, {}).settings
    profile = load_profile(arguments.profile or settings.profile, places_of_profiles())
    models = settings.models.folder
    profile = _for_the_program(profile, settings.server.binary)
    headers = None
    try:
        if arguments.online:
            from agent.server.distant_header import headers_from_hub

            headers = headers_from_hub(profile, cache_folder() / "headers", models_folder=models)
        fit = fit_to_machine(profile, settings.server.threads)
        report = fit_report(fit.profile, models, detect_hardware(models), headers=headers)
        report = replace(report, notes=(*report.notes, fit.why)) if fit.why else report
    except ModelFileError as error:
        from agent.app.servers.planning import with_profile

        raise ModelFileError(
            error.message, with_profile(error.hint, arguments.profile or settings.profile)
        ) from error
    if arguments.json:
        import json
        from dataclasses import asdict

        print(json.dumps(asdict(report), indent=2, default=str))
    else:
        print(render_fit(report), end="")
    return 0 if report.usable else 1


def _for_the_program(profile: "Profile", setting: str) -> "Profile":
    """With the dialect of the llama-server that is there: how much a drafter keeps depends on it."""
    from agent.core.errors import AgentError
    from agent.resources import cache_folder, servers_folder
    from agent.server.binaries import find_binary
    from agent.server.caps import read_capabilities

    if profile.engine != "llama-server":
        return profile
    try:
        binary = find_binary(profile, servers_folder(), os.environ, setting)
        dialect = read_capabilities(binary, cache_folder()).dialect
    except AgentError:
        return profile  # planned before a program is there
    return profile.model_copy(update={"dialect": dialect})


def _running(profile: str | None) -> "Record | None":
    from agent.resources import runtime_folder
    from agent.server.record import list_records

    found = [
        record
        for record in list_records(runtime_folder())
        if profile in (None, record.profile) and record.state == "ready" and record.is_running
    ]
    return found[-1] if found else None


def _address(profile: str | None) -> str:
    """Of a server that runs elsewhere. Raises ServerError where there is none."""
    from agent.app.servers.serving import choose
    from agent.config.load import find_project_root, load_settings
    from agent.core.errors import ServerError

    flags = {"profile": profile} if profile else {}
    serving = choose(load_settings(find_project_root(Path.cwd()), os.environ, flags))
    url = serving.profile.url
    if serving.is_managed or not url:
        raise ServerError(
            f"no server of profile {serving.profile.name!r} is running",
            f"start it with `agent server start {serving.profile.name}`",
        )
    return url.rstrip("/").removesuffix("/v1")


def _drafting(status: "ServerStatus") -> str:
    if status.degraded:
        return "runs without its draft model, with which it crashed or was slower"
    if status.speculation == "none":
        return "drafts nothing"
    if status.speculates is False:
        return f"{status.speculation} is OFF: it drafts nothing"
    limit = f", at most {status.draft_limit} at once: longer drafts did not pay" if status.draft_limit else ""
    return f"drafts with {status.speculation}{limit}"


def _memory(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def _duration(seconds: float) -> str:
    minutes = int(seconds) // 60
    if minutes < 1:
        return f"{int(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
