"""What `agent doctor` finds, and how it looks without ever failing itself."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent.config.load import LoadedSettings, models_folder_without_files
from agent.core.errors import PLEASE_REPORT, AgentError
from agent.server.engines import EngineFacts, running_servers
from agent.server.hardware import Hardware, detect_hardware
from agent.server.profile import Profile
from agent.server.record import Record

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `remedy` is empty where nothing needs to be done."""

    level: Level
    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What looking uses of the outside world; tests hand in their own."""

    hardware: Callable[[Path], Hardware] = detect_hardware
    running: Callable[[], Sequence[EngineFacts]] = running_servers
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    project: Path | None = None
    root: Path = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What the checks look at. `loaded` and `profile` are None where they cannot be read."""

    outside: Outside
    loaded: LoadedSettings | None
    profile: Profile | None
    hardware: Hardware
    records: Sequence[Record] = ()
    running: Sequence[EngineFacts] = ()

    @property
    def environment(self) -> Mapping[str, str]:
        return self.outside.environment

    @property
    def models_folder(self) -> Path:
        """Of the settings; where they cannot be read, what the environment or the habit says."""
        if self.loaded:
            return self.loaded.settings.models.folder
        return models_folder_without_files(self.environment)

    def own_record(self) -> Record | None:
        """The server of the profile, if it runs."""
        name = self.profile.name if self.profile else None
        return next((one for one in self.records if one.profile == name and one.is_running), None)


Check = Callable[[Patient], Iterable[Finding]]


def ok(code: str, message: str) -> Finding:
    return Finding("ok", code, message)


def warning(code: str, message: str, remedy: str) -> Finding:
    return Finding("warning", code, message, remedy)


def problem(code: str, message: str, remedy: str) -> Finding:
    return Finding("problem", code, message, remedy)


def of_error(code: str, error: AgentError, level: Level = "problem") -> Finding:
    """An error of the program as a finding."""
    return Finding(level, code, error.message, error.hint)


def examined(check: Check, patient: Patient) -> Iterator[Finding]:
    """What a check finds. One that fails itself is a finding too: the others still count."""
    name = check.__name__.strip("_").replace("_", "-")
    try:
        yield from check(patient)
    except AgentError as error:
        yield of_error(name, error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        yield warning(name, f"this could not be looked at: {reason[:200]}", PLEASE_REPORT)
