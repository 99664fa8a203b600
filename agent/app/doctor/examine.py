"""All checks in their order. Reads only."""

from collections.abc import Iterator
from contextlib import suppress

from agent.app.doctor import carded, confined, machine, serving
from agent.app.doctor.finding import Check, Finding, Outside, Patient, examined
from agent.config.load import LoadedSettings, load_settings, models_folder_without_files
from agent.core.errors import AgentError
from agent.resources import places_of_profiles, runtime_folder
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import list_records

CHECKS: tuple[Check, ...] = (
    machine.python_and_packages,
    machine.tools,
    machine.terminal,
    machine.folders,
    machine.disk,
    machine.gpu,
    machine.hidden_settings,
    confined.sandbox,
    serving.settings,
    serving.profile,
    serving.engine,
    serving.installations,
    serving.model_files,
    serving.pair,
    carded.card,
    serving.fit,
    serving.port,
    serving.records,
    serving.other_servers,
    serving.speed,
)


def patient_for(outside: Outside, profile: str = "") -> Patient:
    """Looks at what all checks need.

    Args:
        profile: instead of the one of the settings.
    """
    loaded = _loaded(outside, profile)
    folder = loaded.settings.models.folder if loaded else models_folder_without_files(outside.environment)
    return Patient(
        outside=outside,
        loaded=loaded,
        profile=_profile(loaded, outside) if loaded else None,
        hardware=outside.hardware(folder),
        records=list_records(runtime_folder(outside.environment)),
        running=outside.running(),
    )


def examine(patient: Patient) -> Iterator[Finding]:
    """What every check finds, one after the other."""
    for check in CHECKS:
        yield from examined(check, patient)


def _loaded(outside: Outside, profile: str) -> LoadedSettings | None:
    flags = {"profile": profile} if profile else {}
    with suppress(AgentError):
        return load_settings(outside.project, outside.environment, flags)
    return None


def _profile(loaded: LoadedSettings, outside: Outside) -> Profile | None:
    """The profile as a session would use it, with the address of the settings where one is set."""
    url = loaded.settings.server.url
    if url and loaded.origins["profile"].layer == "default":
        return Profile(name="remote", engine="remote", url=url)
    with suppress(AgentError):
        profile = load_profile(loaded.settings.profile, places_of_profiles(outside.environment))
        return profile.model_copy(update={"engine": "remote", "url": url}) if url else profile
    return None
