"""What a set-up writes: the person's settings, a profile for a server that runs, and a note to go on by."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent.app.setup.option import Option
from agent.config.edit import set_user_value
from agent.config.files import write_atomically
from agent.config.load import LoadedSettings, user_config_file
from agent.core.errors import UsageError
from agent.core.private_folder import make_private_folder
from agent.core.whole_file import write_whole
from agent.resources import config_folder, ensure_private_folder, state_folder

_NOTE = "setup.json"


def settings_to_write(option: Option, loaded: LoadedSettings) -> list[tuple[str, str]]:
    """Keys and values for the person's own file, without those that are there already."""
    wanted = [("profile", option.profile)]
    own_url = loaded.origins["server.url"].layer == "user" and loaded.settings.server.url
    if own_url:
        wanted.append(("server.url", ""))  # it would send every profile to that address
    is_there = loaded.origins["profile"].layer == "user" and loaded.settings.profile == option.profile
    return wanted[1:] if is_there else wanted


def described_writes(option: Option, loaded: LoadedSettings, environment: Mapping[str, str]) -> list[str]:
    """One line for each change, for people."""
    path = user_config_file(environment)
    lines = [f'{key} = "{value}" in {path}' for key, value in settings_to_write(option, loaded)]
    profile = profile_path(option, environment)
    if option.runs_elsewhere and not profile.exists() and option.profile != "remote":
        lines.append(f"{profile}, with the address of the server")
    return lines


def profile_path(option: Option, environment: Mapping[str, str]) -> Path:
    """Where the profile of a server that runs is, or will be."""
    return config_folder(environment) / "profiles" / f"{option.profile}.toml"


def write_settings(option: Option, loaded: LoadedSettings, environment: Mapping[str, str]) -> Path:
    """Writes the settings; comments and order of the file stay.

    Raises:
        UsageError: the file cannot be read, changed safely or written.
    """
    path = user_config_file(environment)
    for key, value in settings_to_write(option, loaded):
        ensure_private_folder(path.parent)
        path, _ = set_user_value(key, value, environment)
    return path


def write_remote_profile(option: Option, environment: Mapping[str, str]) -> Path | None:
    """Writes the profile of a server that runs, unless there is one of that name. Returns what was written.

    Raises:
        UsageError: it cannot be written.
    """
    path = profile_path(option, environment)
    if path.exists() or not option.runs_elsewhere or option.profile == "remote":
        return None
    lines = [
        "# Written by `agent setup` for a server that was running. It is used, and never started or stopped.",
        "# context = 32768 can be set where the server does not say how much it gives.",
        'extends = "remote"',
        f"description = {json.dumps(option.title, ensure_ascii=False)}",
        f"url = {json.dumps(option.url)}",
    ]
    lines += [f"model = {json.dumps(option.model, ensure_ascii=False)}"] if option.model else []
    ensure_private_folder(path.parent)
    write_atomically(path, "\n".join(lines) + "\n")
    return path


def note_unfinished(profile: str, environment: Mapping[str, str]) -> None:
    """Remembers what is being set up, so that the next `agent setup` goes on with it."""
    folder = ensure_private_folder(state_folder(environment))
    try:
        write_whole(folder / _NOTE, json.dumps({"profile": profile}))
    except OSError as error:
        raise UsageError(f"cannot write {folder / _NOTE}: {error.strerror}", "look at the disk") from error


def unfinished(environment: Mapping[str, str]) -> str:
    """The profile of a set-up that was interrupted; empty if none was."""
    with suppress(OSError, ValueError, AttributeError):
        name = json.loads((state_folder(environment) / _NOTE).read_text("utf-8")).get("profile")
        return name if isinstance(name, str) else ""
    return ""


def forget_unfinished(environment: Mapping[str, str]) -> None:
    with suppress(OSError):
        (state_folder(environment) / _NOTE).unlink()


def link_file(found: Path, place: Path) -> None:
    """Makes a file of another program known in the models folder, without copying it.

    Raises:
        UsageError: the link cannot be made.
    """
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        make_private_folder(place.parent)
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(found.resolve())
        temporary.replace(place)
    except OSError as error:
        raise UsageError(
            f"cannot link {found} to {place}: {error.strerror}", "copy it there yourself"
        ) from error
