"""The llama-server programs on this machine: those that were installed here, and which one a profile gets.

Several versions lie side by side, each in a folder `<name>-<version>` of its own with the program in `bin`
and a note about it in `install.json`. `chosen.json` beside them lists what a person decided for, the latest
decision first, with at most one version for each dialect.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from agent.core.errors import ServerError
from agent.core.whole_file import write_whole
from agent.server.profile import DialectName, Profile

PROGRAM = "llama-server"
NOTE = "install.json"
CHOSEN = "chosen.json"

_RECIPE_FOR: dict[DialectName | None, str] = {
    "bee-0.3": "agent server install beellama",
    "bee-0.4": "agent server install beellama --version 0.4",
    "llama.cpp": "agent server install llama.cpp",
    None: "agent server install llama.cpp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One version that was built here.

    `backend` says what computes ("CPU", "CUDA 8.9"), `built_with` names the tools, `installed_at` is an ISO
    time in UTC, `reported` what the program answered to `--version`, `verified` what it was tried with.
    """

    name: str
    version: str
    dialect: DialectName
    path: Path
    backend: str = ""
    built_with: str = ""
    installed_at: str = ""
    reported: str = ""
    verified: str = ""
    chosen: bool = False

    @property
    def key(self) -> str:
        """As a person names it: `beellama@0.3.2`."""
        return f"{self.name}@{self.version}"

    @property
    def folder(self) -> Path:
        return self.path.parent.parent


def install_folder(servers_folder: Path, name: str, version: str) -> Path:
    """Where this version lies, or will."""
    return servers_folder / f"{name}-{version}"


def installed(servers_folder: Path) -> list[Installed]:
    """Every complete installation, the newest first. What is damaged or half there is left out."""
    chosen = chosen_keys(servers_folder)
    # A name with a dot in front is one that is being put together, or was about to be removed.
    notes = [note for note in servers_folder.glob(f"*/{NOTE}") if not note.parent.name.startswith(".")]
    found = [_read(note, chosen) for note in notes]
    complete = [one for one in found if one is not None]
    return sorted(complete, key=lambda one: (one.installed_at, one.key), reverse=True)


def chosen_keys(servers_folder: Path) -> list[str]:
    """The versions that were decided for (`name@version`), the latest decision first."""
    try:
        keys = json.loads((servers_folder / CHOSEN).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def choose(servers_folder: Path, wanted: Installed) -> None:
    """Makes `wanted` the first choice for profiles of its dialect, and for those that name none.

    Raises:
        ServerError: the decision cannot be written down.
    """
    dialects = {one.key: one.dialect for one in installed(servers_folder)}
    others = [
        key for key in chosen_keys(servers_folder) if dialects.get(key, wanted.dialect) != wanted.dialect
    ]
    _write_chosen(servers_folder, [wanted.key, *others])


def forget_choice(servers_folder: Path, key: str) -> None:
    """Takes `key` (`name@version`) out of the decisions, if it is in them.

    Raises:
        ServerError: that cannot be written down.
    """
    keys = chosen_keys(servers_folder)
    if key in keys:
        _write_chosen(servers_folder, [one for one in keys if one != key])


def find_binary(
    profile: Profile, servers_folder: Path, environment: Mapping[str, str], setting: str = ""
) -> Path:
    """The llama-server that a profile gets.

    In this order: the setting `server.binary`, the version chosen with `agent server use` that fits the
    profile's dialect, any installed one that fits, `llama-server` on the PATH. The last may be of another
    dialect; its own `--help` decides what is asked of it.

    Args:
        environment: for its PATH.
        setting: the value of `server.binary`, a path or a name on the PATH; empty = not set.

    Raises:
        ServerError: there is none, or the setting names none.
    """
    if setting:
        return _from_setting(setting, environment)
    fitting = [one for one in installed(servers_folder) if profile.dialect in (None, one.dialect)]
    by_key = {one.key: one for one in fitting}
    for key in chosen_keys(servers_folder):
        if key in by_key:
            return by_key[key].path
    if fitting:
        return fitting[0].path
    on_path = shutil.which(PROGRAM, path=environment.get("PATH", ""))
    if on_path:
        return Path(on_path)
    kind = f" for the dialect {profile.dialect}" if profile.dialect else ""
    hint = _RECIPE_FOR.get(profile.dialect)
    raise ServerError(
        f"profile {profile.name} needs a llama-server{kind}: none is installed, and none is on the PATH",
        f"get one with `{hint}`" if hint else "set server.binary to the path of yours",
    )


def _from_setting(setting: str, environment: Mapping[str, str]) -> Path:
    hint = "change it in your config.toml, or empty it to use an installed one (`agent server installed`)"
    if os.sep not in setting and not setting.startswith("~"):
        found = shutil.which(setting, path=environment.get("PATH", ""))
        if not found:
            raise ServerError(f"server.binary: there is no program {setting!r} on the PATH", hint)
        return Path(found)
    try:
        path = Path(setting).expanduser().absolute()
    except RuntimeError:
        path = Path(setting)
    if path.is_dir():
        path /= PROGRAM
    if not path.is_file():
        raise ServerError(f"server.binary: there is no program {path}", hint)
    if not os.access(path, os.X_OK):
        raise ServerError(f"server.binary: {path} may not be run", f"make it executable: chmod +x {path}")
    return path


def _read(note: Path, chosen: list[str]) -> Installed | None:
    path = note.parent / "bin" / PROGRAM
    try:
        table: Any = json.loads(note.read_text("utf-8"))
        fields = {name: table[name] for name in ("name", "version", "dialect")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    details = {
        name: table.get(name, "")
        for name in ("backend", "built_with", "installed_at", "reported", "verified")
    }
    texts = {**fields, **details}
    if not all(isinstance(text, str) for text in texts.values()) or fields["dialect"] not in get_args(
        DialectName
    ):
        return None
    if not os.access(path, os.X_OK) or not path.is_file():
        return None
    return Installed(**texts, path=path, chosen=f"{fields['name']}@{fields['version']}" in chosen)


def _write_chosen(servers_folder: Path, keys: list[str]) -> None:
    place = servers_folder / CHOSEN
    try:
        write_whole(place, json.dumps(keys, indent=2) + "\n")
    except OSError as error:
        raise ServerError(
            f"cannot write {place}: {error.strerror}", "check the folder's permissions"
        ) from error
