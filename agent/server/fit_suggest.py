"""What would make a server fit: each change is estimated again, none is a fixed piece of advice. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agent.server.fit import Estimate, ServerSettings, estimate, layers_of, row_bytes
from agent.server.model_shape import ModelShape

_CONTEXT_STEP = 1024
_SMALLEST_CONTEXT = 4096
"""Less than this is of no use for working on code."""
_UBATCHES = (256, 128)
_KV_TYPES = (
    ("q8_0", "q8_0", "hardly any loss of quality"),
    ("q5_0", "q4_1", "a small loss of quality"),
    ("q4_0", "q4_0", "a loss of quality that shows in long contexts"),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """Memory that can be had, in bytes. With `unified` the GPU's is a part of the RAM."""

    gpu: int
    ram: int
    unified: bool = False

    def left(self, need: Estimate) -> int:
        """What would be left where it is scarcest, below zero when it does not fit."""
        in_ram = self._in_ram(need)
        return min(self.gpu - need.gpu, self.ram - in_ram) if need.gpu else self.ram - in_ram

    def saved(self, before: Estimate, after: Estimate) -> int:
        """How much less is needed where it was scarcest before."""
        if before.gpu and self.gpu - before.gpu <= self.ram - self._in_ram(before):
            return before.gpu - after.gpu
        return self._in_ram(before) - self._in_ram(after)

    def _in_ram(self, need: Estimate) -> int:
        return need.ram + (need.gpu if self.unified else 0)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of the profile, what it saves (bytes) where memory is scarcest, and what it costs."""

    change: str
    saves: int
    fits: bool
    cost: str


def suggest(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> tuple[Suggestion, ...]:
    """Every single change that saves something; if none is enough, what several together do."""
    before = estimate(target, draft, settings)

    def suggestion(changed: ServerSettings, cost: str) -> Suggestion:
        after = estimate(target, draft if changed.drafts else None, changed)
        saves, fits = budget.saved(before, after), budget.left(after) >= 0
        return Suggestion(described(settings, changed), saves, fits, cost)

    found = [suggestion(changed, cost) for cost, changed in _changes(target, draft, settings, budget)]
    if budget.left(before) < 0 and not any(one.fits for one in found):
        changed = _together(target, draft, settings, budget)
        if changed is not None:
            found.append(suggestion(changed, "all of it together"))
    return tuple(one for one in found if one.saves > 0)


def described(before: ServerSettings, after: ServerSettings) -> str:
    """The difference as lines of a profile, in one line."""
    parts = []
    if after.slots != before.slots:
        parts.append(f"slots = {after.slots}")
    if after.context != before.context:
        parts.append(f"context = {after.context}")
    if (after.kv_type_k, after.kv_type_v) != (before.kv_type_k, before.kv_type_v):
        parts.append(f'kv_type_k = "{after.kv_type_k}", kv_type_v = "{after.kv_type_v}"')
    if after.flash_attention and not before.flash_attention:
        parts.append('flash_attention = "auto"')
    if after.ubatch != before.ubatch:
        parts.append(f"ubatch = {after.ubatch}")
    if after.speculation != before.speculation:
        parts.append(f'speculation.kind = "{after.speculation}"')
    if after.gpu_layers != before.gpu_layers:
        parts.append(f"gpu_layers = {after.gpu_layers}")
    return ", ".join(parts)


def largest_context(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> int:
    """The longest context for one slot that fits with everything else as it is, 0 = not even a short one.

    It is a multiple of 1024 and never more than the model was trained with.
    """

    def fits(steps: int) -> bool:
        changed = replace(settings, context=steps * _CONTEXT_STEP)
        return budget.left(estimate(target, draft, changed)) >= 0

    limit = target.trained_context or settings.context
    return _largest(limit // _CONTEXT_STEP, fits) * _CONTEXT_STEP


def most_gpu_layers(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> int:
    """How many layers fit on the GPU, the output counted as one; 0 when none does."""

    def fits(layers: int) -> bool:
        return estimate(target, draft, replace(settings, gpu_layers=layers)).gpu <= budget.gpu

    return _largest(layers_of(target), fits)


def largest_weights(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> int:
    """How large the target's tensors could be with everything else as it is, in bytes; 0 = no size fits."""
    return max(0, target.weights.total + budget.left(estimate(target, draft, settings)))


def _largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` for which `fits`, which is true up to some number, is."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _changes(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> Iterator[tuple[str, ServerSettings]]:
    """Each change alone: what it costs, and the settings with it."""
    yield from _smaller_kv(settings)
    half = settings.context // 2 // _CONTEXT_STEP * _CONTEXT_STEP
    longest = largest_context(target, draft, settings, budget)
    for context in sorted({half, longest}, reverse=True):
        if _SMALLEST_CONTEXT <= context < settings.context:
            yield "shorter conversations", replace(settings, context=context)
    for size in _UBATCHES:
        if size < settings.tokens:
            yield "long prompts are read more slowly", replace(settings, ubatch=size)
    if settings.slots > 1:
        yield "one conversation at a time", replace(settings, slots=1)
    if settings.drafts:
        yield "drafts come from the context only", replace(settings, speculation="ngram-mod")
    if settings.gpu_layers:
        layers = min(most_gpu_layers(target, draft, settings, budget), settings.gpu_layers - 1)
        yield "the other layers run on the processor, slowly", replace(settings, gpu_layers=layers)


def _smaller_kv(settings: ServerSettings) -> Iterator[tuple[str, ServerSettings]]:
    now = _kv_size(settings.kv_type_k, settings.kv_type_v)
    for key, value, cost in _KV_TYPES:
        if _kv_size(key, value) < now:
            # Quantised values need flash attention.
            yield cost, replace(settings, kv_type_k=key, kv_type_v=value, flash_attention=True)


def _kv_size(key: str, value: str) -> int:
    return row_bytes(_CONTEXT_STEP, key) + row_bytes(_CONTEXT_STEP, value)


def _together(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> ServerSettings | None:
    """The least painful combination: one slot, a smaller batch, then smaller KV types, then less context.

    A KV type is taken when it leaves at least half of the context; when none does, the smallest one.
    """
    small = replace(settings, slots=1, ubatch=min(settings.ubatch, _UBATCHES[0]))
    context = 0
    for changed in [small, *(one for _, one in _smaller_kv(small))]:
        small = changed
        context = min(settings.context, largest_context(target, draft, small, budget))
        if context >= settings.context // 2:
            break
    return replace(small, context=context) if context >= _SMALLEST_CONTEXT else None
