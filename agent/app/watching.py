"""Watches whether drafting pays in a session, and goes on without the draft where the person wants that."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.app.background import in_background
from agent.app.serving import Progress, Serving
from agent.core.errors import AgentError
from agent.core.events import Event, Notice, PrefixBroken, StepFinished
from agent.core.stats import StepStats
from agent.core.watch import Baseline, SpeedWatch
from agent.resources import config_folder, profiles_folder, runtime_folder, state_folder
from agent.server.probe import is_busy
from agent.server.record import Endpoint, Record

_BUSY_LOOKS = 4
_LOOK_AGAIN_SECONDS = 0.25


class SpeedGuard:
    """Sees the events of a session. `observe` gives the one notice, `wants_plain` says that a change is due.

    Without a `watch` nothing is looked at.
    """

    def __init__(self, serving: Serving, watch: SpeedWatch | None) -> None:
        self._serving = serving
        self._watch = watch
        self._last = StepStats()
        self.wants_plain = False

    def observe(self, event: Event) -> Notice | None:
        """What people should know after this event, with what can be done about it."""
        if not isinstance(event, StepFinished) or self._watch is None:
            return None
        self._last = event.stats
        found = self._watch.observe(event.stats)
        if not found:
            return None
        self.wants_plain = self._may_go_plain
        return Notice(text=f"{found}; {self._remedy()}", level="warning")

    @property
    def _may_go_plain(self) -> bool:
        wanted = self._serving.loaded.settings.server.fallback == "plain"
        return wanted and self._serving.is_managed and self._serving.without_draft() is not None

    def _remedy(self) -> str:
        if self.wants_plain:
            return "from the next turn on it goes without the draft"
        if not self._serving.is_managed:
            return "start that server without drafting to compare"
        plain = plain_profile(self._serving)
        ways = [f"--profile {plain}"] if plain else []
        changeable = self._serving.without_draft() is not None
        ways.append('server.fallback = "plain"' if changeable else 'speculation.kind = "none" in a profile')
        return f"to go without the draft: {', or '.join(ways)}"

    async def go_plain(self, endpoint: Endpoint, progress: Progress) -> "PlainServer | None":
        """Puts a server without the draft in the place of the present one.

        Returns:
            None where the present server has to stay: it works for somebody else, or there is no draft.

        Raises:
            ServerError, ModelFileError: neither came up, the plain one or the present one again.
        """
        self.wants_plain = False
        plain = self._serving.without_draft()
        record = self._serving.record_of(endpoint)
        if plain is None or record is None or await _stays_busy(record):
            return None
        from agent.server.stop import stop_server

        # Both at a time would not fit where memory is short.
        await stop_server(record, runtime_folder())
        try:
            changed = PlainServer(plain, await plain.endpoint(progress), self._cost())
        except AgentError as error:
            again = await self._serving.endpoint(progress)
            return PlainServer(self._serving, again, f"the server without the draft failed: {error.message}")
        return changed

    def _cost(self) -> str:
        tokens, rate = self._last.context_tokens, self._last.prefill_rate
        seconds = f", about {tokens / rate:.0f} s" if rate and tokens else ""
        return f"the server goes on without the draft, with an empty prompt cache ({tokens} tokens{seconds})"


@dataclass(frozen=True, slots=True)
class PlainServer:
    """The server that goes on, and what the change costs in one line."""

    serving: Serving
    endpoint: Endpoint
    cost: str

    @property
    def event(self) -> PrefixBroken:
        return PrefixBroken(cause=self.cost)


def guard_for(
    serving: Serving,
    endpoint: Endpoint,
    stored: Callable[[Endpoint], Baseline | None] | None = None,
) -> SpeedGuard:
    """The guard of a session with that server. Only servers that draft, as far as is known, are watched."""
    foreign = endpoint.fingerprint is None
    if not foreign and not serving.profile.speculation.kinds:
        return SpeedGuard(serving, None)
    baseline = (stored or stored_baseline)(endpoint)
    if foreign and baseline is not None and baseline.accept_rate is None:
        baseline = None  # it may not draft at all, and nobody could say
    return SpeedGuard(serving, SpeedWatch(baseline, plain_rate=None if foreign else plain_rate(serving)))


def stored_baseline(endpoint: Endpoint) -> Baseline | None:
    """What `agent bench` remembered of this server, drafting as it does now."""
    from agent.bench.baseline import FILE_NAME, baseline_for, key_of

    return baseline_for(key_of(endpoint), state_folder() / FILE_NAME)


def plain_rate(serving: Serving) -> float | None:
    """The tok/s of the same model without drafting, where `agent bench` has measured that."""
    from agent.bench.baseline import FILE_NAME, plain_baselines

    measured = plain_baselines(state_folder() / FILE_NAME)
    return next((one.decode_rate for one in measured if _is_plain(serving, one.profile)), None)


def plain_profile(serving: Serving) -> str:
    """A profile with the same model and no drafting; empty where there is none."""
    from agent.server.profile_files import list_profiles

    names = [file.name for file in list_profiles(_profile_folders())]
    return next((name for name in names if _is_plain(serving, name)), "")


def _is_plain(serving: Serving, name: str) -> bool:
    """Whether the profile of that name serves the same model without drafting."""
    from agent.server.profile_files import load_profile

    try:
        profile = load_profile(name, _profile_folders())
    except AgentError:  # a damaged profile of the person's is another matter
        return False
    target = serving.profile.target
    same = target is not None and profile.target is not None and profile.target.file == target.file
    return same and not profile.speculation.kinds and profile.engine == serving.profile.engine


def _profile_folders() -> list[Path]:
    return [config_folder() / "profiles", profiles_folder()]


async def _stays_busy(record: Record) -> bool:
    """Whether the server works for somebody else; our own last request may still be ending."""
    for _ in range(_BUSY_LOOKS):
        if not await in_background(lambda: is_busy(record)):
            return False
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return True
