"""Whether a draft fits its target, judged by the headers of the files before anything is started.

Each rule is something that the engine does with a pair that does not fit: it refuses, it aborts at the
first request, or, worse, it serves without drafting and says nothing. Sources: llama.cpp's
`common/speculative.cpp`, `src/models/{dflash,eagle3}.cpp`, and runs of build 11434.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.server.drafter import block_size, has_mask_token, read_layers
from agent.server.gguf import read_model, vocabulary_digest
from agent.server.gguf_types import GgufHeader

Severity = Literal["refusal", "warning"]

DFLASH_LAYOUTS = ("dflash", "dflash2")
"""The drafter layouts that the built-in engine and upstream (seen with b11434) read.

"dflash2" are the tensors that DFlash 2 adds to the architecture "dflash", by llama.cpp PR 27342.
"""
_LAYOUTS_OF_BEE = {"bee-0.3": ("dflash", "dflash-draft"), "bee-0.4": ("dflash",)}
"""0.4 reads DFlash 2 from 0.4.4 on, which its help does not tell."""
GIVES_HIDDEN_STATES = frozenset({
    "bailingmoe3", "deepseek4", "gemma4", "gpt-oss", "hunyuan-dense", "hunyuan_vl", "lfm2", "lfm2moe",
    "llama", "mimo2", "minimax-01", "minimax-m2", "muse-glimmer", "nanbeige", "nemotron_h", "nemotron_h_moe",
    "qwen3", "qwen35", "qwen35moe", "qwen3moe", "qwen3next", "qwen4exp",
})  # fmt: skip
"""Targets whose layers' states a draft can read, upstream in autumn 2026."""
KEEPS_HIDDEN_STATES = frozenset({
    "cohere2", "command-r", "deepseek2", "gemma", "gemma2", "gemma3", "gemma3n", "glm4", "glm4moe", "laguna",
    "mistral3", "phi2", "phi3", "phimoe", "qwen2", "qwen2moe", "qwen2vl", "qwen3vl", "qwen3vlmoe", "seed_oss",
})  # fmt: skip
"""Targets for which they are known to be missing: the server aborts at the first request."""
_FULL_PRECISION = ("f16", "bf16", "f32")
_SPECIAL_TOKENS = 5
"""The first tokens may differ, the engine compares the others."""
_LARGEST_VOCABULARY_DIFFERENCE = 128
_EAGLE3_LAYERS = 3
_USEFUL_SHARE = 0.5
_DRAFTERS = {"dflash": "dflash", "dflash-draft": "dflash", "eagle3": "eagle3"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a pair. A refusal would not work at all, a warning would work badly."""

    severity: Severity
    code: str
    reason: str
    remedy: str


def layouts_of(dialect: str | None) -> tuple[str, ...]:
    """The drafter layouts that a family of servers reads; BeeLlama had one of its own before 0.4."""
    return _LAYOUTS_OF_BEE.get(dialect or "", DFLASH_LAYOUTS)


def check_files(
    kind: str,
    target: Path,
    draft: Path | None,
    *,
    n_max: int | None = None,
    draft_kv_type: str = "f16",
    layouts: Sequence[str] = DFLASH_LAYOUTS,
) -> tuple[Finding, ...]:
    """`check_pair` for files.

    Raises:
        ModelFileError: a file is missing, damaged or incomplete.
    """
    of_draft = read_model(draft) if draft is not None else None
    return check_pair(
        kind, read_model(target), of_draft, n_max=n_max, draft_kv_type=draft_kv_type, layouts=layouts
    )


def check_pair(
    kind: str,
    target: GgufHeader,
    draft: GgufHeader | None,
    *,
    n_max: int | None = None,
    draft_kv_type: str = "f16",
    layouts: Sequence[str] = DFLASH_LAYOUTS,
) -> tuple[Finding, ...]:
    """What is wrong with drafting in this way for this target; nothing for kinds without a model.

    Args:
        kind: as in a profile: "draft", "dflash", "eagle3", "mtp", others need no check.
        n_max: how many tokens shall be drafted at once, None = as the engine likes.
        layouts: architectures of DFlash drafters that the engine reads.

    Raises:
        ModelFileError: a header lacks what every model has.
    """
    if kind == "mtp":
        return tuple(_check_mtp(target))
    if kind not in ("draft", "dflash", "eagle3"):
        return ()
    if draft is None:
        remedy = "add a [draft] table to the profile"
        return (_refuse("no-draft", f"{kind} needs a draft model, and none is given", remedy),)
    if kind == "draft":
        found = _check_plain(target, draft)
    elif kind == "dflash":
        found = _check_dflash(target, draft, n_max, layouts)
    else:
        found = _check_eagle3(target, draft)
    if draft_kv_type not in _FULL_PRECISION:
        reason = f"the draft's KV cache is quantised ({draft_kv_type}): almost nothing it drafts is accepted"
        found.append(_warn("draft-kv", reason, "keep the draft's KV cache at f16"))
    if draft.big_endian != target.big_endian:
        reason = "one of the two files is for big-endian machines"
        found.append(_refuse("byte-order", reason, "get both files for this machine"))
    return tuple(found)


def _check_plain(target: GgufHeader, draft: GgufHeader) -> list[Finding]:
    if draft.architecture in _DRAFTERS:
        kind = _DRAFTERS[draft.architecture]
        reason = (
            f"{draft.path.name} is a drafter of architecture {draft.architecture!r}, not a model of its own"
        )
        return [_refuse("kind", reason, f'set speculation.kind = "{kind}"')]
    found = _compare_tokenizers(target, draft)
    if draft.tensor_bytes > target.tensor_bytes * _USEFUL_SHARE:
        share = draft.tensor_bytes / max(1, target.tensor_bytes)
        reason = f"the draft has {share:.0%} of the target's size, so drafting takes longer than it saves"
        found.append(_warn("draft-size", reason, "choose a draft of a fifth of the target or less"))
    return found


def _compare_tokenizers(target: GgufHeader, draft: GgufHeader) -> list[Finding]:
    """The engine's own comparison; when it fails, the server runs and never drafts."""
    remedy = "choose a draft of the same model family and generation"

    def differ(what: str) -> list[Finding]:
        reason = f"the tokenizers differ: {what}; the server would run without drafting and not say so"
        return [_refuse("tokenizer", reason, remedy)]

    if target.tokenizer_model != draft.tokenizer_model:
        return differ(f"{target.tokenizer_model!r} and {draft.tokenizer_model!r}")
    sizes = target.vocabulary_size, draft.vocabulary_size
    if abs(sizes[0] - sizes[1]) > _LARGEST_VOCABULARY_DIFFERENCE:
        return differ(f"{sizes[0]} and {sizes[1]} tokens")
    for name in ("bos", "eos"):
        adds = [one.metadata.get(f"tokenizer.ggml.add_{name}_token") for one in (target, draft)]
        numbers = [one.metadata.get(f"tokenizer.ggml.{name}_token_id") for one in (target, draft)]
        if None not in adds and (adds[0] != adds[1] or (adds[0] and numbers[0] != numbers[1])):
            return differ(f"the {name} token")
    digests = [vocabulary_digest(one.path, first=_SPECIAL_TOKENS, last=min(sizes)) for one in (target, draft)]
    if digests[0] != digests[1]:
        return differ("other tokens at the same numbers")
    if target.tokenizer_pre != draft.tokenizer_pre:
        reason = f"the texts are split differently: {target.tokenizer_pre!r} and {draft.tokenizer_pre!r}"
        return [_warn("tokenizer-pre", f"{reason}; fewer drafts may be accepted", remedy)]
    return []


def _check_dflash(
    target: GgufHeader, draft: GgufHeader, n_max: int | None, layouts: Sequence[str]
) -> list[Finding]:
    wrong = _check_layout(draft, layouts)
    if wrong:
        return wrong
    found = _check_target(target)
    key, layers = read_layers(draft)
    found += _check_read_layers(target, layers, key)
    found += _check_width(target, draft.embedding_length)
    if not has_mask_token(draft):
        reason = "the drafter does not say which token stands for one to be guessed (its mask token)"
        found.append(_warn("mask-token", reason, "get the drafter again from its author, converted anew"))
    block = block_size(draft)
    if n_max is not None and n_max > block - 1:
        reason = f"n_max is {n_max}, but the drafter was trained for blocks of {block}: {block - 1} are used"
        found.append(_warn("n-max", reason, f"set speculation.n_max = {block - 1} or less"))
    names = {tensor.name for tensor in draft.tensors}
    if "selector_hidden.weight" in names and "dflash2" not in layouts:
        reason = (
            "this is a DFlash 2 drafter, which only recent engines read (others: wrong number of tensors)"
        )
        found.append(
            _warn("dflash2", reason, "update the engine if it does not load, or get a DFlash drafter")
        )
    if "markov_w1.weight" in names:
        reason = "this is a DSpark drafter, which is served as draft-dspark, not as DFlash"
        found.append(_refuse("dspark", reason, "choose a DFlash drafter"))
    return found


def _check_layout(draft: GgufHeader, layouts: Sequence[str]) -> list[Finding]:
    architecture = draft.architecture
    if architecture in layouts:
        return []
    if architecture not in _DRAFTERS and "dflash" not in architecture:
        reason = f"{draft.path.name} is a {architecture!r} model, not a DFlash drafter"
        return [_refuse("kind", reason, 'choose a drafter, or set speculation.kind = "draft"')]
    reason = f"the drafter has the layout {architecture!r}, this engine reads {', '.join(layouts)}"
    remedies = {
        "dflash-draft": "convert it with the script that comes with BeeLlama, or get one in the new layout",
        "dflash": "use a newer engine, or get the drafter in the old layout",
        "eagle3": 'set speculation.kind = "eagle3"',
    }
    return [_refuse("layout", reason, remedies.get(architecture, "get a drafter file made for llama.cpp"))]


def _check_eagle3(target: GgufHeader, draft: GgufHeader) -> list[Finding]:
    if draft.architecture != "eagle3":
        reason = f"{draft.path.name} is a {draft.architecture!r} model, not an EAGLE-3 drafter"
        kind = _DRAFTERS.get(draft.architecture, "draft")
        return [_refuse("kind", reason, f'choose another file, or set speculation.kind = "{kind}"')]
    found = _check_target(target)
    key = "eagle3.target_layers" if "eagle3.target_layers" in draft.metadata else "eagle3.extract_layers"
    layers = draft.numbers(key)
    found += _check_read_layers(target, layers, key)
    if layers and len(layers) != _EAGLE3_LAYERS:
        reason = f"{key} names {len(layers)} layers, the engine needs {_EAGLE3_LAYERS}"
        found.append(_refuse("layer-count", reason, "get another file of this drafter"))
    found += _check_width(target, draft.number("eagle3.target_hidden_size", draft.embedding_length))
    if draft.vocabulary_size < target.vocabulary_size:
        reason = f"the drafter knows {draft.vocabulary_size} tokens, the target {target.vocabulary_size}"
        found.append(_refuse("tokenizer", reason, "get a drafter that was converted with this target"))
    return found


def _check_mtp(target: GgufHeader) -> list[Finding]:
    remedy = "get a file of this model that was converted with its MTP layers, or use another kind"
    if not target.nextn_layers:
        reason = f"{target.path.name} has no layers for multi-token prediction"
        return [_refuse("no-mtp", reason, remedy)]
    if not any(".nextn." in tensor.name or "nextn_" in tensor.name for tensor in target.tensors):
        reason = f"{target.path.name} speaks of layers for multi-token prediction, but they were left out"
        return [_refuse("no-mtp", reason, remedy)]
    return []


def _check_target(target: GgufHeader) -> list[Finding]:
    architecture = target.architecture
    if architecture in GIVES_HIDDEN_STATES:
        return []
    remedy = 'choose another target, or speculation.kind = "ngram-mod", which works with every model'
    if architecture in KEEPS_HIDDEN_STATES:
        reason = (
            f"a {architecture!r} target does not give its hidden states: the first request aborts the server"
        )
        return [_refuse("target", reason, remedy)]
    reason = f"it is not known whether a {architecture!r} target gives its hidden states to a drafter"
    return [_warn("target", reason, f"try it; if the first request aborts the server, {remedy}")]


def _check_read_layers(target: GgufHeader, layers: tuple[int, ...] | None, key: str) -> list[Finding]:
    if not layers:
        reason = f"the drafter does not say which layers of the target it reads ({key})"
        return [_refuse("target-layers", reason, "get another file of this drafter")]
    # The number after the last layer stands for what comes out of it.
    missing = [layer for layer in layers if not 0 <= layer <= target.main_layers]
    if not missing:
        return []
    shown = ", ".join(map(str, missing))
    reason = f"the drafter reads layer {shown} of the target, which has {target.main_layers}"
    return [_refuse("target-layers", reason, "choose the drafter that was trained for this target")]


def _check_width(target: GgufHeader, width: int) -> list[Finding]:
    if width == target.embedding_length:
        return []
    reason = f"the drafter was trained for a hidden size of {width}, the target has {target.embedding_length}"
    return [_refuse("hidden-size", reason, "choose the drafter that was trained for this target")]


def _refuse(code: str, reason: str, remedy: str) -> Finding:
    return Finding("refusal", code, reason, remedy)


def _warn(code: str, reason: str, remedy: str) -> Finding:
    return Finding("warning", code, reason, remedy)
