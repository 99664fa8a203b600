"""The texts by which servers say why they do not start or why they end, and what a person can do about each.

The texts are llama.cpp's own, as build 11434 printed them in 2026, and those in the sources of BeeLlama and
ik_llama.cpp. Remedies name the key of the profile that has to change.
"""

import re
from dataclasses import dataclass

from agent.server.logs import INSTALL_ENGINE, FailureKind


@dataclass(frozen=True, slots=True)
class Rule:
    """`summary` and `remedy` may use the pattern's named groups, and what `agent.server.logs` adds:

    `{change}` where in a profile the `flag` comes from; `{file}` "model file" or "draft model file";
    `{table}` the table of the profile that names it.
    """

    kind: FailureKind
    pattern: re.Pattern[str]
    summary: str
    remedy: str


def _rule(kind: FailureKind, pattern: str, summary: str, remedy: str, flags: int = 0) -> Rule:
    return Rule(kind, re.compile(pattern, flags), summary, remedy)


_ARGUMENT = r'^error while handling argument "(?P<flag>[^"]+)": '
_OTHER_SERVER = "or choose another llama-server with `agent server use`"
_GET_AGAIN = "check it with `agent model verify`, then `agent model rm` and `agent model pull`"
_LESS_MEMORY = (
    "lower `context`, `ubatch` or `gpu_layers` in the profile, choose smaller KV types or a smaller model; "
    "`agent server fit` says what would fit"
)
_NO_DRAFT = 'or set speculation.kind = "none"'

