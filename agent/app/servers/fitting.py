"""The batch of a profile that fits this machine: what is remembered, what is chosen, what is learned."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.background import in_background
from agent.core.stats import StepStats
from agent.resources import state_folder
from agent.server.batch_fit import fitted, told
from agent.server.fingerprint import fingerprint
from agent.server.profile import Profile
from agent.server.reading_speed import FILE_NAME, known_rate, reader_of, remember, telling_rate
from agent.server.slot_reading import Read

if TYPE_CHECKING:
    from agent.app.servers.serving import Serving


@dataclass(frozen=True, slots=True)
class Fit:
    """A profile as its server is started. `why` is a line for people, empty where nothing is to be fitted."""

    profile: Profile
    why: str = ""
    batch_limit: int = 0
    """Tokens that are read at once where that is less than the profile says, 0 = as it says."""
    speeds_file: Path | None = None
    """Where the speed is kept that the first start has to measure, None = nothing is to be measured."""


def fit_to_machine(profile: Profile, threads: int = 0) -> Fit:
    """Fits the batch by what is remembered of this machine.

    Args:
        threads: the person's setting, 0 = what the profile says.
    """
    if not profile.batch_seconds:
        return Fit(profile)
    rate = known_rate(_file(), reader_of(profile, _threads(profile, threads)))
    chosen = fitted(profile, rate)
    limit = chosen.batch if chosen.batch < profile.batch else 0
    unknown = _file() if rate is None else None
    return Fit(chosen, told(profile, chosen, rate), limit, unknown)


async def remember_steps(serving: "Serving", steps: Iterable[StepStats]) -> None:
    """Keeps how fast the prompts of these steps were read, as far as the server has timed them."""
    rates = [
        rate
        for step in steps
        if step.source == "server"
        and (rate := telling_rate(step.prompt_tokens, step.cached_tokens, step.prompt_seconds))
    ]
    if rates and _is_fitted(serving):
        await in_background(lambda: _remember(serving, rates))


def remember_read(serving: "Serving", read: Read) -> None:
    """Keeps how fast a prompt was read for which nobody waited."""
    rate = telling_rate(read.evaluated, read.tokens - read.evaluated, read.seconds)
    if rate and _is_fitted(serving):
        _remember(serving, [rate])


def as_written(serving: "Serving") -> "Serving":
    """The same server with the batch that the profile says, for measuring.

    It is another server than the one of sessions, but its figures are theirs.
    """
    if not _is_fitted(serving):
        return serving
    settings = serving.loaded.settings
    profile = serving.profile.model_copy(update={"batch_seconds": 0.0})
    mark = fingerprint(
        profile, settings.models.folder, settings.server.threads, settings.server.binary, as_written=True
    )
    return replace(serving, profile=profile, fingerprint=mark, measured_as=serving.fingerprint)


def _is_fitted(serving: "Serving") -> bool:
    return serving.is_managed and bool(serving.profile.batch_seconds)


def _remember(serving: "Serving", rates: list[float]) -> None:
    profile = serving.profile
    reader = reader_of(profile, _threads(profile, serving.loaded.settings.server.threads))
    # Without it the next start chooses by older figures, which nobody has to be told.
    with suppress(OSError):
        remember(_file(), reader, rates)


def _file() -> Path:
    return state_folder() / FILE_NAME


def _threads(profile: Profile, setting: int) -> int:
    from agent.server.launch import automatic_threads

    return setting or profile.threads or automatic_threads()
