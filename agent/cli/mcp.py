"""`agent mcp`: other people's tools, from servers of the Model Context Protocol.

Servers are written in your configuration, [mcp.servers.NAME], or in a project's .mcp.json, which counts once
the project is trusted (`agent trust`). Nothing is started before the model asks for a tool.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.app.mcp.admin import Overview
    from agent.mcp.adapter import OfferedTool


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `mcp` and its actions."""
    parser = subparsers.add_parser(
        "mcp",
        help="add, list and try MCP servers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(func=list_servers, json=False)
    actions = parser.add_subparsers(
        title="actions", metavar="ACTION", parser_class=_before_dashes(type(parser))
    )
    listing = actions.add_parser("list", help="all servers, and what their tools cost")
    listing.add_argument("--json", action="store_true", help="a JSON array on stdout")
    listing.set_defaults(func=list_servers)
    _add_add(actions)
    for name, text, function in (
        ("get", "show one server and its tools", get_server),
        ("remove", "take a server out of your configuration", remove_server),
        ("test", "connect to a server, list its tools, and end it", test_server),
        ("login", "sign in to a server at an address, in a browser", log_in),
        ("logout", "forget the sign-in to a server", log_out),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("name", metavar="NAME", help="the server")
        action.set_defaults(func=function)
    importing = actions.add_parser("import", help="take over servers from other programs' files")
    importing.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", help="default: look in the usual places"
    )
    importing.add_argument("--yes", "-y", action="store_true", help="write them into your configuration")
    importing.set_defaults(func=import_servers)
    logs = actions.add_parser("logs", help="what a server said on its standard error")
    logs.add_argument("name", metavar="NAME", help="the server")
    logs.add_argument("-n", "--lines", metavar="N", type=int, default=50, help="how many lines (default: 50)")
    logs.set_defaults(func=show_logs)


def _before_dashes(base: type[argparse.ArgumentParser]) -> type[argparse.ArgumentParser]:
    """Parsers that read what is before `--`; what is behind it, with options of its own, is `command`."""

    class BeforeDashes(base):
        def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
            words = list(sys.argv[1:] if args is None else args)
            at = words.index("--") if "--" in words else len(words)
            found, unknown = super().parse_known_args(words[:at], namespace)
            found.command = words[at + 1 :]
            return found, unknown

    return BeforeDashes


def _add_add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    adding = actions.add_parser(
        "add",
        help="write a server into your configuration, and try it",
        usage="agent mcp add NAME [OPTIONS] -- COMMAND [ARGUMENTS]\n"
        "       agent mcp add NAME --url URL [OPTIONS]",
        description="Writes a server into your configuration, and tries it.\n\n"
        "  agent mcp add time -- uvx mcp-server-time\n"
        "  agent mcp add docs --url https://example.org/mcp",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    adding.add_argument("name", metavar="NAME", help="how it is called here")
    adding.add_argument("--url", metavar="URL", default="", help="address of a server that runs already")
    adding.add_argument("--sse", action="store_true", help="the address speaks the older SSE form")
    adding.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="set for the program"
    )
    adding.add_argument(
        "--header",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help='such as "Authorization=Bearer ${KEY}"',
    )
    adding.add_argument("--no-test", action="store_true", help="do not connect to it")
    adding.set_defaults(func=add_server)


def list_servers(arguments: argparse.Namespace) -> int:
    """Prints a line for each server; what it would cost with all schemas, and what all cost unused."""
    from agent.app.mcp.admin import overview

    found = overview(Path.cwd())
    for notice in found.notices:
        print(f"! {notice}", file=sys.stderr)
    if arguments.json:
        _print_json(found)
        return 0
    if not found.rows and not found.off:
        print("no MCP servers; `agent mcp add NAME -- COMMAND` adds one", file=sys.stderr)
        return 0
    rate = found.rate
    width = max(len(name) for name in (*(row.spec.name for row in found.rows), *found.off))
    for row in found.rows:
        tools = "never connected" if row.tools is None else f"{row.tools} tools"
        cost = "" if row.tokens is None else f"~{row.tokens} tokens{_seconds(row.tokens, rate)}"
        print(f"{row.spec.name:<{width}}  {tools:<15}  {cost:<28}  {row.spec.summary}")
    for name in found.off:
        print(f"{name:<{width}}  switched off")
    if not found.rows:
        return 0
    way = "offered with their schemas" if found.is_direct else "behind mcp_find and mcp_call"
    total = f"~{found.prompt_tokens} tokens{_seconds(found.prompt_tokens, rate)}"
    print(f"unused they add {total} to a session ({way})", file=sys.stderr)
    return 0


def _seconds(tokens: int, rate: float | None) -> str:
    return f", {tokens / rate:.1f} s of prefill" if rate else ""


def _print_json(found: "Overview") -> None:
    import json

    servers = [
        {
            "name": row.spec.name,
            "what": row.spec.summary,
            "source": row.spec.source,
            "tools": row.tools,
            "tokens": row.tokens,
            "prefill_seconds": row.tokens / found.rate if found.rate and row.tokens is not None else None,
        }
        for row in found.rows
    ]
    record = {"servers": servers, "off": found.off}
    print(json.dumps({**record, "prompt_tokens": found.prompt_tokens, "direct": found.is_direct}))


def add_server(arguments: argparse.Namespace) -> int:
    """Writes a server into the person's file and tries it. Exit code 1 when it does not work."""
    import os

    from agent.config.mcp_edit import set_server
    from agent.core.errors import UsageError
    from agent.mcp.config import parse_server

    table: dict[str, object] = {}
    if arguments.command:
        table["command"] = arguments.command[0]
        table["args"] = arguments.command[1:]
    if arguments.url:
        table["url"] = arguments.url
    if arguments.sse:
        table["type"] = "sse"
    for key, pairs in (("env", arguments.env), ("headers", arguments.header)):
        for pair in pairs:
            if not pair.partition("=")[1] or not pair.partition("=")[0]:
                raise UsageError(f"--{'env' if key == 'env' else 'header'} takes NAME=VALUE")
        if pairs:
            table[key] = dict(pair.split("=", 1) for pair in pairs)
    spec = parse_server(arguments.name, table, "the command line")
    if spec.transport == "stdio" and arguments.header:
        raise UsageError("--header is for a server at an address", "a program gets its keys with --env")
    if spec.transport != "stdio" and arguments.env:
        raise UsageError("--env is for a program", "a server at an address gets its keys with --header")
    former = _former_server(arguments.name)
    path = set_server(arguments.name, {key: value for key, value in table.items() if value}, os.environ)
    if former:
        print(f"{arguments.name} is replaced in {path}; it was: {former}", file=sys.stderr)
    else:
        print(f"{arguments.name} is written to {path}", file=sys.stderr)
    code = 0 if arguments.no_test else _test(arguments.name)
    if code:
        print(f"it is kept all the same; `agent mcp remove {arguments.name}` takes it out", file=sys.stderr)
    return code


def _former_server(name: str) -> str:
    """The command or address of the person's server of that name, empty where there is none."""
    import os

    from agent.config.load import read_user_layer
    from agent.config.text import printable
    from agent.core.errors import UsageError
    from agent.mcp.config import parse_server

    table = read_user_layer(os.environ).values.get("mcp.servers", {}).get(name)
    if table is None:
        return ""
    try:
        return printable(parse_server(name, table, "your configuration").summary)
    except UsageError:
        return "a server that could not be used"


def get_server(arguments: argparse.Namespace) -> int:
    """Prints how a server is configured, names of variables without values, and its tools."""
    from agent.app.mcp.admin import known_tools, server_named
    from agent.app.mcp.sign_in import is_signed_in

    spec = server_named(Path.cwd(), arguments.name)
    print(f"{spec.name}: {spec.transport}, {spec.summary}")
    for label, values in (
        ("env", spec.env),
        ("headers", spec.headers),
        ("allow", spec.allow),
        ("deny", spec.deny),
    ):
        if values:
            print(f"  {label}: {', '.join(values)}")
    print(f"  start {spec.start_seconds:g} s, call {spec.call_seconds:g} s, from {spec.source}")
    if is_signed_in(spec):
        print(f"  signed in; `agent mcp logout {spec.name}` forgets that")
    known = known_tools(spec)
    if known is None:
        print(f"its tools are not known yet; `agent mcp test {spec.name}` asks it", file=sys.stderr)
        return 0
    _print_tools(known[0], known[1])
    return 0


def remove_server(arguments: argparse.Namespace) -> int:
    """Takes a server out of the person's file."""
    import os

    from agent.app.mcp.sign_in import sign_out
    from agent.config.mcp_edit import remove_server as remove

    path = remove(arguments.name, os.environ)
    print(f"{arguments.name} is gone from {path}", file=sys.stderr)
    if sign_out(arguments.name):
        print("the sign-in to it is forgotten, too", file=sys.stderr)
    return 0


def test_server(arguments: argparse.Namespace) -> int:
    """Connects to a server once. Exit code 1 when it does not work."""
    return _test(arguments.name)


def _test(name: str) -> int:
    import asyncio

    from agent.app.mcp.admin import last_log_lines, log_end, server_named, try_server
    from agent.config.text import printable
    from agent.core.errors import AgentError, ExitCode

    spec = server_named(Path.cwd(), name)
    before = log_end(name)
    try:
        trial = asyncio.run(try_server(spec, Path.cwd()))
    except AgentError as error:
        print(f"agent: {error}", file=sys.stderr)
        said = last_log_lines(name, 5, since=before)[1] if spec.transport == "stdio" else []
        for line in dict.fromkeys(said):
            if line.strip() not in str(error):
                print(f"  {printable(line)}", file=sys.stderr)
        return int(ExitCode.NOT_SOLVED)
    print(
        f"{name} works: {trial.about or 'no name'}, {trial.seconds:.1f} s, {len(trial.tools)} tools",
        file=sys.stderr,
    )
    _print_tools(list(trial.tools), list(trial.problems))
    return 0


def _print_tools(tools: "list[OfferedTool]", problems: list[str]) -> None:
    for tool in tools:
        print(f"{tool.name}{'  (read only)' if tool.access == 'read' else ''}  {tool.description}".rstrip())
    for problem in problems:
        print(f"! {problem}", file=sys.stderr)


def log_in(arguments: argparse.Namespace) -> int:
    """Signs in to a remote server. The address to open goes to standard error."""
    import asyncio

    from agent.app.mcp.admin import server_named
    from agent.app.mcp.sign_in import sign_in
    from agent.config.text import printable

    spec = server_named(Path.cwd(), arguments.name)
    tools = asyncio.run(sign_in(spec, Path.cwd(), lambda text: print(printable(text), file=sys.stderr)))
    print(f"signed in to {spec.name}, which offers {tools} tools", file=sys.stderr)
    return 0


def log_out(arguments: argparse.Namespace) -> int:
    """Forgets a sign-in. Exit code 1 where there was none."""
    from agent.app.mcp.sign_in import sign_out

    count = sign_out(arguments.name)
    text = "is forgotten" if count else "was never made or is forgotten already"
    print(f"the sign-in to {arguments.name} {text}", file=sys.stderr)
    return 0 if count else 1


def import_servers(arguments: argparse.Namespace) -> int:
    """Shows the servers of other programs; with --yes writes those that are new into the person's file."""
    import os

    from agent.app.mcp.admin import as_table, foreign_files, overview, read_foreign
    from agent.config.mcp_edit import set_server
    from agent.config.text import printable
    from agent.core.errors import UsageError

    files = [arguments.file] if arguments.file else foreign_files(Path.cwd(), os.environ)
    here = overview(Path.cwd())
    taken = {*(row.spec.name for row in here.rows), *here.off}
    new = 0
    for file in files:
        try:
            specs, problems = read_foreign(file)
        except UsageError:
            if arguments.file:
                raise
            continue  # such files may well have no servers
        for problem in problems:
            print(f"! {printable(problem)}", file=sys.stderr)
        for spec in specs:
            known = spec.name in taken
            note = ", a server of that name is there" if known else "" if spec.enabled else ", switched off"
            print(f"{spec.name}: {printable(spec.summary)}  ({file}{note})")
            if known:
                continue
            taken.add(spec.name)
            new += 1
            if arguments.yes:
                set_server(spec.name, as_table(spec), os.environ)
    if not new:
        print("nothing new to import", file=sys.stderr)
    elif arguments.yes:
        print(
            f"{new} servers are written to your configuration; `agent mcp test NAME` tries one",
            file=sys.stderr,
        )
    else:
        print("nothing is written yet; --yes takes over what is new", file=sys.stderr)
    return 0


def show_logs(arguments: argparse.Namespace) -> int:
    """Prints the end of a server's log. Exit code 1 where there is none."""
    from agent.app.mcp.admin import last_log_lines
    from agent.config.text import printable
    from agent.mcp.config import check_name

    check_name(arguments.name, "the command line")
    path, lines = last_log_lines(arguments.name, max(1, arguments.lines), times=True)
    if not lines:
        print(f"{path} is empty or not there", file=sys.stderr)
        return 1
    print("\n".join(printable(line) for line in lines))
    return 0