_PROGRAM = (
    _rule(
        "engine-missing", r"cannot import xllamacpp", "its engine is not installed", INSTALL_ENGINE
    ),
    _rule(
        "program",
        r"error while loading shared libraries: |Library not loaded: ",
        "the program needs a library that is not there",
        "install it (the CUDA runtime, for instance), or build the server here with `agent server install`",
    ),
    _rule(
        "program",
        r"version `GLIBC\w*_[\d.]+' not found",
        "the program was built for a newer system",
        "build it here with `agent server install`",
    ),
)  # fmt: skip
_ARGUMENTS = (
    _rule(
        "environment",
        r'^error while handling environment variable "(?P<name>[^"]+)"',
        "the variable {name} is set to something that it does not take",
        "unset {name}: what a server shall do is said in its profile",
    ),
    _rule(
        "speculation",
        r"unknown speculative (stage )?type: (?P<kind>\S+)",
        "this server knows no speculation of the kind {kind}",
        f"change `speculation.kind` in the profile, {_OTHER_SERVER}",
    ),
    _rule(
        "speculation",
        r"unknown speculative decoding type without draft model",
        "this server does not know this kind of speculation",
        f"change `speculation.kind` in the profile, {_OTHER_SERVER}",
    ),
    _rule(
        "flag",
        _ARGUMENT + r"the argument has been removed\. use (?P<instead>.+)",
        "the flag {flag} was removed from this server",
        "use {instead}; it comes from {change}",
    ),
    _rule(
        "flag",
        _ARGUMENT + r"the argument has been removed",
        "the flag {flag} was removed from this server",
        "remove {change}",
    ),
    _rule(
        "flag",
        r"legacy speculative option '(?P<flag>[^']+)' is disabled; use (?P<instead>.+)",
        "the flag {flag} was removed from this server",
        "use {instead}; it comes from {change}",
    ),
    _rule(
        "value",
        _ARGUMENT + r"(Unsupported|Invalid) cache type: (?P<type>\S+)",
        "this server does not know the KV type {type}",
        f"change {{change}}, {_OTHER_SERVER}",
    ),
    _rule(
        "value",
        r"(Unsupported|Invalid) cache type: (?P<type>\S+)",
        "this server does not know the KV type {type}",
        f"change `kv_type_k` and `kv_type_v` in the profile, {_OTHER_SERVER}",
    ),
    _rule(
        "value",
        _ARGUMENT + r"not a directory: (?P<path>.+)",
        "the folder {path} does not exist",
        "create it, or change {change}",
    ),
    _rule(
        "value",
        _ARGUMENT + r"error: failed to open file '(?P<path>[^']*)'",
        "the file {path} cannot be read",
        "create it, or change {change}",
    ),
    _rule(
        "value",
        _ARGUMENT + r"\[json\.exception",
        "the value of {flag} is no proper JSON",
        "correct {change}",
    ),
    _rule(
        "value",
        _ARGUMENT + r"expected value for argument",
        "the flag {flag} has no value",
        "add it to {change}",
    ),
    _rule(
        "value",
        _ARGUMENT + r"sto\w+$",
        "the value of {flag} is no number, or too large a one",
        "correct {change}",
    ),
    _rule("value", _ARGUMENT, "the value of {flag} is not accepted", "correct {change}"),
    _rule(
        "value",
        r"^error: invalid parameter for argument: (?P<flag>\S+)",
        "the value of {flag} is not accepted",
        "correct {change}",
    ),
    _rule(
        "speculation",
        r"(unknown|invalid) speculative stage (parameter|option|configuration)",
        "this server does not take these numbers for drafting",
        "correct the table [speculation] of the profile, or --spec-type in its extra_args",
    ),
    _rule(
        "flag",
        r"^error: (invalid|unknown) argument: (?P<flag>\S+)",
        "this server does not know the flag {flag}",
        f"change {{change}}, {_OTHER_SERVER}",
    ),
)
_START = (
    _rule(
        "port",
        r"couldn't bind HTTP server socket|bind\w*\(?\)?.*address already in use",
        "its port is in use",
        "choose another `port` in the profile, or 0 for a random one",
    ),
    _rule(
        "download",
        r"failed to fetch model metadata|failed to download model"
        r"|exactly one out metadata, path_model, and file must be defined",
        "it could not download a model file",
        "get the file with `agent model pull`, and name it in [target] instead of -hf in extra_args",
    ),
    _rule(
        "file-damaged",
        r"invalid magic|not within the file bounds|corrupted or incomplete|failed to read (key|tensor|magic)",
        "the {file} is damaged or only half there",
        f"{_GET_AGAIN}; the profile names it in [{{table}}]",
    ),
    _rule(
        "file-missing",
        r"failed to open GGUF file '(?P<path>[^']*)' \(Permission denied\)",
        "the {file} may not be read",
        "allow it: chmod u+r {path}",
    ),
    _rule(
        "file-missing",
        r"failed to open GGUF file",
        "a {file} is missing",
        "get it with `agent model pull`, or correct `file` in [{table}] of the profile",
    ),
    _rule(
        "architecture",
        r"unknown model architecture: 'dflash-draft'",
        "the draft model is in the layout of old BeeLlama, which this server does not read",
        'choose another file for [draft] (its architecture has to be "dflash"), or set dialect = "bee-0.3"',
    ),
    _rule(
        "architecture",
        r"unknown model architecture: 'dflash'",
        "this server is too old for the draft model: it does not know DFlash drafters",
        f"get a newer one with `agent server install`, {_NO_DRAFT}",
    ),
    _rule(
        "speculation",
        r"invalid value for main_gpu: \d+ \(available devices: 0\)",
        "this server puts the draft model on a GPU, and there is none",
        'set speculation.draft_devices = ["none"] in the profile, then it drafts on the CPU',
    ),
    _rule(
        "architecture",
        r"check_tensor_dims: tensor '(?P<tensor>fc|dflash_fc)\.weight' has wrong shape",
        "the draft model is laid out for another server or target: {tensor} has the wrong shape",
        f"choose another file for [draft], {_NO_DRAFT}",
    ),
    # The next two are BeeLlama's own, from common/speculative.cpp and the server of its 0.3.1.
    _rule(
        "speculation",
        r"invalid drafter/target contract: (?P<what>[^(\n]+)",
        "the draft model does not fit the target: {what}",
        f"choose the drafter that was made for this target for [draft], {_NO_DRAFT}",
    ),
    _rule(
        "speculation",
        r"is not a valid DFlash drafter",
        "the draft model is no DFlash drafter",
        f"choose a DFlash drafter for [draft], change `speculation.kind`, {_NO_DRAFT}",
    ),
    _rule(
        "architecture",
        r"requires 'target_layers'",
        "the draft model does not say which layers of the target it reads",
        f"choose another file for [draft], made for this server's DFlash, {_NO_DRAFT}",
    ),
    _rule(
        "architecture",
        r"wrong number of tensors",
        "the {file} has other parts than this server expects: it may be of a newer kind (DFlash2)",
        "update the server with `agent server install`, or choose another file for [{table}]",
    ),
    _rule(
        "architecture",
        r"unknown model architecture: '(?P<name>[^']*)'",
        "this server does not know models of the architecture {name}",
        "update the server with `agent server install`, or choose another file for [{table}]",
    ),
    _rule(
        "speculation",
        r"model doesn't contain MTP layers|failed to create MTP context",
        "the model has no layers for multi-token prediction",
        'choose a model file with MTP layers for [target], or set speculation.kind = "none"',
    ),
    _rule(
        "parameter",
        r"quantized V cache requires flash_attn",
        "a quantised V cache needs flash attention",
        'set `flash_attention = "on"` in the profile, or `kv_type_v = "f16"`',
    ),
    _rule(
        "gpu",
        r"no kernel image is available|the provided PTX was compiled with an unsupported toolchain",
        "the program was not built for this GPU",
        "build it for this one with `agent server install`",
    ),
    _rule(
        "gpu",
        r"CUDA driver version is insufficient|forward compatibility was attempted",
        "the GPU's driver is older than the program needs",
        "update the driver, or build with the CUDA toolkit that fits it; `agent doctor` names both",
    ),
    _rule(
        "memory",
        r"failed to allocate|unable to allocate|cannot allocate memory|out of memory|bad_alloc"
        r"|ErrorOutOfDevice|alloc\w* failed",
        "not enough memory",
        _LESS_MEMORY,
        re.IGNORECASE,
    ),
    _rule(
        "gpu",
        r"CUDA error(: (?P<what>.+))?",
        "the GPU reported an error",
        "look into the log with `agent server logs`; a reset of the driver or another build may help",
    ),
    _rule(
        "parameter",
        r"does not know|agent: the engine did not start: (?!Failed to init)",
        "the engine refuses a value of the profile",
        "correct that value in the profile",
    ),
    _rule(
        "speculation",
        r"synthetic acceptance requires an initialized speculative decoding context",
        "made-up acceptance was asked for, but nothing drafts",
        "take --spec-synth-len and --spec-synth-rates out of extra_args, or set `speculation.kind`",
    ),
    _rule(
        "vocabulary",
        r"failed to load draft model|vocab(ulary)? .*(mismatch|not compatible|must match)",
        "the draft model does not fit the target",
        f"choose a draft model of the target's family for [draft], {_NO_DRAFT}",
    ),
    _rule(
        "template",
        r"chat template is not supported|failed to initialize chat template|failed to apply template",
        "it cannot use the chat template",
        "correct `chat_template` or `chat_template_file` in the profile, or choose another model file",
    ),
    _rule(
        "memory",
        r"failed to create_?\s?context",
        "the context could not be created",
        f"check `kv_type_k` and `kv_type_v` in the profile; if memory is short, {_LESS_MEMORY}",
    ),
)
_ASSERTIONS = (
    _rule(
        "assertion",
        r"GGML_ASSERT\(.*DFlash model has no target_layer_ids",
        "the draft model is no DFlash drafter",
        f"choose a DFlash drafter for [draft], change `speculation.kind`, {_NO_DRAFT}",
    ),
    _rule(
        "assertion",
        r"GGML_ASSERT\(lid <= model\.hparams\.n_layer",
        "the draft model reads layers that the target does not have",
        f"choose the drafter that was made for this target for [draft], {_NO_DRAFT}",
    ),
    _rule(
        "assertion",
        r"GGML_ASSERT\(.*layer input tensor is null",
        "models of the target's architecture cannot be drafted for in this way",
        'set speculation.kind = "none", or a kind of n-grams, or choose another target',
    ),
    _rule(
        "assertion",
        r"GGML_ASSERT\(ggml_can_(mul_mat|repeat)\(",
        "two parts of the models have sizes that do not fit: the draft was made for another target",
        f"choose the drafter that was made for this target for [draft], {_NO_DRAFT}",
    ),
    _rule(
        "assertion",
        r"GGML_ASSERT\(",
        "the engine stopped itself",
        'target, draft model and kind of speculation may not fit together; try speculation.kind = "none"',
    ),
)  # fmt: skip

# In this order, because one failure is followed by general ones ("failed to load model").
RULES = (*_PROGRAM, *_ARGUMENTS, *_ASSERTIONS, *_START)
HARMLESS = re.compile(
    r"requires ctx_other to be set|failed to measure the memory of the extra model"
    r"|encountered an error while trying to fit params|failed to mlock"
)
"""Lines of good starts that look like failures."""
