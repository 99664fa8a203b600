"""Where things are: the data folders that ship with the program, and the person's own folders.

Every folder of a person's follows the platform's habit and can be moved by one environment variable,
which is what tests and containers use. Nothing is created here: whoever writes first creates the
folder with `ensure_private_folder`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from agent.core.errors import UsageError
from agent.core.private_folder import make_private_folder

APPLICATION = "dflash-agent"

CONFIG_HOME = "AGENT_CONFIG_HOME"
STATE_HOME = "AGENT_STATE_HOME"
DATA_HOME = "AGENT_DATA_HOME"
CACHE_HOME = "AGENT_CACHE_HOME"
FOLDER_VARIABLES = (CONFIG_HOME, STATE_HOME, DATA_HOME, CACHE_HOME)

Kind = Literal["config", "state", "data", "cache"]


def config_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Holds `config.toml`. `AGENT_CONFIG_HOME` replaces it."""
    return _personal_folder("config", CONFIG_HOME, environment)


def state_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Holds what the program remembers: trusted folders, sessions, logs. `AGENT_STATE_HOME` replaces it."""
    return _personal_folder("state", STATE_HOME, environment)


def data_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Holds big files that are expensive to get again, such as models. `AGENT_DATA_HOME` replaces it."""
    return _personal_folder("data", DATA_HOME, environment)


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Holds what may be deleted at any time. `AGENT_CACHE_HOME` replaces it."""
    return _personal_folder("cache", CACHE_HOME, environment)


def runtime_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Holds what describes running processes (process ids, ports, keys): `run` in the state folder."""
    return state_folder(environment) / "run"


def places_of_profiles(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Where profiles are looked up: the person's own come before those of the same name that ship."""
    return [config_folder(environment) / "profiles", profiles_folder()]


def servers_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Holds the llama-server versions that were installed here: `servers` in the data folder."""
    return data_folder(environment) / "servers"


def ensure_private_folder(folder: Path) -> Path:
    """Creates `folder` for its owner only (0700) unless it is there, and returns it.

    Raises:
        UsageError: it cannot be created.
    """
    try:
        make_private_folder(folder)
    except OSError as error:
        raise UsageError(
            f"cannot create the folder {folder}: {error.strerror}",
            f"choose another place with {', '.join(FOLDER_VARIABLES)}",
        ) from error
    return folder


def expand_home(text: str) -> Path:
    """`text` as a path, with `~` and `~name` at its start replaced.

    Raises:
        UsageError: the system knows no home folder for that name.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{text}: the home folder that '~' stands for is not known here") from error


def profiles_folder() -> Path:
    """The server profiles that ship with the program."""
    return shipped_folder("server_profiles", Path(__file__).resolve().parent)


def skills_folder() -> Path:
    """The skills that ship with the program."""
    return shipped_folder("skills", Path(__file__).resolve().parent)


def shipped_folder(name: str, package: Path) -> Path:
    """The folder `name` for the package at `package`, in a wheel or in a checkout.

    Raises:
        UsageError: it is in neither place.
    """
    # The wheel's copy comes first: beside an installed package lies site-packages, where a folder of
    # the same name would belong to somebody else.
    for candidate in (package / "data" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise UsageError(
        f"this installation is incomplete: no {name} folder in {package / 'data'} or {package.parent}",
        f"install {APPLICATION} again",
    )


def _personal_folder(kind: Kind, variable: str, environment: Mapping[str, str] | None) -> Path:
    override = (os.environ if environment is None else environment).get(variable, "")
    if override:
        return expand_home(override).absolute()
    import platformdirs

    find = {
        "config": platformdirs.user_config_path,
        "state": platformdirs.user_state_path,
        "data": platformdirs.user_data_path,
        "cache": platformdirs.user_cache_path,
    }[kind]
    return find(APPLICATION, appauthor=False)
