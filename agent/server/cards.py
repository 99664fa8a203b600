"""Model cards: what is known of a family of models, whoever serves them. One TOML file each.

They lie in `cards` beside the profiles, the person's own before those that come along. A card gives values
for keys that a profile leaves open. Which card it is says the profile (`card`), else the names that the model
goes by, else the architecture in the header of its file.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import ModelFileError, UsageError
from agent.core.likeness import did_you_mean

FOLDER = "cards"
DEFAULT = "default"
AUTO, NONE = "auto", "none"
_TABLES = ("sampling", "tools", "model_card", "template_arguments")
_OF_THE_SERVER = (
    "reasoning", "reasoning_budget", "reasoning_format", "preserve_reasoning", "template_arguments",
)  # fmt: skip
_ONLY_AT_ITS_START = ("reasoning_budget", "reasoning_format")
"""For servers that are started here or by our command; the others are told the rest with each request."""
_ABOUT_ITSELF = ("title", "traps", "match", "reasoning_arguments")
_KEYS = (*_ABOUT_ITSELF, *_TABLES, *_OF_THE_SERVER[:-1])
_MATCHING = ("names", "architectures")
_LARGEST_FILE_BYTES = 100_000
_SEPARATORS = re.compile(r"[\s_]+")


@dataclass(frozen=True, slots=True)
class Card:
    """`values` are keys of a profile. `reasoning_arguments` is what the template is told for its `reasoning`.

    `traps` are sentences for people: what goes wrong with such a model, and what helps.
    """

    name: str
    path: Path
    title: str
    names: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    reasoning_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    traps: tuple[str, ...] = ()


def list_cards(folders: Sequence[Path]) -> list[Card]:
    """Every card of `folders` (of profiles), by name; an earlier folder hides a name of a later one.

    Raises:
        UsageError: one of them is wrong.
    """
    return [read_card(path) for path in _files(folders).values()]


def find_card(name: str, folders: Sequence[Path]) -> Card:
    """The card of that name.

    Raises:
        UsageError: there is none, or it is wrong.
    """
    files = _files(folders)
    if name not in files:
        hint = did_you_mean(name, files, f"there are: {', '.join(files)}, auto and none", cutoff=0.5)
        raise UsageError(f"unknown model card {name!r}", hint)
    return read_card(files[name])


def card_called(names: Sequence[str], folders: Sequence[Path]) -> Card | None:
    """The card of a model by what it is called. Of several that fit the one with the longest name counts.

    Raises:
        UsageError: one of the cards is wrong.
    """
    return _called(names, list_cards(folders)) if any(names) else None


def _called(names: Sequence[str], cards: Iterable[Card]) -> Card | None:
    called = [_plain(name) for name in names if name]
    fits = [
        (len(part), card)
        for card in cards
        for part in map(_plain, card.names)
        if any(_says(name, part) for name in called)
    ]
    return max(fits, key=lambda fit: fit[0])[1] if fits else None


def card_for(names: Sequence[str], architecture: str, folders: Sequence[Path]) -> Card | None:
    """The card of a model by what it is called, else by its architecture, else the default one.

    Raises:
        UsageError: one of the cards is wrong.
    """
    cards = list_cards(folders)
    found = _called(names, cards)
    if found is not None:
        return found
    by_kind = (card for card in cards if architecture and architecture in card.architectures)
    return next(by_kind, next((card for card in cards if card.name == DEFAULT), None))


def identity_of(path: Path) -> tuple[tuple[str, ...], str]:
    """What a model file calls its model, and its architecture; nothing where it cannot be read."""
    from agent.server.gguf import read_general

    try:
        general = read_general(path)
    except ModelFileError:
        return (), ""
    names = (general.get(f"general.{key}") for key in ("name", "basename", "finetune"))
    kind = general.get("general.architecture")
    return tuple(name for name in names if isinstance(name, str)), kind if isinstance(kind, str) else ""


def read_card(path: Path) -> Card:
    """One card. What its values may be is for the profile to say, see `agent.server.profile_files`.

    Raises:
        UsageError: it cannot be read, is no TOML, or has a key that is not known.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise UsageError(f"{path} is too big for a model card", "a card is a small TOML file")
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the model card {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"the model card {path} is not valid TOML: {error}", "correct that line") from error
    _refuse_unknown(path, table, _KEYS, "")
    match = _table(path, table, "match")
    _refuse_unknown(path, match, _MATCHING, "match.")
    arguments = _table(path, table, "reasoning_arguments")
    _refuse_unknown(path, arguments, ("on", "off"), "reasoning_arguments.")
    for key in _TABLES:
        _table(path, table, key)
    return Card(
        name=path.stem,
        path=path,
        title=_text(path, table, "title") or path.stem,
        names=_words(path, match, "names"),
        architectures=_words(path, match, "architectures"),
        values={key: value for key, value in table.items() if key not in _ABOUT_ITSELF},
        reasoning_arguments={key: _table(path, arguments, key) for key in arguments},
        traps=_words(path, table, "traps"),
    )


def completed(
    table: Mapping[str, Any], card: Card, *, is_started: bool, left_out: Iterable[str] = ()
) -> dict[str, Any]:
    """The table of a profile with the card's values where it has none of its own.

    Args:
        is_started: whether the server is a llama-server (or the embedded one) whose start the profile is for.
        left_out: keys that the engine of the profile does not know.
    """
    without = {*left_out, *(() if is_started else _ONLY_AT_ITS_START)}
    whole = dict(table)
    for key, value in card.values.items():
        if key in without:
            continue
        own = table.get(key)
        if isinstance(value, dict) and isinstance(own, dict):
            whole[key] = {**value, **own}
        elif own is None:
            whole[key] = dict(value) if isinstance(value, dict) else value
    told = card.reasoning_arguments.get(str(whole.get("reasoning")))
    if told:
        whole["template_arguments"] = {**told, **whole.get("template_arguments", {})}
    return whole


def _files(folders: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted((folder / FOLDER).glob("*.toml")):
            found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("-", name.lower())


def _says(name: str, part: str) -> bool:
    """Whether `part` stands in `name`, and neither begins in a word nor ends in a number."""
    return re.search(rf"(?<![a-z0-9]){re.escape(part)}(?![0-9])", name) is not None


def _refuse_unknown(path: Path, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known, f"known keys: {', '.join(known)}", cutoff=0.5)
            raise UsageError(f"the model card {path}: unknown key {prefix + key!r}", hint)


def _table(path: Path, table: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise UsageError(f"the model card {path}: {key} must be a table", f"write [{key}]")
    return value


def _text(path: Path, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"the model card {path}: {key} must be a text", "put it between quotes")
    return value


def _words(path: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise UsageError(f"the model card {path}: {key} must be a list of texts", f'{key} = ["..."]')
    return tuple(value)
