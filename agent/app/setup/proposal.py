"""Which option is proposed, and which others are shown. Plain logic on what was found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from agent.app.setup.look import Surroundings
from agent.app.setup.option import FileState, Fit, Option
from agent.app.setup.options import elsewhere_option, local_option, measured_at, running_option
from agent.core.errors import UsageError
from agent.resources import places_of_profiles
from agent.server.profile import Profile
from agent.server.profile_files import load_profile

FOR_LARGE_GPUS = ("gemma4-31b-dflash", "qwen3.6-27b-dflash", "qwen3.6-27b-mtp", "gemma4-31b", "qwen3.6-27b")
FOR_MEDIUM_GPUS = ("qwen3-14b",)
FOR_THE_CPU = ("embedded", "embedded-draft")
FOR_TRYING_OUT = ("embedded-small",)
MOST_ALTERNATIVES = 3
_SMALLEST_GPU_BYTES = 10 * 10**9
_RANK_OF_FILE: dict[FileState, int] = {"there": 0, "elsewhere": 0, "download": 1, "by hand": 2}
_RANK_OF_FIT: dict[Fit, int] = {
    "fits": 0, "runs elsewhere": 0, "tight": 1, "partly": 2, "not known": 2, "too big": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What is proposed, and what else there is. `notes` are lines for the person about what was found."""

    found: Surroundings
    option: Option
    alternatives: tuple[Option, ...] = ()
    notes: tuple[str, ...] = ()


def propose(found: Surroundings, wanted: str = "", unfinished: str = "") -> Proposal:
    """Chooses for this machine.

    Args:
        wanted: the profile that the person names; empty = the best one.
        unfinished: the profile of a set-up that was interrupted.

    Raises:
        UsageError: the wanted profile is unknown, has mistakes, or is not one that can be set up.
    """
    running = _running(found)
    local = _local(found)
    options = [*running, *local]
    first = _named(found, wanted, running, "you named it") if wanted else None
    if first is None and unfinished:
        first = _resumed(found, unfinished, running)
    if first is None:
        first = _of_settings(found, running)
    if first is None:
        first = next(iter(options), None)
    if first is None:
        raise UsageError("no profile of this program can be read", "install dflash-agent again")
    others = [one for one in options if one.profile != first.profile]
    return Proposal(
        found=found,
        option=first,
        alternatives=_shown(others),
        notes=tuple(_notes(found)),
    )


def _shown(others: Sequence[Option]) -> tuple[Option, ...]:
    """The best of the others, with one that can be had at once among them."""
    shown = list(others[:MOST_ALTERNATIVES])
    usable = next((one for one in others if one.is_usable), None)
    if usable is not None and not any(one.is_usable for one in shown):
        shown[-1] = usable
    return tuple(shown)


def profile_name_for(base_url: str, engine: str, taken: Sequence[Profile]) -> str:
    """A name for the profile of a server that runs: the one that has this address, or a new one."""
    for profile in taken:
        if profile.engine == "remote" and profile.url == base_url and profile.name != "remote":
            return profile.name
    port = urlsplit(base_url).port or 80
    base = f"{'server' if engine == 'unknown' else engine}-{port}"
    names = {profile.name for profile in taken}
    return next(
        name for name in (base, *(f"{base}-{n}" for n in range(2, len(names) + 3))) if name not in names
    )


def _running(found: Surroundings) -> list[Option]:
    options = []
    for facts in found.running:
        name = profile_name_for(facts.base_url, facts.engine, found.profiles)
        option = running_option(facts, name, measured_at(facts.base_url, found))
        if option is not None:
            options.append(option)
    return options


def _local(found: Surroundings) -> list[Option]:
    """What could be served here, the best first: by fit, then by what has to be done for it."""
    names: list[str] = []
    if found.hardware.vram_total >= _SMALLEST_GPU_BYTES:
        names += [*FOR_LARGE_GPUS, *FOR_MEDIUM_GPUS]
    names += [*FOR_THE_CPU, *FOR_TRYING_OUT]
    profiles = [profile for name in names if (profile := found.profile(name)) is not None]
    options = [local_option(profile, found) for profile in profiles]
    return sorted(options, key=lambda one: _rank(one, names))


def _rank(option: Option, names: Sequence[str]) -> tuple[int, int, int, int, int]:
    """Smaller is better: can be had at all; size of the model; what is to be got for it; fit; order."""
    group = next(
        number
        for number, group in enumerate((FOR_LARGE_GPUS, FOR_MEDIUM_GPUS, FOR_THE_CPU, FOR_TRYING_OUT))
        if option.profile in group
    )
    kinds = {obstacle.kind for obstacle in option.obstacles}
    to_get = max((_RANK_OF_FILE[file.state] for file in option.files), default=0)
    # What a person can bring (a file, a tool) is asked for; what the machine lacks is out of the question.
    is_out = bool(kinds & {"memory", "disk"})
    return int(is_out), group, to_get, _RANK_OF_FIT[option.fit], names.index(option.profile)


def _named(found: Surroundings, name: str, running: Sequence[Option], why: str) -> Option:
    known = next((one for one in running if one.profile == name), None)
    if known is not None:
        return known
    profile = load_profile(name, places_of_profiles(found.environment))
    if profile.engine in ("embedded", "llama-server"):
        return local_option(profile, found, why)
    if profile.engine == "remote":
        return elsewhere_option(profile, found, why)
    raise UsageError(
        f"profile {name!r} is for {profile.engine}, which is not set up from here",
        f"`agent server command {name}` prints the command that starts it; then run `agent setup` again",
    )


def _resumed(found: Surroundings, name: str, running: Sequence[Option]) -> Option | None:
    try:
        return _named(found, name, running, "goes on with what was begun before")
    except UsageError:
        return None


def _of_settings(found: Surroundings, running: Sequence[Option]) -> Option | None:
    """What the person's settings mean, if it can be set up: an address goes before a profile, as in a run."""
    address = found.loaded.settings.server.url.rstrip("/").removesuffix("/v1")
    address = address.replace("//localhost:", "//127.0.0.1:")  # as it is written of servers that were found
    at_address = next((one for one in running if one.url == address), None)
    if at_address is not None:
        return replace(at_address, why="your settings name its address")
    if found.loaded.origins["profile"].layer != "user":
        return None
    try:
        option = _named(found, found.loaded.settings.profile, running, "your settings name it")
    except UsageError:
        return None
    return option if option.is_usable else None


def _notes(found: Surroundings) -> list[str]:
    notes = list(found.hardware.notes)
    for facts in found.running:
        if facts.needs_key:
            notes.append(
                f"{facts.base_url}: {facts.title} wants a key; name its variable in api_key_env of a profile "
                "that extends remote"
            )
        elif facts.is_loading:
            notes.append(f"{facts.base_url}: still loading its model; run `agent setup` again in a moment")
    gpu = found.hardware.vram_total
    if 0 < gpu < _SMALLEST_GPU_BYTES:
        size = f"{gpu / 1e9:.0f} GB"
        notes.append(f"a GPU of {size} is too small for the shipped profiles; the CPU is used")
    if found.own_servers:
        notes.append(
            f"running now: {', '.join(found.own_servers)} (started by agent); its memory counts as taken"
        )
    variable = found.environment.get("AGENT_PROFILE")
    if variable:
        notes.append(f"AGENT_PROFILE={variable} is set and wins over what is written to your settings")
    address = found.environment.get("AGENT_SERVER_URL")
    if address:
        notes.append(f"AGENT_SERVER_URL={address} is set: runs use that server, whatever profile is written")
    return notes
