"""What may be varied of a profile: only what its engine can express, and on this machine makes sense."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.bench.trial import Changes
from agent.bench.tune import Dimension
from agent.core.errors import UsageError
from agent.server.profile import KINDS_WITH_A_MODEL, Profile, SpeculationKind

if TYPE_CHECKING:
    from agent.server.caps import Capabilities

DIMENSIONS = ("kinds", "n_max", "p_min", "threads", "batch")
"""In the order in which they are searched: what gains most comes first."""
KINDS = "speculation.kinds"
"""The one change that is no key of a profile: all kinds of speculation at once."""

_PARTNERS: tuple[SpeculationKind, ...] = ("ngram-mod", "ngram-simple", "ngram-map-k", "suffix", "copyspec")
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 15, 24, 32)
_DFLASH_BLOCK = 15
_LENGTHS_OF_NGRAM_MOD = (8, 16, 32, 64, 96, 128)
_LENGTHS_OF_NGRAMS = (8, 16, 32, 48, 64)
_PROBABILITIES = (0.0, 0.25, 0.5, 0.75, 0.9)
_UBATCHES = (64, 128, 256, 512, 1024, 2048, 4096)
_NGRAM_MOD_N_MIN = 48
_NGRAM_KEYS = ("n_match", "size_n", "size_m", "min_hits", "ngram_n_max", "ngram_n_min")
_HOLD_AS_MEASURED = frozenset(
    {KINDS, "batch", "ubatch", *(f"speculation.{key}" for key in ("n_max", "n_min", *_NGRAM_KEYS))}
)
"""A batch that is fitted to the machine would make other ones of these."""
_MEASURED_ELSEWHERE = frozenset({"cors", "open-server", "draft-kv"})
"""Warnings that are about something else than what is varied."""


@dataclass(slots=True)
class Space:
    """The candidates around one profile.

    `threads` is what automatic means here, `most_threads` what the machine has. `left_out` collects what was
    not tried, with the reason.
    """

    base: Profile
    capabilities: "Capabilities | None" = None
    threads: int = 1
    most_threads: int = 1
    left_out: dict[Changes, str] = field(default_factory=dict)

    def dimensions(self, names: Sequence[str]) -> list[Dimension]:
        """Those with these names, in the order in which they are searched."""
        walks: dict[str, Callable[[Changes], list[list[Changes]]]] = {
            "kinds": self._kinds,
            "n_max": self._lengths,
            "p_min": self._probabilities,
            "threads": self._threads,
            "batch": self._batches,
        }
        return [Dimension(name, self._possible(walks[name])) for name in DIMENSIONS if name in names]

    def profile(self, changes: Changes) -> Profile:
        """The base with changes. Raises ValueError where the result is no profile."""
        table = self.base.model_dump(mode="python", exclude_unset=True)
        speculation: dict[str, Any] = dict(table.get("speculation", {}))
        for key, value in sorted(changes, key=lambda change: change[0] != KINDS):
            if key == KINDS:
                speculation = _with_kinds(self.base, speculation, value)
            elif key.startswith("speculation."):
                speculation[key.removeprefix("speculation.")] = value
            else:
                table[key] = value
        if speculation:
            table["speculation"] = speculation
        if self.base.batch_seconds and any(key in _HOLD_AS_MEASURED for key, _ in changes):
            table["batch_seconds"] = 0
        return Profile.model_validate(table)

    def problem(self, changes: Changes) -> str:
        """Why the engine of this profile cannot do it; empty where it can."""
        try:
            profile = self.profile(changes)
        except ValueError as error:
            return str(error).splitlines()[-1].strip()
        if self.capabilities is None:
            return ""
        from agent.server.argv import command_for
        from agent.server.command import Places

        places = Places(target="target", draft="draft" if profile.uses_draft_model else "")
        command = command_for(profile, self.capabilities, places)
        before = {one.code for one in command_for(self.base, self.capabilities, places).warnings}
        new = [
            one for one in command.warnings if one.code not in before and one.code not in _MEASURED_ELSEWHERE
        ]
        return next((one.message for one in (*command.refusals, *new)), "")

    def _possible(
        self, walks: Callable[[Changes], list[list[Changes]]]
    ) -> Callable[[Changes], list[list[Changes]]]:
        def checked(best: Changes) -> list[list[Changes]]:
            return [[one for one in walk if self._is_possible(one)] for walk in walks(best)]

        return checked

    def _is_possible(self, changes: Changes) -> bool:
        problem = self.problem(changes)
        if problem:
            self.left_out[changes] = problem
        return not problem

    def _kinds(self, best: Changes) -> list[list[Changes]]:
        main = self.base.speculation.kind
        known = (main,) if main in KINDS_WITH_A_MODEL else ()
        combinations: list[tuple[SpeculationKind, ...]] = [
            known,
            *((*known, partner) for partner in _PARTNERS if known),
            *((partner,) for partner in _PARTNERS),
            (),
        ]
        now = self.profile(best).speculation.kinds
        return [[merged(best, {KINDS: kinds})] for kinds in dict.fromkeys(combinations) if kinds != now]

    def _lengths(self, best: Changes) -> list[list[Changes]]:
        speculation = self.profile(best).speculation
        kind = speculation.kind
        if kind in KINDS_WITH_A_MODEL:
            known = _DFLASH_BLOCK if kind == "dflash" else 3
            now = known if speculation.n_max is None else speculation.n_max
            highest = max(now, _DFLASH_BLOCK) if kind == "dflash" else _LENGTHS[-1]
            ladder = [value for value in _LENGTHS if value <= highest]
            return _both_ways(ladder, now, lambda value: merged(best, {"speculation.n_max": value}))
        if kind == "ngram-mod":
            own = speculation.ngram_n_max is not None
            keys = ("ngram_n_max", "ngram_n_min") if own else ("n_max", "n_min")
            now, least = (getattr(speculation, key) for key in keys)
            least = _NGRAM_MOD_N_MIN if least is None else least

            def longer(value: int) -> Changes:
                # A draft has to be allowed to be shorter than the longest one.
                shorter = {f"speculation.{keys[1]}": value // 2} if least > value else {}
                return merged(best, {f"speculation.{keys[0]}": value, **shorter})

            return _both_ways(_LENGTHS_OF_NGRAM_MOD, 64 if now is None else now, longer)
        if kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v"):
            now = 48 if speculation.size_m is None else speculation.size_m
            return _both_ways(
                _LENGTHS_OF_NGRAMS, now, lambda value: merged(best, {"speculation.size_m": value})
            )
        return []

    def _probabilities(self, best: Changes) -> list[list[Changes]]:
        speculation = self.profile(best).speculation
        if speculation.kind not in KINDS_WITH_A_MODEL:
            return []
        return _both_ways(
            _PROBABILITIES, speculation.p_min or 0.0, lambda value: merged(best, {"speculation.p_min": value})
        )

    def _threads(self, best: Changes) -> list[list[Changes]]:
        now = self.profile(best).threads or self.threads
        doubled = [2**power for power in range(self.most_threads.bit_length())]
        ladder = sorted(
            {*doubled, self.threads, self.threads * 3 // 4, self.most_threads} & set(range(1, 4097))
        )
        return _both_ways(
            [value for value in ladder if value <= self.most_threads],
            now,
            lambda value: merged(best, {"threads": 0 if value == self.threads else value}),
        )

    def _batches(self, best: Changes) -> list[list[Changes]]:
        profile = self.profile(best)

        def bigger(value: int) -> Changes:
            return merged(best, {"ubatch": value} | ({"batch": value} if value > profile.batch else {}))

        return _both_ways(_UBATCHES, profile.ubatch, bigger)


def dimension_names(text: str) -> tuple[str, ...]:
    """The names in a list with commas. Raises UsageError for one that there is not."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in DIMENSIONS]
    if unknown or not names:
        raise UsageError(
            f"--only: there is no {unknown[0]!r}" if unknown else "--only names nothing",
            f"what can be varied: {', '.join(DIMENSIONS)}",
        )
    return names


