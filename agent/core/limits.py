"""What ends a turn that does not end by itself: limits, and a model that goes in circles."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.events import TurnReason
from agent.core.messages import ToolCall
from agent.core.stats import StepStats

# What differs in the output of a command that did the same again: times, dates, durations, addresses.
_PASSING = re.compile(
    r"\b0x[0-9a-f]+|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}:\d\d(?::\d\d)?|\d+\.\d+"
    r"|\b\d+ ?(?:ms|s|secs?|seconds?|mins?|minutes?)\b|\bpid:? \d+",
    re.IGNORECASE,
)
_MOST_IN_SUCCESSION = 10


@dataclass(slots=True)
class TurnState:
    """What a guard may look at.

    `context_tokens` is what the conversation took up after the last step, without a reply that was dropped.
    `calls` are the calls of the last step, `results` the texts that they gave, `changed` the ones that
    changed files and `failed` the ones that gave an error, all by the id of the call. `compactions` is how
    often the conversation was made short.
    """

    steps: int = 0
    stats: list[StepStats] = field(default_factory=list)
    context_tokens: int = 0
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    compactions: int = 0

    def begin_step(self) -> None:
        self.steps += 1
        self.calls, self.results, self.changed, self.failed = (), {}, set(), set()


@dataclass(frozen=True, slots=True)
class Stop:
    reason: TurnReason
    detail: str


class Guard(Protocol):
    """Looked at before every step; the first `Stop` ends the turn."""

    def check(self, state: TurnState) -> Stop | None: ...


class StepLimit:
    """Bounds the steps of a run; `used_before` are those of earlier attempts."""

    def __init__(self, max_steps: int, used_before: int = 0) -> None:
        self._max_steps = max_steps
        self._used_before = used_before

    def check(self, state: TurnState) -> Stop | None:
        if self._used_before + state.steps < self._max_steps:
            return None
        return Stop("step_limit", f"the limit of {self._max_steps} steps is reached (max_steps)")


class AttemptLimit:
    """Bounds the steps of one attempt, where others may follow. One that is `solved` may still finish."""

    def __init__(self, max_steps: int, solved: Callable[[], bool] = lambda: False) -> None:
        self._max_steps = max_steps
        self._solved = solved

    def check(self, state: TurnState) -> Stop | None:
        if state.steps < self._max_steps or self._solved():
            return None
        return Stop("attempt_limit", f"no success within {self._max_steps} steps")


class TimeLimit:
    """Counts from its creation, over all attempts of a run; 0 seconds mean no limit.

    Besides ending a turn between two steps, it makes the turn loop stop what is running when time is up.
    """

    def __init__(self, max_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_seconds = max_seconds
        self._clock = clock
        self._started = clock()

    @property
    def remaining(self) -> float | None:
        """Seconds left, `None` without a limit."""
        if self._max_seconds <= 0:
            return None
        return max(0.0, self._started + self._max_seconds - self._clock())

    def check(self, state: TurnState) -> Stop | None:
        return self.stop() if self.remaining == 0.0 else None

    def stop(self) -> Stop:
        return Stop("time_limit", f"the limit of {self._max_seconds:g} seconds is reached (max_seconds)")


class TokenLimit:
    """Bounds the tokens that the model generates in a run; 0 means no limit."""

    def __init__(self, max_tokens: int, used_before: int = 0) -> None:
        self._max_tokens = max_tokens
        self._used_before = used_before

    def check(self, state: TurnState) -> Stop | None:
        if self._max_tokens <= 0:
            return None
        used = self._used_before + sum(step.decoded_tokens for step in state.stats)
        if used < self._max_tokens:
            return None
        return Stop("token_limit", f"the limit of {self._max_tokens} generated tokens is reached")


class CallLimit:
    """Bounds the tool calls that the model makes in a run, whatever becomes of them; 0 means no limit.

    Counts from its creation, over all attempts of a run, and what a `share` of it counts. Besides ending a
    turn between two steps, it makes the turn loop leave out the calls that remain in a reply.
    """

    def __init__(self, max_calls: int, whole: "CallLimit | None" = None) -> None:
        self._max_calls = max_calls
        self._whole = whole
        self._used = 0

    def count(self) -> None:
        """Notes one call that is made."""
        self._used += 1
        if self._whole is not None:
            self._whole.count()

    @property
    def remaining(self) -> int | None:
        """Calls left, `None` without a limit."""
        return max(0, self._max_calls - self._used) if self._max_calls > 0 else None

    def share(self) -> "CallLimit | None":
        """Half of what is left for a sub-agent, whose calls count here too; None where that is no call."""
        remaining = self.remaining
        if remaining is None:
            return CallLimit(0)
        return CallLimit(remaining // 2, self) if remaining > 1 else None

    def check(self, state: TurnState) -> Stop | None:
        return self.stop() if self.remaining == 0 else None

    def stop(self) -> Stop:
        calls = "1 tool call" if self._max_calls == 1 else f"{self._max_calls} tool calls"
        return Stop("tool_call_limit", f"the limit of {calls} is reached")


class SharedLimits:
    """Lets sub-agents count against the steps and tokens of the turn that they work for; 0 means no limit.

    Stands among the guards of that turn, beside its own limits, of which `calls` is the one of tool calls.
    A sub-agent gets half of what is left.
    """

    def __init__(
        self,
        max_steps: int,
        max_tokens: int,
        *,
        calls: CallLimit | None = None,
        steps_before: int = 0,
        tokens_before: int = 0,
    ):
        self.calls = calls or CallLimit(0)
        self._max_steps = max_steps
        self._max_tokens = max_tokens
        self._steps_before = steps_before
        self._tokens_before = tokens_before
        self._steps_delegated = 0
        self._tokens_delegated = 0
        self._state = TurnState()

    def spend(self, steps: int, tokens: int) -> None:
        """Counts what a sub-agent has used."""
        self._steps_delegated += steps
        self._tokens_delegated += tokens

    def share_of_steps(self) -> int:
        """The steps that a sub-agent may take now; 0 where it may take none."""
        return max(0, self._max_steps - self._steps) // 2

    def share_of_tokens(self) -> int | None:
        """The tokens that a sub-agent may generate now, None without a limit."""
        return max(1, (self._max_tokens - self._tokens) // 2) if self._max_tokens else None

    def check(self, state: TurnState) -> Stop | None:
        self._state = state
        helped = "sub-agents included"
        if self._steps_delegated and self._steps >= self._max_steps:
            return Stop(
                "step_limit", f"the limit of {self._max_steps} steps is reached, {helped} (max_steps)"
            )
        if self._tokens_delegated and self._max_tokens and self._tokens >= self._max_tokens:
            detail = f"the limit of {self._max_tokens} generated tokens is reached, {helped}"
            return Stop("token_limit", detail)
        return None

    @property
    def _steps(self) -> int:
        return self._steps_before + self._state.steps + self._steps_delegated

    @property
    def _tokens(self) -> int:
        own = sum(step.decoded_tokens for step in self._state.stats)
        return self._tokens_before + own + self._tokens_delegated


class ContextBudget:
    """Stops before a request could exceed the window that the server really gave."""

    def __init__(self, context_tokens: Callable[[], int], reserve_tokens: int) -> None:
        self._context_tokens = context_tokens
        self._reserve = reserve_tokens

    def check(self, state: TurnState) -> Stop | None:
        window = self._context_tokens()
        used = state.context_tokens
        if window <= 0 or not used:
            return None
        if used + self._reserve <= window:
            return None
        return Stop("context_full", f"the context window of {window} tokens is full ({used} used)")


class RepetitionGuard:
    """Ends a turn when the same call keeps coming and gets nowhere.

    Running the tests again after a change is no circle, so a change of a file forgets the calls that
    changed none, and a call with another result than before counts as another one, unless it failed: the
    words of an error may differ. Decimal numbers, times, dates and addresses in results are left out of that.
    What was summed up may be looked at again. A change that is made again and again is undone again and
    again, so those are never forgotten. Nothing is waited for without end, either: ten times the same calls
    and no others are too many, whatever they give.
    """

    def __init__(self, allowed: int = 3) -> None:
        self._allowed = allowed
        self._idle: Counter[str] = Counter()
        self._changing: Counter[str] = Counter()
        self._last_step = 0
        self._compactions = 0
        self._before: list[str] = []
        self._in_succession = 0

    def check(self, state: TurnState) -> Stop | None:
        if state.compactions != self._compactions:
            self._compactions = state.compactions
            self._idle.clear()
        if state.steps == self._last_step:
            return None
        self._last_step = state.steps
        keys = [
            f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=str)}" for call in state.calls
        ]
        self._in_succession = self._in_succession + 1 if keys and keys == self._before else 1
        self._before = keys
        if self._in_succession >= _MOST_IN_SUCCESSION:
            what = f"the same {state.calls[0].name} call {_MOST_IN_SUCCESSION} times in succession"
            return Stop("gave_up", f"the model made {what}")
        for call, asked in zip(state.calls, keys, strict=True):
            gave = ""
            if call.id in state.changed:
                self._idle.clear()
                seen = self._changing
            else:
                if call.id not in state.failed:
                    gave = _PASSING.sub("#", state.results.get(call.id, ""))
                seen = self._idle
            seen[asked + gave] += 1
            if seen[asked + gave] >= self._allowed:
                return Stop("gave_up", f"the model made the same {call.name} call {self._allowed} times")
        return None
