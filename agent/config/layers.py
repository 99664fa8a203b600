"""Reading one layer: a TOML file, the environment, the command line. Merging is `load.py`'s business."""

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent.config.model import McpServer, Settings, all_settings
from agent.config.text import closest, parse_value, printable, shorten, show_value
from agent.core.errors import UsageError
from agent.resources import FOLDER_VARIABLES

LayerName = Literal["default", "user", "project", "environment", "command line"]
LARGEST_FILE_BYTES = 1024 * 1024
VARIABLE_PREFIX = "AGENT_"
# A key that was pasted where the name of its variable belongs must not reach a terminal or a log.
NEVER_SHOWN = frozenset({"server.api_key_env", "server.url"})


@dataclass(frozen=True)
class Origin:
    """Where a value came from.

    `place` is a file or the name of a variable, `line` is counted from 1 where it is known. Values
    of list settings that add up have the contributions of lower layers in `earlier`.
    """

    layer: LayerName
    place: str = ""
    line: int | None = None
    earlier: tuple["Origin", ...] = ()

    def after(self, other: "Origin") -> "Origin":
        """This origin as the last contribution to a value that `other` began."""
        if other.layer == "default":
            return self
        first = Origin(other.layer, other.place, other.line)
        return Origin(self.layer, self.place, self.line, (*other.earlier, first))

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        own = f"{self.layer} {printable(self.place)}{line}".rstrip()
        return " + ".join([*(str(origin) for origin in self.earlier), own])


class Layer(NamedTuple):
    """The values that one place gives, by dotted key, checked, and where each stands."""

    values: Mapping[str, Any]
    origins: Mapping[str, Origin]


EMPTY_LAYER = Layer({}, {})


def read_file(path: Path) -> bytes | None:
    """The content of a configuration file, or None where there is none.

    Raises:
        UsageError: it is not a regular file (a FIFO would hang, a device never end), too big, or unreadable.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise UsageError(
                f"{printable(str(path))} is {kind}; the configuration is a TOML file of that name"
            )
        if status.st_size > LARGEST_FILE_BYTES:
            raise UsageError(f"{printable(str(path))} is too big for a configuration: {status.st_size} bytes")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{printable(str(path))} cannot be read: {error.strerror}") from error


def file_layer(name: LayerName, path: Path, content: bytes) -> Layer:
    """Parses and checks the TOML in `content`, which was read from `path`.

    Raises:
        UsageError: it is not UTF-8 or TOML, or has unknown keys or wrong values; names file, line and key.
    """
    text = decode(path, content)
    table = parse_toml(path, text)

    def origin_of(key: str) -> Origin:
        return Origin(name, str(path), line_of(text, key))

    _validate(table, lambda key: _file_position(path, text, key))
    values = _flatten(table)
    return Layer(values, {key: origin_of(key) for key in values})


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """Settings from `AGENT_*` variables, such as `AGENT_LIMITS_MAX_STEPS`. An empty one counts as not set.

    Raises:
        UsageError: a wrong value, or an unknown variable whose name is close to a known one. Other
            unknown names are left alone: build machines have `AGENT_*` variables of their own.
    """
    ours = {name: text for name, text in environment.items() if name.startswith(VARIABLE_PREFIX)}
    if not ours:
        return EMPTY_LAYER
    kinds = {variable_name(info.key): info for info in all_settings()}
    values: dict[str, Any] = {}
    for name, text in ours.items():
        if name in kinds and text:
            values[kinds[name].key] = parse_value(kinds[name].kind, text)
        elif name not in kinds and name not in FOLDER_VARIABLES:
            _refuse_if_misspelt(name, [*kinds, *FOLDER_VARIABLES])
    if not values:
        return EMPTY_LAYER
    _validate(nest(values), lambda key: f"environment variable {variable_name(key)}")
    return Layer(values, {key: Origin("environment", variable_name(key)) for key in values})


def flags_layer(flags: Mapping[str, object]) -> Layer:
    """Settings from the command line, by dotted key. None means that the flag was not given.

    Raises:
        UsageError: an unknown key or a wrong value.
    """
    kinds = {info.key: info.kind for info in all_settings()}
    values = {
        key: parse_value(kinds.get(key, str), value) if isinstance(value, str) else value
        for key, value in flags.items()
        if value is not None
    }
    if not values:
        return EMPTY_LAYER
    _validate(nest(values), lambda _key: "command line")
    return Layer(values, {key: Origin("command line") for key in values})


def variable_name(key: str) -> str:
    """The environment variable of a dotted key."""
    return VARIABLE_PREFIX + key.replace(".", "_").upper()


def decode(path: Path, content: bytes) -> str:
    """`content` as text; the mark that some editors put in front of UTF-8 is dropped."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{printable(str(path))}:{line}: not UTF-8 text; save the file as UTF-8") from error


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Parses `text`, read from `path`.

    Raises:
        UsageError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = (
            "nested too deeply" if isinstance(error, RecursionError) else shorten(printable(str(error)), 160)
        )
        raise UsageError(f"{printable(str(path))} is not valid TOML: {reason}") from error


