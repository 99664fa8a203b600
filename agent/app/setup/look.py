"""What `agent setup` finds on a machine before it proposes anything. Nothing is started or written."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.config.load import LoadedSettings, load_settings
from agent.core.errors import AgentError, ServerError
from agent.resources import cache_folder, places_of_profiles, runtime_folder, servers_folder
from agent.server.asking import ask
from agent.server.binaries import Installed, installed
from agent.server.engine_extra import engine_version
from agent.server.engines import EngineFacts, running_servers
from agent.server.hardware import Hardware, detect_hardware
from agent.server.profile import Profile
from agent.server.profile_files import list_profiles, load_profile
from agent.server.record import list_records

# Where other programs keep GGUF files, below the home folder, with how deep they lie.
_OTHER_FOLDERS = (
    (".lmstudio/models", 3),
    (".cache/lm-studio/models", 3),
    (".cache/huggingface/hub", 4),
    (".cache/llama.cpp", 1),
    ("models", 2),
)
_MOST_FILES = 500
_ANSWER_SECONDS = 5.0


def why_silent(base_url: str) -> str:
    """Why no server answers at an address (without `/v1`); empty when one does."""
    try:
        ask(base_url, "/v1/models", timeout=_ANSWER_SECONDS)
    except ServerError as error:
        return error.message
    return ""


def no_silence(base_url: str) -> str:
    """For addresses that nobody asks."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What looking uses of the outside world; tests hand in their own."""

    hardware: Callable[[Path], Hardware] = detect_hardware
    running: Callable[[], Sequence[EngineFacts]] = running_servers
    engine_version: Callable[[], str | None] = engine_version
    silence: Callable[[str], str] = why_silent
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    home: Path = field(default_factory=Path.home)
    project: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What was found. `running` are servers that were not started here.

    `models` are the GGUF files of the models folder, `models_elsewhere` those of other programs.
    `profiles` are all that can be loaded, the person's own first. `engine` is the version of the embedded
    engine, None when it is not installed. `silence` says why nothing answers at an address. `own_servers`
    names the profiles of servers of ours that run now.
    """

    hardware: Hardware
    loaded: LoadedSettings
    installed: Sequence[Installed] = ()
    engine: str | None = None
    running: Sequence[EngineFacts] = ()
    own_servers: Sequence[str] = ()
    models: Sequence[Path] = ()
    models_elsewhere: Sequence[Path] = ()
    profiles: Sequence[Profile] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    silence: Callable[[str], str] = no_silence

    @property
    def models_folder(self) -> Path:
        return self.loaded.settings.models.folder

    @property
    def servers_folder(self) -> Path:
        return servers_folder(self.environment)

    @property
    def cache_folder(self) -> Path:
        return cache_folder(self.environment)

    def profile(self, name: str) -> Profile | None:
        return next((one for one in self.profiles if one.name == name), None)


def look_around(outside: Outside) -> Surroundings:
    """Looks at everything. Takes up to a few seconds, for ports that are open and say nothing.

    Raises:
        UsageError: the configuration has a mistake.
    """
    environment = outside.environment
    loaded = load_settings(outside.project, environment, {})
    folder = loaded.settings.models.folder
    records = [record for record in list_records(runtime_folder(environment)) if record.is_running]
    own_ports = tuple(f":{record.port}" for record in records)
    running = [facts for facts in outside.running() if not facts.base_url.endswith(own_ports or ("\0",))]
    return Surroundings(
        hardware=outside.hardware(folder),
        loaded=loaded,
        installed=installed(servers_folder(environment)),
        engine=outside.engine_version(),
        running=running,
        own_servers=[record.profile for record in records],
        models=sorted(_model_files(folder, 0)),
        models_elsewhere=_elsewhere(outside.home, environment),
        profiles=_profiles(environment),
        environment=environment,
        silence=outside.silence,
    )


def _profiles(environment: Mapping[str, str]) -> list[Profile]:
    folders = places_of_profiles(environment)
    found = []
    for one in list_profiles(folders):
        with suppress(AgentError):  # a broken one is for `agent doctor` to tell
            found.append(load_profile(one.name, folders))
    return found


def _elsewhere(home: Path, environment: Mapping[str, str]) -> list[Path]:
    folders = [(home / name, depth) for name, depth in _OTHER_FOLDERS]
    folders += [(Path(text), 1) for text in [environment.get("LLAMA_CACHE", "")] if text]
    folders += [(Path(text) / "hub", 4) for text in [environment.get("HF_HOME", "")] if text]
    found: dict[str, Path] = {}
    for folder, depth in folders:
        for path in _model_files(folder, depth):
            found.setdefault(path.name, path)
            if len(found) >= _MOST_FILES:
                return list(found.values())
    return list(found.values())


def _model_files(folder: Path, depth: int) -> Iterator[Path]:
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir() and depth > 0:
                yield from _model_files(Path(entry.path), depth - 1)
            elif entry.name.endswith(".gguf") and entry.is_file():
                yield Path(entry.path)
