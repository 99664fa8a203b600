"""Values as text: written by people in the environment or on a command line, and shown back to them."""

from pathlib import Path
from typing import Any, get_origin

from agent.core.likeness import most_alike

TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})


def parse_value(kind: Any, text: str) -> Any:
    """Turns `text` into what the type `kind` of a setting needs.

    Lists are TOML arrays, or items with commas between them; a comma inside parentheses belongs to
    the item, because rules look like `shell(git log, -p)`. Text that does not fit comes back as it
    is, so that validation reports it like a wrong value in a file.
    """
    if kind is bool:
        word = text.strip().lower()
        return word in TRUE_WORDS if word in TRUE_WORDS | FALSE_WORDS else text
    if kind is int or kind is float:
        try:
            return kind(text)
        except ValueError:
            return text
    if get_origin(kind) is tuple:
        return _parse_list(text)
    return text


def show_value(value: Any) -> str:
    """`value` as TOML, on one line, without any character that a terminal would act on or hide."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(show_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{printable(str(key))} = {show_value(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, str | Path):
        import json

        return printable(json.dumps(str(value), ensure_ascii=False))
    return printable(str(value))


def printable(text: str) -> str:
    """`text` with control, bidirectional and other invisible characters written as escapes."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def shorten(text: str, limit: int = 60) -> str:
    """`text` cut to `limit` characters, with a mark where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def closest(name: str, known: list[str]) -> str:
    """The known dotted key that `name` was probably meant to be, or an empty string."""
    leaf = name.rpartition(".")[2]
    same_leaf = [key for key in known if key.rpartition(".")[2] == leaf]
    if len(same_leaf) == 1:
        return same_leaf[0]
    by_leaf = {key.rpartition(".")[2]: key for key in known}
    return most_alike(name, known, cutoff=0.75) or by_leaf.get(most_alike(leaf, by_leaf, cutoff=0.8), "")


def _parse_list(text: str) -> Any:
    if text.lstrip().startswith("["):
        import tomllib

        try:
            return tomllib.loads(f"items = {text}")["items"]
        except (ValueError, RecursionError):
            return text
    items, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif char == "," and depth == 0:
            items.append(text[start:position])
            start = position + 1
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()]


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
