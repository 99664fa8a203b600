"""Finds profile files, follows `extends`, and turns mistakes in them into one clear line."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.core.errors import UsageError
from agent.core.likeness import did_you_mean
from agent.server import cards
from agent.server.model_file import FileSource, HubSource, ModelFile, PypiSource
from agent.server.profile import NOT_EMBEDDED, ModelCard, Profile, Sampling, Speculation, Tools

SUFFIX = ".toml"
_LARGEST_FILE_BYTES = 1_000_000
_SUBJECT_OF_TABLE = {"target": "file", "draft": "file", "speculation": "kind"}
_TABLES: dict[str, type[BaseModel]] = {
    "target": ModelFile,
    "draft": ModelFile,
    "file": FileSource,
    "hub": HubSource,
    "pypi": PypiSource,
    "speculation": Speculation,
    "sampling": Sampling,
    "tools": Tools,
    "model_card": ModelCard,
}


_SUB_TABLES = ("speculation", "sampling", "tools", "model_card", "target")
_STARTED_HERE = ("embedded", "llama-server")


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A profile that could be loaded: its name and where it lies."""

    name: str
    path: Path


def list_profiles(folders: Sequence[Path]) -> list[ProfileFile]:
    """Every profile in `folders`, by name; an earlier folder hides a name of a later one."""
    found: dict[str, ProfileFile] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else ():
            found.setdefault(path.stem, ProfileFile(path.stem, path))
    return sorted(found.values(), key=lambda profile: profile.name)


def find_profile(name: str, folders: Sequence[Path]) -> Path:
    """The file of a profile, given by name (looked up in `folders` in order) or as a path to a .toml file.

    Raises:
        UsageError: there is no such profile.
    """
    return _find(name, folders, exclude=())


def load_profile(name: str, folders: Sequence[Path]) -> Profile:
    """Reads a profile and everything it extends, and completes it with the card of its model.

    A profile of the person's own may have the name of a shipped one and extend it.

    Raises:
        UsageError: unknown profile or card, unreadable file, bad TOML, unknown key, wrong value, or a circle.
    """
    path = find_profile(name, folders)
    tables = profile_tables(path, folders)
    chain = [one for one, _ in tables]
    table: dict[str, Any] = {}
    for _, own in reversed(tables):
        table = inherited(table, own)
    table.setdefault("name", path.stem)
    if table["name"] != path.stem:
        raise UsageError(
            f"{path}: name is {table['name']!r} but the file is called {path.name}",
            "remove the name, or rename the file: a profile is found by its file name",
        )
    try:
        card = card_of(table, folders)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from error
    try:
        return Profile.model_validate(with_card(table, card) if card else table)
    except ValidationError as error:
        if card:
            check_card(card)
        raise _as_usage_error(error, path, chain) from error


def card_of(table: Mapping[str, Any], folders: Sequence[Path]) -> cards.Card | None:
    """The card that the table of a profile names, or that the names of its model lead to.

    Raises:
        UsageError: there is no such card, or one is wrong.
    """
    wanted = table.get("card", cards.AUTO)
    if wanted == cards.NONE or not isinstance(wanted, str):
        return None
    if wanted != cards.AUTO:
        return cards.find_card(wanted, folders)
    target = table.get("target")
    names = (target.get("file") if isinstance(target, dict) else None, table.get("model"))
    return cards.card_called([name for name in names if isinstance(name, str)], folders)


def with_card(table: Mapping[str, Any], card: cards.Card, *, only_requests: bool = False) -> dict[str, Any]:
    """The table of a profile, completed by a card; `only_requests` once its server runs."""
    engine = table.get("engine", "embedded")
    left_out = NOT_EMBEDDED if engine == "embedded" else ()
    is_started = engine in _STARTED_HERE and not only_requests
    whole = cards.completed(table, card, is_started=is_started, left_out=left_out)
    return {**whole, "card": card.name}


def check_card(card: cards.Card) -> None:
    """Makes sure that a profile could have the values of a card.

    Raises:
        UsageError: one of them is wrong.
    """
    neutral = {"name": card.name, "engine": "llama-server", "target": {"file": "model.gguf"}}
    try:
        Profile.model_validate(with_card(neutral, card))
    except ValidationError as error:
        raise _as_usage_error(error, card.path, ()) from error


def _find(name: str, folders: Sequence[Path], exclude: Sequence[Path]) -> Path:
    if name.endswith(SUFFIX):
        path = Path(name).expanduser().absolute()
        if not path.is_file():
            raise UsageError(f"profile file {path} does not exist", "see `agent profile list`")
        return path
    known = list_profiles(folders)
    # Only names that were found on disk are joined to a folder, so that "../x" is just an unknown name.
    for folder in folders if any(profile.name == name for profile in known) else ():
        path = (folder / f"{name}{SUFFIX}").absolute()
        if path.is_file() and path not in exclude:
            return path
    names = [profile.name for profile in known]
    otherwise = f"there are: {', '.join(names) or 'none'}"
    hint = did_you_mean(name, names, otherwise, cutoff=0.5, form="{}", most=3)
    raise UsageError(f"unknown profile {name!r}", f"{hint} (`agent profile list` shows all)")


