"""Where each value of a profile comes from: its own file, one that it extends, its model card, or nowhere."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.server.profile_files import card_of, find_profile, inherited, profile_tables, with_card

DEFAULT = "default"


def value_origins(name: str, folders: Sequence[Path]) -> dict[str, str]:
    """The origin of each value that is set, by its key with dots (`sampling.top_k`).

    A profile counts by its name, one of the same name as another that it extends by its path. What is not in
    the result is a default.

    Raises:
        UsageError: as `load_profile`.
    """
    tables = profile_tables(find_profile(name, folders), folders)
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    labels: set[str] = set()
    for path, table in reversed(tables):
        label = path.stem if path.stem not in labels else str(path)
        labels.add(label)
        merged = inherited(merged, table)
        own = set(_keys(table))
        origins = {key: label if key in own else origins[key] for key in _keys(merged)}
    card = card_of(merged, folders)
    if card is not None:
        origins = {
            key: origins.get(key, f"card {card.name}") for key in _keys(with_card(merged, card))
        }  # what the card was found by is no value of a file
    return origins


def _keys(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def with_origins(table: Mapping[str, Any], origins: Mapping[str, str]) -> str:
    """A profile as TOML, each value with its origin behind it."""
    import tomlkit

    document = tomlkit.parse(tomlkit.dumps(table))
    _comment(document.body, origins, "")
    return tomlkit.dumps(document)


def _comment(body: Sequence[tuple[Any, Any]], origins: Mapping[str, str], prefix: str) -> None:
    from tomlkit.items import AoT, Table

    for key, item in body:
        if isinstance(item, Table):
            _comment(item.value.body, origins, f"{prefix}{key.key}.")
        elif key is not None and not isinstance(item, AoT):
            item.comment(origins.get(f"{prefix}{key.key}", DEFAULT))