def line_of(text: str, key: str) -> int | None:
    """The line (from 1) where a dotted key stands, else where its table begins.

    None for the rarer spellings of TOML: this only serves messages, so it is a search, not a parser.
    """
    table, _, name = key.rpartition(".")
    current, header_line = "", None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("["):
            current = line.partition("]")[0].strip("[ \t")
            if current == key:
                return number
            header_line = number if current == table else header_line
            continue
        before, equals, _ = line.partition("=")
        written = before.strip()
        if equals and ((current == table and written == name) or (not current and written == key)):
            return number
    return header_line


def _file_position(path: Path, text: str, key: str) -> str:
    line = line_of(text, key)
    return printable(str(path)) + (f":{line}" if line else "")


def _validate(table: dict[str, Any], where: Callable[[str], str]) -> None:
    from pydantic import ValidationError

    try:
        Settings.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        raise UsageError(f"{where(key)}: {_explain(first, key)}") from None


def _explain(error: Any, key: str) -> str:
    if error["type"] == "extra_forbidden":
        return _explain_unknown(key, is_table=isinstance(error["input"], dict))
    shown = printable(key)
    if error["type"] in ("model_type", "model_attributes_type"):
        return f"{shown} must be a table, written [{shown}]"
    if error["type"] == "tuple_type":
        return f'{shown} must be a list, written ["...", "..."]'
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if error["type"] == "path_type":
        message = "must be the path of a folder in quotes"
    if key in NEVER_SHOWN or key.startswith("mcp.servers."):
        return f"{shown} {message}"
    return f"{shown} {message}, not {shorten(show_value(error['input']))}"


def _explain_unknown(key: str, *, is_table: bool) -> str:
    keys = [info.key for info in all_settings()]
    if key.startswith("mcp.servers."):
        fields = ", ".join(McpServer.model_fields)
        return f"unknown key '{shorten(printable(key))}'; an MCP server has {fields}"
    if key in keys:  # TOML takes "limits.max_steps" in quotes for one name with a dot in it
        return f"'{key}' must be written without quotes"
    tables = list(dict.fromkeys(known.partition(".")[0] for known in keys if "." in known))
    guess = closest(key, tables if is_table else keys)
    if not guess and not is_table:
        guess = closest(key, tables)
    remedy = f"did you mean '{guess}'?" if guess else "`agent config show` lists all settings"
    return f"unknown {'table' if is_table else 'key'} '{shorten(printable(key))}'; {remedy}"


def _refuse_if_misspelt(name: str, known: list[str]) -> None:
    import difflib

    # The common prefix would make every two names look alike.
    suffixes = [other.removeprefix(VARIABLE_PREFIX) for other in known]
    close = difflib.get_close_matches(name.removeprefix(VARIABLE_PREFIX), suffixes, n=1, cutoff=0.85)
    if close:
        raise UsageError(
            f"unknown environment variable {printable(name)}; did you mean {VARIABLE_PREFIX}{close[0]}?"
        )


def _flatten(table: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            flat[key] = value
    return flat


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as the tables of a file."""
    table: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section:
            table.setdefault(section, {})[name] = value
        else:
            table[name] = value
    return table