def profile_tables(path: Path, folders: Sequence[Path]) -> list[tuple[Path, dict[str, Any]]]:
    """The file of a profile and those that it extends, each with what stands in it.

    Raises:
        UsageError: unknown profile, unreadable file, bad TOML, or a circle.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    while True:
        seen = [one for one, _ in found]
        if path in seen:
            circle = " -> ".join(one.stem for one in (*seen, path))
            raise UsageError(
                f"{seen[0]}: profiles extend each other in a circle: {circle}", "remove one `extends`"
            )
        table = _read(path)
        _place_copies(table, path.absolute().parent)
        parent = table.pop("extends", None)
        found.append((path, table))
        if parent is None:
            return found
        path = _parent_of(path, parent, folders)


def _place_copies(table: dict[str, Any], folder: Path) -> None:
    """Makes the paths of copies absolute: relative ones start at the folder of the profile."""
    for file in (table.get("target"), table.get("draft")):
        sources = file.get("sources") if isinstance(file, dict) else None
        for source in sources if isinstance(sources, list) else ():
            path = source.get("path") if isinstance(source, dict) else None
            if isinstance(path, str) and path and not path.startswith("~"):
                source["path"] = str(folder / path)


def _parent_of(path: Path, parent: Any, folders: Sequence[Path]) -> Path:
    if not isinstance(parent, str):
        raise UsageError(f"{path}: extends must be the name of a profile", 'for example extends = "embedded"')
    if parent.endswith(SUFFIX) and not Path(parent).expanduser().is_absolute():
        parent = str(path.parent / parent)
    try:
        return _find(parent, folders, exclude=(path,))
    except UsageError as error:
        raise UsageError(f"{path}: extends: {error.message}", error.hint) from error


def inherited(parent: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """What becomes of the values of a parent. Its card is that of its model, and of no other."""
    merged = _overlay({key: value for key, value in parent.items() if key != "name"}, table)
    other_model = isinstance(table.get("target"), dict) and "file" in table["target"]
    if other_model and "card" not in table and merged["target"].get("file") != _file_of(parent):
        merged.pop("card", None)
    if ("batch" in table or "ubatch" in table) and "batch_seconds" not in table:
        merged.pop("batch_seconds", None)  # who says how large batches are wants them so
    return merged


def _file_of(table: dict[str, Any]) -> Any:
    target = table.get("target")
    return target.get("file") if isinstance(target, dict) else None


def _overlay(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key, everything else (arrays too) is replaced.

    A table that then speaks of something else (another model file, another kind of speculation) is
    replaced as a whole: the checksum of one file and the numbers of one kind mean nothing for another.
    """
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        subject = _SUBJECT_OF_TABLE.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and _same_subject(old, value, subject):
            merged[key] = _overlay(old, value)
        else:
            merged[key] = value
    return merged


def _same_subject(old: dict[str, Any], new: dict[str, Any], subject: str | None) -> bool:
    return subject is None or new.get(subject, old.get(subject)) == old.get(subject)


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise UsageError(f"{path} is too big for a profile", "a profile is a small TOML file")
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read the profile {path}: {error.strerror}", "check the file's permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text (byte {error.start})", "save the profile as UTF-8"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}", "correct that line") from error


def _as_usage_error(error: ValidationError, path: Path, chain: Sequence[Path]) -> UsageError:
    problem = error.errors(include_url=False, include_input=False)[0]
    location = list(problem["loc"])
    # Pydantic puts the discriminator's value into the location; a person never wrote it as a key.
    shown = ".".join(str(part) for part in location if not _is_pydantics(part, location))
    where = f"{path} (extends {', '.join(one.stem for one in chain[1:])})" if len(chain) > 1 else str(path)
    if problem["type"] == "extra_forbidden":
        names = [part for part in location[:-1] if isinstance(part, str)]
        table = _TABLES.get(names[-1], Profile) if names else Profile
        otherwise = f"known keys: {', '.join(table.model_fields)}"
        hint = did_you_mean(str(location[-1]), table.model_fields, otherwise, cutoff=0.5)
        if not names:
            hint = next(
                (
                    f"it belongs below [{one}]"
                    for one in _SUB_TABLES
                    if location[-1] in _TABLES[one].model_fields
                ),
                hint,
            )
        return UsageError(f"{where}: unknown key {shown!r}", hint)
    message = problem["msg"].removeprefix("Value error, ")
    detail = f"{shown}: {message}" if shown else message
    return UsageError(f"{where}: {detail}", "see docs/profiles.md for what each key takes")


def _is_pydantics(part: int | str, location: Sequence[int | str]) -> bool:
    """Whether a part of a location was never written by a person: a discriminator, a member of a union."""
    if part in ("hub", "pypi", "file"):
        return "sources" in location and part != location[-1]
    return isinstance(part, str) and ("[" in part or part in ("int", "constrained-int", "constrained-str"))
