"""Changing one value in the person's configuration file, with their comments and order kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.config.files import write_atomically
from agent.config.layers import decode, file_layer, flags_layer, parse_toml, read_file
from agent.config.load import user_config_file
from agent.config.model import all_settings
from agent.config.text import closest, parse_value
from agent.core.errors import UsageError


def set_user_value(key: str, text: str, environment: Mapping[str, str]) -> tuple[Path, Any]:
    """Writes `key = text` into the person's file and returns the file and the typed value.

    Args:
        key: a dotted key, such as `limits.max_steps`.
        text: the value as it was typed; lists are TOML arrays or items with commas between them.

    Raises:
        UsageError: unknown key, wrong value, or the file cannot be read, changed safely or written.
    """
    kinds = {info.key: info.kind for info in all_settings()}
    value = parse_value(kinds.get(key, str), text)
    flags_layer({key: value})
    path = user_config_file(environment)
    content = read_file(path) or b""
    before = dict(file_layer("user", path, content).values)
    changed = with_value(path, decode(path, content), key, value)
    # The person's file is worth more than this edit: what is written must be the old content plus one value.
    if dict(file_layer("user", path, changed.encode("utf-8")).values) != {**before, key: value}:
        raise UsageError(f"{path} is written in a way that cannot be changed safely; set {key} there by hand")
    write_atomically(path, changed)
    return path, value


def unset_user_value(key: str, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Takes `key` out of the person's file, so that its default holds again.

    Returns:
        The file, and whether the key was in it.

    Raises:
        UsageError: unknown key, or the file cannot be read, changed safely or written.
    """
    known = [info.key for info in all_settings()]
    if key not in known:
        close = closest(key, known)
        raise UsageError(
            f"unknown setting {key!r}", f"did you mean {close!r}?" if close else "see `agent config show`"
        )
    path = user_config_file(environment)
    content = read_file(path) or b""
    before = dict(file_layer("user", path, content).values)
    if key not in before:
        return path, False
    changed = _without_value(path, decode(path, content), key)
    after = {name: value for name, value in before.items() if name != key}
    if dict(file_layer("user", path, changed.encode("utf-8")).values) != after:
        raise UsageError(f"{path} is written in a way that cannot be changed safely; remove {key} by hand")
    write_atomically(path, changed)
    return path, True


def _without_value(path: Path, text: str, key: str) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        table: Any = document
        *sections, name = key.split(".")
        for section in sections:
            table = table[section]
        del table[name]
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} cannot be changed safely; remove {key} there by hand") from error


def with_value(path: Path, text: str, key: str, value: Any) -> str:
    """The text of a configuration file with one value set; `path` is named in errors.

    Raises:
        UsageError: it is no TOML, or written in a way that cannot be changed safely.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    parse_toml(path, text)
    section, _, name = key.rpartition(".")
    try:
        document = tomlkit.parse(text)
        table: Any = document
        if section:
            if section not in document:
                document[section] = tomlkit.table()
            table = document[section]
        table[name] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} cannot be changed safely; set {key} there by hand") from error
