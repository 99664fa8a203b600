"""How MCP servers are written down: a table of our own configuration, or `.mcp.json` as other tools write it.

A server is a program that is started here (`command`), or an address (`url`). Values may name variables of
the environment, `${NAME}` or `${NAME:-default}`; they are replaced when the server is used, so that keys need
not stand in files.
"""

import fnmatch
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from agent.core.errors import UsageError
from agent.mcp.text import one_line

Transport = Literal["stdio", "http", "sse"]

START_SECONDS = 60.0
"""Package runners download on the first start, and interpreters start slowly on a busy machine."""

CALL_SECONDS = 120.0
LONGEST_NAME = 32
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9-])?")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TYPES: dict[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "remote": "http",
    "sse": "sse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One configured server, with variables not yet replaced.

    `start_seconds` is for connecting and listing, `call_seconds` for one call, counted anew with each sign of
    progress. `allow` and `deny` are globs over the server's own tool names; no `allow` means all.
    `source` says where it is written.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    enabled: bool = True
    source: str = ""

    @property
    def fingerprint(self) -> str:
        """Identifies what is run or asked, for what is remembered of it. Holds no value of a variable."""
        what = [self.name, self.transport, self.command, *self.args, self.cwd, self.url]
        names = [*sorted(self.env), *sorted(self.headers), *self.allow, "-", *self.deny]
        return hashlib.sha256(json.dumps([what, names]).encode("utf-8", "replace")).hexdigest()[:24]

    @property
    def summary(self) -> str:
        """The command line or the address, for people, as it is written and without values of `env`."""
        text = self.url or " ".join([self.command, *self.args])
        return one_line(_without_password(text), 200)

    def offers(self, tool: str) -> bool:
        """Whether the lists let a tool of the server through. `tool` is the server's own name for it."""
        if any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.deny):
            return False
        return not self.allow or any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.allow)


def check_name(name: str, where: str) -> str:
    """Returns `name`. Raises UsageError if it cannot be the name of a server."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME or "__" in name:
        shown = one_line(repr(name), 60)
        raise UsageError(
            f"{where}: {shown} cannot be the name of an MCP server",
            f"use up to {LONGEST_NAME} letters, digits, - and _, not two _ in a row nor one at the end",
        )
    return name


def parse_server(name: str, table: Mapping[str, Any], where: str) -> ServerSpec:
    """Reads one server in the form of `.mcp.json`, which our own tables share. Unknown keys are left alone.

    Args:
        name: how the server is called.
        table: its keys and values, of any type.
        where: the file, for messages and for `source`.

    Raises:
        UsageError: the name, or a value, cannot be used.
    """
    check_name(name, where)
    place = f"{where}: MCP server {name}"
    if not isinstance(table, Mapping):
        raise UsageError(f"{place} must be a table with a command or a url")
    command, args = _command(table, place)
    url = _text(table, "url", place) or _text(table, "serverUrl", place) or _text(table, "httpUrl", place)
    transport = _transport(table, command, url, place)
    enabled = table.get("enabled", True) is not False and table.get("disabled", False) is not True
    return ServerSpec(
        name=name,
        transport=transport,
        command=command,
        args=args,
        env=_texts_by_name(table, "env", place) or _texts_by_name(table, "environment", place),
        cwd=_text(table, "cwd", place),
        url=url,
        headers=_texts_by_name(table, "headers", place),
        start_seconds=_seconds(table, "start_seconds", START_SECONDS, place),
        call_seconds=_seconds(table, "call_seconds", CALL_SECONDS, place),
        allow=_texts(table, "allow", place) or _texts(table, "includeTools", place),
        deny=(*_texts(table, "deny", place), *_tools_left_out(table, place)),
        enabled=enabled,
        source=where,
    )


def parse_mcp_json(content: bytes, where: str) -> tuple[list[ServerSpec], list[str]]:
    """The servers of a `.mcp.json`, and a line for each entry that cannot be used.

    Raises:
        UsageError: it is no JSON of that form at all.
    """
    try:
        record = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not valid JSON: {one_line(str(error), 120)}") from None
    tables = record.get("mcpServers", record.get("servers", {})) if isinstance(record, dict) else None
    if not isinstance(tables, dict):
        raise UsageError(f'{where} has no table "mcpServers"', "see docs/mcp.md for its form")
    found, problems = [], []
    for name, table in tables.items():
        try:
            found.append(parse_server(name, table, where))
        except UsageError as error:
            problems.append(f"{error.message}; it is left out")
    return found, problems


def expanded(text: str, environment: Mapping[str, str], where: str) -> str:
    """`text` with `${NAME}` and `${NAME:-default}` replaced. An empty variable counts as not set.

    Raises:
        UsageError: a variable without a default is not set.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        found = environment.get(name) or default
        if found is None:
            raise UsageError(f"{where}: the variable {name} is not set", f"set it, or write ${{{name}:-}}")
        return found

    return _VARIABLE.sub(value, text)


