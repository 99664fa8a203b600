"""Changing one value in the person's configuration file, with their comments and order kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.config.files import write_atomically
from agent.config.layers import (
    Mistake,
    decode,
    file_mistakes,
    flags_layer,
    flatten,
    parse_toml,
    read_file,
)
from agent.config.load import user_config_file
from agent.config.model import all_settings
from agent.config.text import closest, parse_value
from agent.core.errors import UsageError


def set_user_value(key: str, text: str, environment: Mapping[str, str]) -> tuple[Path, Any]:
    """Writes `key = text` into the person's file and returns the file and the typed value.

    Args:
        key: a dotted key, such as `limits.max_steps`.
        text: the value as it was typed; lists are TOML arrays or items with commas between them.

    Other unknown keys and wrong values in the file stay, and are no obstacle.

    Raises:
        UsageError: unknown key, wrong value, or the file cannot be read, changed safely or written.
    """
    kinds = {info.key: info.kind for info in all_settings()}
    value = parse_value(kinds.get(key, str), text)
    flags_layer({key: value})
    path = user_config_file(environment)
    text = decode(path, read_file(path) or b"")
    before = flatten(parse_toml(path, text))
    changed = with_value(path, text, key, value)
    # The person's file is worth more than this edit: what is written must be the old content plus one value.
    # Its other mistakes, if it has any, stay as they are.
    if not _says(path, changed, {**before, key: value}):
        raise UsageError(f"{path} is written in a way that cannot be changed safely; set {key} there by hand")
    write_atomically(path, changed)
    return path, value


def user_file_mistakes(environment: Mapping[str, str]) -> list[Mistake]:
    """The unknown keys and wrong values in the person's file. Raises UsageError where it cannot be read."""
    path = user_config_file(environment)
    return file_mistakes(path, decode(path, read_file(path) or b""))


def unset_user_value(key: str, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Takes `key` out of the person's file, so that its default holds again.

    Returns:
        The file, and whether the key was in it.

    Raises:
        UsageError: unknown key that is not in the file either, or the file cannot be read, changed safely or
            written.
    """
    path = user_config_file(environment)
    text = decode(path, read_file(path) or b"")
    table = parse_toml(path, text)
    before = flatten(table)
    known = [info.key for info in all_settings()]
    # A table goes as a whole only where it is none of ours.
    is_strange_table = key in table and not any(name.startswith(f"{key}.") for name in known)
    if key not in known and key not in before and not is_strange_table:
        close = closest(key, known)
        raise UsageError(
            f"unknown setting {key!r}",
            f"did you mean {close!r}?" if close else "see `agent config show --explain`",
        )
    if key not in before and not is_strange_table:
        return path, False
    changed = _without_value(path, text, key)
    after = {
        name: value
        for name, value in before.items()
        if name != key and not (is_strange_table and name.startswith(f"{key}."))
    }
    if not _says(path, changed, after):
        raise UsageError(f"{path} is written in a way that cannot be changed safely; remove {key} by hand")
    write_atomically(path, changed)
    return path, True


def _says(path: Path, text: str, values: Mapping[str, Any]) -> bool:
    return flatten(parse_toml(path, text)) == values


def _without_value(path: Path, text: str, key: str) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        table: Any = document
        # A name with a dot in quotes is one name, and one of the mistakes that are taken out this way.
        *sections, name = [key] if key in document else key.split(".")
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
