"""Tells why a server evaluates again what it had: one line for each cause, once in a session.

Each request extends the one before it, so a server that keeps its prompt cache has to evaluate only what is
new. `cache_n` says what it really kept. Where that is much less although nothing broke the prefix here, the
cause lies in the server, and a person can often remove it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from agent.core.events import (
    AssistantReplied,
    Event,
    Notice,
    PrefixBroken,
    Retry,
    StepFinished,
    TurnFinished,
    TurnReason,
    UserMessageAdded,
)

Memory = Literal["", "whole", "window", "recurrent"]
"""How a model remembers a prompt: all of it, a window in some layers (SWA), or a state that cannot be cut."""

Cause = Literal["thoughts", "state", "cache_ram", "slots", "other"]

LEAST_SHARE = 0.95
"""Less of the tokens that were there than this is worth a line."""

_LEAST_LOST = 128
"""Tokens. Fewer are lost where a reply that comes back is cut into other tokens, and cost little."""

_MAY_INTERRUPT: tuple[TurnReason, ...] = ("cancelled", "server_failed", "time_limit", "context_full")
"""A turn that ends so may leave a request half done, and nobody knows what the slot holds then."""

_LITTLE = 0.5
"""A slot that somebody else had keeps at most what all prompts begin with: system text and tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMemory:
    """What is known of how the server keeps prompts; None and 0 where nobody knows.

    `cache_ram_mib` is the memory for prompts that lost their slot (0: none, -1: no limit).
    """

    memory: Memory = ""
    slots: int = 0
    cache_ram_mib: int | None = None


@dataclass(slots=True)
class ReuseWatch:
    """Sees the events of a session. `observe` gives a notice where the server kept less than it could.

    `look` tells about the server; it is asked only where there is something to explain.
    """

    look: Callable[[], ServerMemory] = ServerMemory
    _held: int = 0
    _is_broken: bool = True
    _has_thoughts: bool = False
    _thoughts_before: bool = False
    _told: set[Cause] = field(default_factory=set)

    def moved(self, look: Callable[[], ServerMemory]) -> None:
        """Another server answers from now on; it has nothing yet."""
        self.look, self._is_broken = look, True

    def observe(self, event: Event) -> Notice | None:
        match event:
            case PrefixBroken() | Retry():
                # After a failed request nobody knows what the slot holds.
                self._is_broken = True
            case UserMessageAdded():
                # Templates drop the thoughts before the newest message of the person's.
                self._thoughts_before = self._has_thoughts
            case AssistantReplied():
                self._has_thoughts = self._has_thoughts or bool(event.reasoning.strip())
            case TurnFinished() if event.reason in _MAY_INTERRUPT:
                self._is_broken = True
            case StepFinished():
                return self._judge(event)
            case _:
                return None
        return None

    def _judge(self, event: StepFinished) -> Notice | None:
        stats, held = event.stats, self._held
        prompt = stats.cached_tokens + stats.prompt_tokens
        if not stats.counted or stats.source != "server" or not prompt:
            self._is_broken = True
            return None
        expected = 0 if self._is_broken else min(held, prompt - 1)
        dropped, self._thoughts_before = self._thoughts_before, False
        self._held, self._is_broken = stats.context_tokens, False
        lost = expected - stats.cached_tokens
        if lost < _LEAST_LOST or stats.cached_tokens >= LEAST_SHARE * expected:
            return None
        cause = self._cause(stats.cached_tokens / expected, dropped)
        if cause in self._told:
            return None
        self._told.add(cause)
        seconds = f", {stats.prompt_seconds:.0f} s" if stats.prompt_seconds >= 1 else ""
        cost = f"{lost} of {expected} tokens that the server had were read again{seconds}"
        return Notice(text=f"{cost}: {_WORDS[cause]}", level="warning")

    def _cause(self, share: float, dropped: bool) -> Cause:
        if dropped:
            return "thoughts"
        server = self.look()
        if server.memory in ("window", "recurrent"):
            return "state"
        if share > _LITTLE:
            return "other"
        if server.cache_ram_mib == 0:
            return "cache_ram"
        return "slots" if server.slots else "other"


_WORDS: dict[Cause, str] = {
    "thoughts": (
        "the model's chat template leaves out its earlier thoughts once you say something new "
        "(preserve_reasoning = true in the profile keeps them, where the template can)"
    ),
    "state": (
        "this model's memory cannot be cut at any point, and the server had no checkpoint nearby "
        "(swa_full = true, or more checkpoints in extra_args, cost memory and help)"
    ),
    "cache_ram": (
        "another conversation had the slot, and the server keeps no prompt aside (cache_ram_mib = 0 in the "
        "profile, --cache-ram 0)"
    ),
    "slots": "another conversation had the slot, or the server has put it to another use",
    "other": "the server does not say why (agent doctor tries whether it keeps prompts)",
}
