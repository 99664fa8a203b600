"""Watches whether drafting pays in a session. Where the person wants that, drafts become shorter when they do
not, and where that is not enough the session goes on without the draft.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from agent.app.background import in_background
from agent.app.servers.serving import Progress, Serving
from agent.core.draft_length import shorter_draft
from agent.core.errors import AgentError
from agent.core.events import Event, Notice, PrefixBroken, StepFinished
from agent.core.stats import StepStats, total
from agent.core.watch import Baseline, SpeedWatch
from agent.resources import places_of_profiles, runtime_folder, state_folder
from agent.server.argv_speculation import DFLASH_N_MAX
from agent.server.probe import stays_busy
from agent.server.record import Endpoint

_ENDING_SECONDS = 1.0
_ENGINE_N_MAX = 3
"""What llama.cpp drafts at once with a plain draft model or layers of the target, unless it is told."""
_N_MAX_OF_A_REQUEST = "speculative.n_max"


class Asked(Protocol):
    """The model of the session."""

    def change_sampling(self, **values: object) -> None: ...


class SpeedGuard:
    """Sees the events of a session. `observe` gives one notice for each step of the remedy, `wants_change`
    says that one is due: first shorter drafts, then none.

    Without a `watch` nothing is looked at.
    """

    def __init__(self, serving: Serving, watch: SpeedWatch | None) -> None:
        self._serving = serving
        self._watch = watch
        self._seen: list[StepStats] = []
        self._length = 0
        self.wants_change = False

    def observe(self, event: Event) -> Notice | None:
        """What people should know after this event, with what can be done about it."""
        if not isinstance(event, StepFinished) or self._watch is None or self._watch.is_over:
            return None
        self._seen.append(event.stats)
        found = self._watch.observe(event.stats)
        if not found:
            return None
        self.wants_change = self._may_change
        self._length = self._shorter() if self.wants_change else 0
        return Notice(text=f"{found}; {self._remedy()}", level="warning")

    @property
    def _may_change(self) -> bool:
        wanted = self._serving.loaded.settings.server.fallback == "plain"
        return wanted and self._serving.is_managed and self._serving.without_draft() is not None

    def _shorter(self) -> int:
        """How many tokens are to be drafted at once; 0 where none are, because fewer did not help before."""
        if self._serving.draft_limit:
            return 0
        asked = self._serving.profile.speculation
        usual = DFLASH_N_MAX if asked.kind == "dflash" else _ENGINE_N_MAX
        return shorter_draft(usual if asked.n_max is None else asked.n_max, total(self._seen))

    def _remedy(self) -> str:
        if self.wants_change:
            way = _drafts(self._length) if self._length else "goes without the draft"
            return f"from the next turn on it {way}"
        if not self._serving.is_managed:
            return "start that server without drafting to compare"
        plain = plain_profile(self._serving)
        ways = [f"--profile {plain}"] if plain else []
        changeable = self._serving.without_draft() is not None
        ways.append('server.fallback = "plain"' if changeable else 'speculation.kind = "none" in a profile')
        return f"to go without the draft: {', or '.join(ways)}"

    async def change(self, endpoint: Endpoint, model: Asked, progress: Progress) -> "Change | None":
        """Shortens the draft, or puts a server without one in the place of the present one.

        `model` is what is told of shorter drafts where the server takes their length with each request; it
        goes on as it is then.

        Returns:
            None where the present server has to stay: it works for somebody else, or there is no draft.

        Raises:
            ServerError, ModelFileError: neither came up, the changed one or the present one again.
        """
        self.wants_change = False
        if self._length and await in_background(lambda: takes_lengths(self._serving)):
            return self._shortened_in_place(model)
        changed = (
            self._serving.with_drafts_of(self._length) if self._length else self._serving.without_draft()
        )
        record = self._serving.record_of(endpoint)
        if changed is None or record is None:
            return None
        # Our own last request may still be ending.
        if await in_background(lambda: stays_busy(record, _ENDING_SECONDS)):
            return None
        from agent.server.stop import stop_server

        # Both at a time would not fit where memory is short.
        await stop_server(record, runtime_folder())
        try:
            return Change(changed, await changed.endpoint(progress), self._cost())
        except AgentError as error:
            # What did not come up once is not tried again and again.
            kept = replace(self._serving, keeps_draft=True)
            again = await kept.endpoint(progress)
            which = f"with drafts of {self._length}" if self._length else "without the draft"
            return Change(kept, again, f"the server {which} failed: {error.message}")

    def _shortened_in_place(self, model: Asked) -> "Change":
        model.change_sampling(**{_N_MAX_OF_A_REQUEST: self._length})
        self._serving = replace(self._serving, draft_limit=self._length)
        if self._watch is not None:
            self._watch = SpeedWatch(
                self._watch.baseline, self._watch.limits, plain_rate=self._watch.plain_rate
            )
        self._seen.clear()
        return Change(self._serving, None, f"the server {_drafts(self._length)}")

    def _cost(self) -> str:
        last = self._seen[-1] if self._seen else StepStats()
        tokens, rate = last.context_tokens, last.prefill_rate
        seconds = f", about {tokens / rate:.0f} s" if rate and tokens else ""
        return f"the server {_goes_on(self._length)}, with an empty prompt cache ({tokens} tokens{seconds})"


def _drafts(length: int) -> str:
    return f"drafts at most {length} token{'' if length == 1 else 's'} at once"


def _goes_on(length: int) -> str:
    """What a changed server does, as the end of a sentence about it."""
    return _drafts(length) if length else "goes on without the draft"


@dataclass(frozen=True, slots=True)
class Change:
    """What goes on, and what the change costs in one line. Without an `endpoint` it is the present server."""

    serving: Serving
    endpoint: Endpoint | None
    cost: str

    @property
    def event(self) -> PrefixBroken | Notice:
        return PrefixBroken(cause=self.cost) if self.endpoint is not None else Notice(text=self.cost)


def takes_lengths(serving: Serving) -> bool:
    """Whether the server takes the length of drafts with a request: BeeLlama before 0.4 does, llama.cpp
    passes over the field. Reads what the binary says of itself.
    """
    try:
        capabilities = serving.capabilities()
    except AgentError:  # the binary is gone since the server was started
        return False
    return capabilities is not None and capabilities.dialect == "bee-0.3"


def guard_for(
    serving: Serving,
    endpoint: Endpoint,
    stored: Callable[[Endpoint], Baseline | None] | None = None,
) -> SpeedGuard:
    """The guard of a session with that server. Only servers that draft, as far as is known, are watched."""
    foreign = endpoint.fingerprint is None
    if serving.keeps_draft or (not foreign and not serving.profile.speculation.kinds):
        return SpeedGuard(serving, None)
    # Shorter drafts have to be as good as the whole ones once were.
    measured = replace(endpoint, fingerprint=serving.measured_as) if serving.measured_as else endpoint
    baseline = (stored or stored_baseline)(measured)
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

    names = [file.name for file in list_profiles(places_of_profiles())]
    return next((name for name in names if _is_plain(serving, name)), "")


def _is_plain(serving: Serving, name: str) -> bool:
    """Whether the profile of that name serves the same model without drafting."""
    from agent.server.profile_files import load_profile

    try:
        profile = load_profile(name, places_of_profiles())
    except AgentError:  # a damaged profile of the person's is another matter
        return False
    target = serving.profile.target
    same = target is not None and profile.target is not None and profile.target.file == target.file
    return same and not profile.speculation.kinds and profile.engine == serving.profile.engine
