"""What is wrong with a server that is up and answers: it serves, but not what its profile asks for. Pure.

A server says little about this. What it says was taken from llama.cpp's build 11434 (runs of 2026) and, for
its forks, from their sources. `/slots[].params` and `/props` repeat what was asked, so only three signs of
drafting are believed: tokens that were drafted, `/slots[].speculative`, and, for DFlash, a line of the log.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent.server.profile import KINDS_WITH_A_MODEL, Profile

Level = Literal["info", "warning", "error"]

_ADDED = "adding speculative implementation"
_CLAMPED = re.compile(
    r"requested draft size \(n_max=(\d+).*exceeds the trained block size (\d+) -- clamping to (\d+)"
)
_TRAINED = re.compile(r"n_ctx_seq \((\d+)\) > n_ctx_train \((\d+)\)")
_FOREIGN_VOCABULARY = re.compile(r"draft vocabs are not compatible|draft model vocab type must match")
_NO_SPECULATION = re.compile(r"failed to initialize speculative decoding context: (.+)")
_SYNTHETIC = "synthetic speculative acceptance is enabled"
_NO_GPU = re.compile(r"no usable GPU found")
_TWICE = re.compile(r"DEPRECATED: argument '(\S+)' specified multiple times")
_USELESS = re.compile(r"DEPRECATED: (?:argument )?'?(--?[\w-]+)'? (?:is|has been) (.+)")
_LINE = re.compile(r"^[\d.]+ E (.*)$", re.MULTILINE)
_LONGEST_LINE = 200
_MOST_LINES = 3
BENIGN = (
    re.compile(r"dflash requires ctx_other to be set"),
    re.compile(r"failed to measure the memory of the extra model, fitting without it"),
    re.compile(r"encountered an error while trying to fit params to free device memory"),
)
"""What a good start says at the level of errors: the memory is measured before the draft has its target."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a running server. `code` names it for programs, `hint` says what to do.

    `error`: it is not the server that was asked for. `warning`: it works, but worse than it could.
    """

    level: Level
    code: str
    message: str
    hint: str


def findings_after_start(
    profile: Profile,
    log_text: str,
    props: Mapping[str, Any] | None,
    slots: Sequence[Mapping[str, Any]] | None,
    drafted: int | None,
) -> list[Finding]:
    """Compares what a server that has just become ready does with what its profile says.

    Args:
        log_text: what it has printed since its start.
        props: the answer to `/props`, None = not known.
        slots: the answer to `/slots`, None or empty = not known.
        drafted: tokens that it drafted for a warm-up request of at least eight tokens, None = not tried.
    """
    if props is not None and props.get("role") == "router":
        return [_router()]
    found = [_speculation(profile, log_text, slots or (), drafted), _length_of_drafts(profile, log_text)]
    found += [_not_asked_for(profile, slots or (), drafted), _context(profile, log_text, props, slots or ())]
    found += [_slots(profile, props), _synthetic(log_text), _gpu(profile, log_text)]
    found += [_twice(log_text), _deprecated(log_text)]
    return [one for one in found if one is not None] + _other_errors(log_text)


def _router() -> Finding:
    return Finding(
        "error",
        "router",
        "the server came up as a router, without a model of its own",
        "it was started without a model: check `target` in the profile, and extra_args for --models-dir",
    )


def _speculation(
    profile: Profile, log_text: str, slots: Sequence[Mapping[str, Any]], drafted: int | None
) -> Finding | None:
    """Drafting that was asked for and does not happen; nothing else of a server tells that."""
    kind = profile.speculation.kind
    if kind == "none" or drafted:
        return None
    off = f'speculation.kind = "{kind}" is not in effect: the server answers without drafting'
    reason = _NO_SPECULATION.search(log_text)
    if _FOREIGN_VOCABULARY.search(log_text):
        hint = "the draft model has another vocabulary: choose a draft of the target's family for [draft]"
        return Finding("error", "speculation-vocabulary", off, hint)
    if reason:
        return Finding("error", "speculation-off", f"{off} ({reason[1].strip()})", _hint_for(profile))
    speaking = [bool(slot["speculative"]) for slot in slots if "speculative" in slot]
    if speaking and not any(speaking):
        return Finding("error", "speculation-off", off, _hint_for(profile))
    if not speaking and kind == "dflash" and log_text and _ADDED not in log_text and not drafted:
        return Finding("error", "speculation-off", off, _hint_for(profile))
    if drafted == 0 and kind in KINDS_WITH_A_MODEL:
        message = f'speculation.kind = "{kind}": the draft is loaded, but nothing is drafted with it'
        return Finding(
            "warning",
            "speculation-idle",
            message,
            "lower speculation.p_min and speculation.n_min, or check that target and draft belong together",
        )
    return None


def _hint_for(profile: Profile) -> str:
    if profile.speculation.kind in KINDS_WITH_A_MODEL and profile.draft is None:
        return "the server has no draft model: add a [draft] table to the profile"
    return (
        'check [draft] and speculation.kind with `agent profile validate`, or set speculation.kind = "none"'
    )


def _length_of_drafts(profile: Profile, log_text: str) -> Finding | None:
    clamped = _CLAMPED.search(log_text)
    if clamped is None:
        return None
    asked, block, given = clamped.groups()
    message = f"drafts have {given} tokens, not {asked}: the draft model was trained with blocks of {block}"
    # Where the profile leaves the number open, it was our own guess for usual drafters.
    level: Level = "warning" if profile.speculation.n_max is not None else "info"
    return Finding(level, "draft-length", message, f"set speculation.n_max = {given}")


def _not_asked_for(
    profile: Profile, slots: Sequence[Mapping[str, Any]], drafted: int | None
) -> Finding | None:
    if profile.speculation.kind != "none" or not (drafted or any(slot.get("speculative") for slot in slots)):
        return None
    return Finding(
        "warning",
        "speculation-unasked",
        'the server drafts, though the profile says speculation.kind = "none"',
        "look for what else configures it: extra_args, LLAMA_ARG_* variables, a llama.cpp/config.ini",
    )


def _context(
    profile: Profile,
    log_text: str,
    props: Mapping[str, Any] | None,
    slots: Sequence[Mapping[str, Any]],
) -> Finding | None:
    given = _given_context(props, slots)
    trained = _TRAINED.search(log_text)
    if trained and int(trained[2]) < profile.context:
        limit = f"the {trained[2]} tokens that the model was trained with"
        message = f"context = {profile.context} is more than {limit}"
        if given is not None and given < profile.context:
            message += f"; the server gives {given}"
        return Finding("warning", "context", message, f"set context = {trained[2]} or less")
    if given is None or given >= profile.context:
        return None
    message = (
        f"the server gives {given} tokens of context to a conversation, not the {profile.context} asked for"
    )
    if profile.slots > 1:
        hint = f"{profile.slots} slots share it: lower slots, or set context = {given}"
    else:
        hint = f"it did not fit into memory: `agent server fit` says what would, or set context = {given}"
    return Finding("warning", "context", message, hint)


def _given_context(props: Mapping[str, Any] | None, slots: Sequence[Mapping[str, Any]]) -> int | None:
    settings = props.get("default_generation_settings") if props else None
    values = [settings.get("n_ctx")] if isinstance(settings, Mapping) else []
    values += [slot.get("n_ctx") for slot in slots]
    sizes = [size for size in values if isinstance(size, int) and size > 0]
    return min(sizes, default=None)


def _slots(profile: Profile, props: Mapping[str, Any] | None) -> Finding | None:
    count = props.get("total_slots") if props else None
    if not isinstance(count, int) or count == profile.slots:
        return None
    message = f"the server has {count} slots, the profile says slots = {profile.slots}"
    return Finding("warning", "slots", message, "take --parallel out of extra_args, or set slots to match")


def _synthetic(log_text: str) -> Finding | None:
    if _SYNTHETIC not in log_text:
        return None
    message = "the server accepts drafted tokens at random: its answers mean nothing"
    return Finding(
        "warning", "synthetic", message, "take --spec-synth-len and --spec-synth-rates out of extra_args"
    )


def _gpu(profile: Profile, log_text: str) -> Finding | None:
    if not _NO_GPU.search(log_text) or profile.gpu_layers in ("auto", 0):
        return None
    asked = '"all"' if profile.gpu_layers == "all" else profile.gpu_layers
    return Finding(
        "warning",
        "no-gpu",
        f"gpu_layers = {asked} has no effect: the server finds no GPU that it can use",
        "install a build for your GPU with `agent server install`, and check the driver with `agent doctor`",
    )


def _twice(log_text: str) -> Finding | None:
    flags = list(dict.fromkeys(_TWICE.findall(log_text)))
    if not flags:
        return None
    message = f"{', '.join(flags)} is given more than once: the last value counts"
    return Finding("warning", "flag-twice", message, "take it out of extra_args")


def _deprecated(log_text: str) -> Finding | None:
    found = _USELESS.search(log_text)
    if found is None:
        return None
    message = f"the server says that {found[1]} is {found[2].strip().rstrip('.')}"
    return Finding("info", "flag-deprecated", message, "take it out of extra_args")


def _other_errors(log_text: str) -> list[Finding]:
    """Lines of the log at the level of errors that nothing above speaks of."""
    known = (*BENIGN, _FOREIGN_VOCABULARY, _NO_SPECULATION)
    lines = [" ".join(line.split())[:_LONGEST_LINE] for line in _LINE.findall(log_text)]
    strange = [line for line in dict.fromkeys(lines) if not any(one.search(line) for one in known)]
    hint = "read it in the whole log: `agent server logs`"
    return [Finding("info", "log", f"the server reports: {line}", hint) for line in strange[:_MOST_LINES]]
