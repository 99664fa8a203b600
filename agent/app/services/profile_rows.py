"""The profiles that could be gone over to, as far as it helps to choose one of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from agent.server.download import FileState
    from agent.server.profile import ModelFile

Presence = Literal["here", "partly here", "not here", "elsewhere", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """One profile. `bytes` is that of its model files, 0 where none are needed or the size is not known.

    `presence` says where the files are; a server that is somewhere else, or manages its models itself, needs
    none here. Of a profile that cannot be read `description` says what is wrong.
    """

    name: str
    description: str
    bytes: int
    presence: Presence


def profile_rows(models_folder: Path) -> list[ProfileRow]:
    """A row for each profile, in the order of their names. Reads no model file but small copies."""
    from agent.core.errors import UsageError
    from agent.resources import places_of_profiles
    from agent.server.profile_files import list_profiles, load_profile

    folders = places_of_profiles()
    rows = []
    for found in list_profiles(folders):
        try:
            profile = load_profile(found.name, folders)
        except UsageError as error:
            rows.append(ProfileRow(name=found.name, description=error.message, bytes=0, presence="broken"))
            continue
        size = sum(file.bytes or 0 for file in profile.model_files)
        states: list[FileState] = [_state(file, models_folder) for file in profile.model_files]
        row = ProfileRow(
            name=found.name, description=profile.description, bytes=size, presence=_presence(states)
        )
        rows.append(row)
    return rows


def _state(file: "ModelFile", folder: Path) -> "FileState":
    from agent.server.download import status_of_file

    return status_of_file(file, folder).state


def _presence(states: "list[FileState]") -> Presence:
    if not states:
        return "elsewhere"
    if all(state in ("ready", "unverified") for state in states):
        return "here"
    return "not here" if all(state == "missing" for state in states) else "partly here"