def expand_server(spec: ServerSpec, environment: Mapping[str, str]) -> ServerSpec:
    """`spec` with all variables replaced. Its fields hold secrets from then on. Raises UsageError."""
    where = f"{spec.source}: MCP server {spec.name}"

    def fill(text: str) -> str:
        return expanded(text, environment, where)

    return replace(
        spec,
        command=fill(spec.command),
        args=tuple(fill(text) for text in spec.args),
        env={name: fill(text) for name, text in spec.env.items()},
        cwd=fill(spec.cwd),
        url=fill(spec.url),
        headers={name: fill(text) for name, text in spec.headers.items()},
    )


def _command(table: Mapping[str, Any], place: str) -> tuple[str, tuple[str, ...]]:
    """The program and its arguments; some tools write both as one list."""
    command = table.get("command", "")
    args = _texts(table, "args", place)
    if isinstance(command, list) and command and all(isinstance(part, str) for part in command):
        return command[0], (*command[1:], *args)
    return _text(table, "command", place), args


def _transport(table: Mapping[str, Any], command: str, url: str, place: str) -> Transport:
    kind = _text(table, "type", place) or _text(table, "transport", place)
    if kind and kind not in _TYPES:
        raise UsageError(f"{place}: there is no type {one_line(kind, 40)!r}", "use stdio, http or sse")
    if bool(command) == bool(url):
        raise UsageError(f"{place} needs either a command or a url", "docs/mcp.md has examples of both")
    transport = _TYPES[kind] if kind else ("stdio" if command else "http")
    if (transport == "stdio") != bool(command):
        raise UsageError(f"{place}: type {kind} does not go with {'a command' if command else 'a url'}")
    if url and "${" not in url:
        _check_url(url, place)
    return transport


def _check_url(url: str, place: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise UsageError(f"{place}: the url must look like https://example.org/mcp")


def _text(table: Mapping[str, Any], key: str, place: str) -> str:
    value = table.get(key) or ""
    if not isinstance(value, str) or "\0" in value:
        raise UsageError(f"{place}: {key} must be a text")
    return value


def _texts(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    value = table.get(key) or ()
    usable = isinstance(value, list | tuple) and all(isinstance(x, str) and "\0" not in x for x in value)
    if not usable:
        raise UsageError(f"{place}: {key} must be a list of texts")
    return tuple(value)


def _tools_left_out(table: Mapping[str, Any], place: str) -> tuple[str, ...]:
    """What was left out of a server for another program, under the names that such programs have for it."""
    return tuple(name for key in ("excludeTools", "disabledTools") for name in _texts(table, key, place))


def _texts_by_name(table: Mapping[str, Any], key: str, place: str) -> dict[str, str]:
    value = table.get(key) or {}
    plain = (str, int, float)
    if not isinstance(value, Mapping) or not all(isinstance(item, plain) for item in value.values()):
        raise UsageError(f"{place}: {key} must be a table of names and texts")  # values may be secrets
    texts = {str(name): str(item) for name, item in value.items()}
    if any("\0" in part or "=" in name for name, item in texts.items() for part in (name, item)):
        raise UsageError(f"{place}: {key} has a name or value that cannot be used")
    return texts


def _seconds(table: Mapping[str, Any], key: str, default: float, place: str) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 24 * 3600:
        raise UsageError(f"{place}: {key} must be seconds, more than 0 and at most a day")
    return float(value)


def _without_password(text: str) -> str:
    return re.sub(r"(//)[^/@\s]+@", r"\1…@", text)
