"""Reading one layer: a TOML file, the environment, the command line. Merging is `load.py`'s business."""

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent.config.model import McpServer, Settings, all_settings, default_settings, value_of
from agent.config.text import closest, parse_value, printable, shorten, show_value
from agent.core.errors import UsageError
from agent.core.likeness import most_alike
from agent.resources import FOLDER_VARIABLES

LayerName = Literal["default", "user", "project", "environment", "command line"]
LARGEST_FILE_BYTES = 1024 * 1024
VARIABLE_PREFIX = "AGENT_"
_FEW_KEYS = 8
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


class Mistake(NamedTuple):
    """An unknown key or a wrong value: its dotted key, and a line that says where and what."""

    key: str
    text: str


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

    found = _mistakes_in_order(table, path, text)
    values = flatten(table)
    if found:
        import shlex

        more = f" (and {len(found) - 1} more mistake{'s' if len(found) > 2 else ''})" if found[1:] else ""
        remedy = "correct it there"
        if name == "user" and found[0].key in values and found[0].key.isprintable():
            remedy += f", or take it out with `agent config unset {shlex.quote(found[0].key)}`"
        raise UsageError(found[0].text + more, f"{_what_it_is(found[0].key)}{remedy}")
    return Layer(values, {key: origin_of(key) for key in values})


def file_mistakes(path: Path, text: str) -> list[Mistake]:
    """The unknown keys and wrong values in a configuration file, the first in the file first.

    Raises:
        UsageError: it is not TOML.
    """
    return _mistakes_in_order(parse_toml(path, text), path, text)


def _mistakes_in_order(table: dict[str, Any], path: Path, text: str) -> list[Mistake]:
    found = _mistakes(table, lambda key: _file_position(path, text, key))
    return sorted(found, key=lambda mistake: line_of(text, mistake.key) or LARGEST_FILE_BYTES)


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
    _validate(
        nest(values),
        lambda key: f"environment variable {variable_name(key)}",
        "correct that variable, or unset it; `agent config show --explain` lists all settings",
    )
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
    _validate(
        nest(values),
        lambda _key: "command line",
        "`agent config show --explain` lists all settings",
    )
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
        raise UsageError(
            f"{printable(str(path))} is not valid TOML: {reason}",
            'correct it there: a table is written [name], a setting name = value, and text is in "quotes"',
        ) from error


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


def _validate(table: dict[str, Any], where: Callable[[str], str], hint: str) -> None:
    found = _mistakes(table, where)
    if found:
        text = found[0].text
        raise UsageError(text, f"{_what_it_is(found[0].key)}{'' if hint in text else hint}")


def _mistakes(table: dict[str, Any], where: Callable[[str], str]) -> list[Mistake]:
    from pydantic import ValidationError

    try:
        Settings.model_validate(table)
    except ValidationError as error:
        found: dict[str, Mistake] = {}
        for one in error.errors(include_url=False, include_context=False):
            key = ".".join(str(part) for part in one["loc"] if isinstance(part, str))
            found.setdefault(key, Mistake(key, f"{where(key)}: {_explain(one, key)}"))
        return list(found.values())
    return []


_PLAIN_WORDS = {
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid string": 'a text in "quotes"',
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}


def _what_it_is(key: str) -> str:
    """What a setting means and what it is if nobody says anything, for the hint to a wrong value of it."""
    info = next((info for info in all_settings() if info.key == key), None)
    if info is None or key in NEVER_SHOWN:
        return ""
    default = value_of(default_settings(Path()), key) if key != "models.folder" else None
    usual = "" if default in (None, "", (), {}) else f", by default {show_value(default)}"
    return f"{key} is: {info.description}{usual}; "


def _explain(error: Any, key: str) -> str:
    if error["type"] == "extra_forbidden":
        return _explain_unknown(key, is_table=isinstance(error["input"], dict))
    shown = printable(key)
    if error["type"] in ("model_type", "model_attributes_type"):
        return f"{shown} must be a table, written [{shown}]"
    if error["type"] == "tuple_type":
        return f'{shown} must be a list, written ["...", "..."]'
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    for learned, plain in _PLAIN_WORDS.items():
        message = message.replace(learned, plain)
    if error["type"] == "path_type":
        message = "must be the path of a folder in quotes"
    if key in NEVER_SHOWN or key == "ui.keys" or key.startswith("mcp.servers."):
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
    table = key.partition(".")[0]
    if not guess and not is_table:
        guess = closest(key, [other for other in tables if other != table])
    remedy = f"did you mean '{guess}'?" if guess else "`agent config show --explain` lists all settings"
    own = [known.partition(".")[2] for known in keys if known.startswith(f"{table}.")]
    if not guess and 0 < len(own) <= _FEW_KEYS:
        remedy = f"[{table}] has {', '.join(own)}"
    return f"unknown {'table' if is_table else 'key'} '{shorten(printable(key))}'; {remedy}"


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """`AGENT_*` variables that are no settings, each with the one that was probably meant, or nothing.

    They count for nothing, and many belong to other programs.
    """
    known = [*(variable_name(info.key) for info in all_settings()), *FOLDER_VARIABLES]
    names = [name for name in environment if name.startswith(VARIABLE_PREFIX) and name not in known]
    return {printable(name): _meant_variable(name, known, 0.7) for name in sorted(names)}


def _refuse_if_misspelt(name: str, known: list[str]) -> None:
    meant = _meant_variable(name, known, 0.85)
    if meant:
        raise UsageError(
            f"unknown environment variable {printable(name)}; did you mean {meant}?",
            f"correct it, or `unset {printable(name)}`",
        )


def _meant_variable(name: str, known: list[str], likeness: float) -> str:
    # The common prefix would make every two names look alike.
    suffixes = [other.removeprefix(VARIABLE_PREFIX) for other in known]
    close = most_alike(name.removeprefix(VARIABLE_PREFIX), suffixes, cutoff=likeness)
    return f"{VARIABLE_PREFIX}{close}" if close else ""


def flatten(table: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a file as dotted keys; what is deeper stays a table."""
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