def merged(changes: Changes, more: dict[str, Any]) -> Changes:
    """Both, the later ones on top."""
    return tuple(sorted({**dict(changes), **more}.items()))


def describe(changes: Changes) -> str:
    """For people: `n_max 12, threads 6`; `base` for no changes."""
    return ", ".join(_described(key, value) for key, value in changes) or "base"


def _described(key: str, value: Any) -> str:
    if key == KINDS:
        return " + ".join(value) if value else "no speculation"
    if key == "threads" and not value:
        return "threads automatic"
    return f"{key.removeprefix('speculation.')} {value:g}"


def _both_ways(ladder: Iterable[Any], now: Any, change: Callable[[Any], Changes]) -> list[list[Changes]]:
    """Upwards from where it is now, and downwards."""
    values = list(ladder)
    up = [change(value) for value in values if value > now]
    down = [change(value) for value in reversed(values) if value < now]
    return [up, down]


def _with_kinds(
    base: Profile, speculation: dict[str, Any], kinds: Sequence[SpeculationKind]
) -> dict[str, Any]:
    """The numbers of kinds that stay, with other kinds: those of one kind mean nothing for another."""
    if not kinds:
        return {"kind": "none"}
    old = base.speculation.kinds
    table: dict[str, Any] = {"kind": list(kinds)}
    if old[:1] == tuple(kinds[:1]):
        kept = {key: value for key, value in speculation.items() if key not in ("kind", "also")}
    else:
        kept = {key: value for key, value in speculation.items() if key in _NGRAM_KEYS}
    if not any(kind.startswith("ngram") and kind in old for kind in kinds):
        kept = {key: value for key, value in kept.items() if key not in _NGRAM_KEYS}
    return {**table, **kept}
