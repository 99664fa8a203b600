"""Finds profile files, follows `extends`, and turns mistakes in them into one clear line."""

import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.core.errors import UsageError
from agent.server.profile import (
    FileSource,
    HubSource,
    ModelCard,
    ModelFile,
    Profile,
    PypiSource,
    Sampling,
    Speculation,
    Tools,
)

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
    """Reads a profile and everything it extends.

    A profile of the person's own may have the name of a shipped one and extend it.

    Raises:
        UsageError: unknown profile, unreadable file, bad TOML, unknown key, wrong value, or a circle.
    """
    path = find_profile(name, folders)
    table, chain = _merged(path, folders, ())
    table.setdefault("name", path.stem)
    if table["name"] != path.stem:
        raise UsageError(
            f"{path}: name is {table['name']!r} but the file is called {path.name}",
            "remove the name, or rename the file: a profile is found by its file name",
        )
    try:
        return Profile.model_validate(table)
    except ValidationError as error:
        raise _as_usage_error(error, path, chain) from error


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
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(names) or 'none'}"
    raise UsageError(f"unknown profile {name!r}", f"{hint} (`agent profile list` shows all)")


def _merged(path: Path, folders: Sequence[Path], seen: tuple[Path, ...]) -> tuple[dict[str, Any], list[Path]]:
    if path in seen:
        circle = " -> ".join(one.stem for one in (*seen, path))
        raise UsageError(
            f"{seen[0]}: profiles extend each other in a circle: {circle}", "remove one `extends`"
        )
    table = _read(path)
    parent_name = table.pop("extends", None)
    if parent_name is None:
        return table, [path]
    if not isinstance(parent_name, str):
        raise UsageError(f"{path}: extends must be the name of a profile", 'for example extends = "embedded"')
    if parent_name.endswith(SUFFIX) and not Path(parent_name).expanduser().is_absolute():
        parent_name = str(path.parent / parent_name)
    try:
        parent_path = _find(parent_name, folders, exclude=(path,))
    except UsageError as error:
        raise UsageError(f"{path}: extends: {error.message}", error.hint) from error
    parent, chain = _merged(parent_path, folders, (*seen, path))
    parent.pop("name", None)
    return _overlay(parent, table), [path, *chain]


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
        close = difflib.get_close_matches(str(location[-1]), list(table.model_fields), n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(table.model_fields)}"
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
