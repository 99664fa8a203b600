"""The commands of vLLM and SGLang, which serve models from safetensors, with their own forms of drafting."""

import json
from pathlib import Path
from typing import Any

from agent.server.command import Argument, Command, Notice, Places
from agent.server.profile import Profile, SpeculationKind

_VLLM_METHODS: dict[SpeculationKind, str] = {
    "dflash": "dflash",
    "eagle3": "eagle3",
    "draft": "draft_model",
    "mtp": "mtp",
    "suffix": "suffix",
    "ngram-simple": "ngram",
    "ngram-mod": "ngram",
}
_SGLANG_ALGORITHMS: dict[SpeculationKind, str] = {
    "dflash": "DFLASH",
    "eagle3": "EAGLE3",
    "draft": "STANDALONE",
    "mtp": "NEXTN",
    "ngram-simple": "NGRAM",
    "ngram-mod": "NGRAM",
}
_NEEDS_A_MODEL = ("dflash", "eagle3", "draft")
_USUAL_N_MAX: dict[SpeculationKind, int] = {"dflash": 15, "mtp": 1}
_OTHER_N_MAX = 5
_NAMES = {"vllm": "vLLM", "sglang": "SGLang"}
_PORTS = {"vllm": 8000, "sglang": 30000}
_LLAMA_ONLY = (
    "batch", "batch_seconds", "ubatch",
    "flash_attention", "gpu_layers", "cpu_moe_layers", "split_mode", "tensor_split",
    "main_gpu", "threads", "load_mode", "no_host", "cache_ram_mib", "checkpoints", "checkpoint_step",
    "cache_reuse", "slot_similarity", "swa_full", "unified_kv", "jinja", "chat_template",
    "reasoning_budget", "reasoning_format",
    "cors_origins",
    "slot_save_path", "log_file", "log_verbosity", "dialect", "target", "draft",
)  # fmt: skip


def python_command(profile: Profile, places: Places) -> Command:
    """The command of a profile with engine "vllm" or "sglang"."""
    warnings = [
        Notice(key, f"{key} is left out: it is for llama-server, {_NAMES[profile.engine]} has its own way",
               "see its documentation, and use extra_args")
        for key in _LLAMA_ONLY
        if key in profile.model_fields_set
    ]  # fmt: skip
    refusals: list[Notice] = []
    if not profile.model:
        hint = 'set model = "owner/name" or a folder, in a profile of your own: `agent profile new`'
        refusals.append(Notice("model", f"profile {profile.name!r} names no model", hint))
    build = _vllm if profile.engine == "vllm" else _sglang
    program, arguments = build(profile, places, warnings, refusals)
    arguments += _extra(profile)
    return Command(program, tuple(arguments), tuple(warnings), tuple(refusals))


def _vllm(
    profile: Profile, places: Places, warnings: list[Notice], refusals: list[Notice]
) -> tuple[tuple[str, ...], list[Argument]]:
    arguments = [
        Argument("", profile.model or "MODEL", "the model that answers"),
        *_network(profile, places),
        Argument("--max-model-len", str(profile.context), "tokens of context for each conversation"),
        Argument("--max-num-seqs", str(profile.slots), "conversations at the same time"),
        *_spread_and_stored(profile, "--tensor-parallel-size", "fp8", warnings),
    ]
    if profile.api_key_file:
        warnings.append(_key_notice("vLLM", "vLLM reads its key from the variable VLLM_API_KEY"))
    method = _method(profile, _VLLM_METHODS, warnings, refusals)
    if method:
        arguments.append(Argument("--speculative-config", _vllm_config(profile, method), "how it drafts"))
    return ("vllm", "serve"), arguments


def _vllm_config(profile: Profile, method: str) -> str:
    speculation = profile.speculation
    config: dict[str, Any] = {"method": method}
    if speculation.kind in _NEEDS_A_MODEL:
        config["model"] = profile.draft_model or "DRAFT_MODEL"
    config["num_speculative_tokens"] = _n_max(profile)
    if method == "ngram" and (speculation.size_n or speculation.n_match):
        config["prompt_lookup_max"] = speculation.size_n or speculation.n_match
    return json.dumps(config, separators=(",", ":"))


def _sglang(
    profile: Profile, places: Places, warnings: list[Notice], refusals: list[Notice]
) -> tuple[tuple[str, ...], list[Argument]]:
    arguments = [
        Argument("--model-path", profile.model or "MODEL", "the model that answers"),
        *_network(profile, places),
        Argument("--context-length", str(profile.context), "tokens of context for each conversation"),
        Argument("--max-running-requests", str(profile.slots), "conversations at the same time"),
        *_spread_and_stored(profile, "--tp-size", "fp8_e5m2", warnings),
    ]
    if profile.api_key_file:
        warnings.append(_key_notice("SGLang", "SGLang takes a key only on its command line, for all to see"))
    if profile.metrics:
        arguments.append(Argument("--enable-metrics", None, "counters at /metrics"))
    algorithm = _method(profile, _SGLANG_ALGORITHMS, warnings, refusals)
    if algorithm:
        arguments.append(Argument("--speculative-algorithm", algorithm, "how it drafts"))
        if profile.speculation.kind in _NEEDS_A_MODEL:
            draft = profile.draft_model or "DRAFT_MODEL"
            arguments.append(Argument("--speculative-draft-model-path", draft, "the model that proposes"))
        # It counts the token that is known already.
        tokens = str(_n_max(profile) + 1)
        arguments.append(Argument("--speculative-num-draft-tokens", tokens, "tokens checked at once"))
    return ("python", "-m", "sglang.launch_server"), arguments


def _spread_and_stored(
    profile: Profile, gpus_flag: str, small_kv_type: str, warnings: list[Notice]
) -> list[Argument]:
    """What both servers know, under the same names but for that of the GPUs and of a small KV type."""
    arguments: list[Argument] = []
    if len(profile.devices) > 1:
        arguments.append(Argument(gpus_flag, str(len(profile.devices)), "GPUs that share it"))
    kv_type = _kv_type(profile, small_kv_type, warnings)
    if kv_type:
        arguments.append(Argument("--kv-cache-dtype", kv_type, "storage of the context"))
    if profile.chat_template_file:
        path = str(Path(profile.chat_template_file).expanduser())
        arguments.append(Argument("--chat-template", path, "instead of the model's own"))
    return arguments


def _network(profile: Profile, places: Places) -> list[Argument]:
    host = profile.host if places.host is None else places.host
    port = (profile.port if places.port is None else places.port) or _PORTS[profile.engine]
    return [
        Argument("--host", host, "where it listens"),
        Argument("--port", str(port), "the port of its API"),
    ]


def _method(
    profile: Profile, known: dict[SpeculationKind, str], warnings: list[Notice], refusals: list[Notice]
) -> str:
    speculation = profile.speculation
    if not speculation.kinds:
        return ""
    name = _NAMES[profile.engine]
    if speculation.kind not in known:
        reason = f'{name} does not know speculation.kind = "{speculation.kind}", only {", ".join(known)}'
        refusals.append(Notice("speculation", reason, "choose one of those"))
        return ""
    if speculation.kind in _NEEDS_A_MODEL and not profile.draft_model:
        reason = f'speculation.kind = "{speculation.kind}" needs draft_model'
        refusals.append(Notice("draft_model", reason, 'set draft_model = "owner/name" or a folder'))
    if speculation.also:
        reason = f"{', '.join(speculation.also)} is left out: {name} drafts in one way at a time"
        warnings.append(Notice("combination", reason))
    return known[speculation.kind]


def _n_max(profile: Profile) -> int:
    speculation = profile.speculation
    return speculation.n_max or _USUAL_N_MAX.get(speculation.kind, _OTHER_N_MAX)


def _kv_type(profile: Profile, eight_bits: str, warnings: list[Notice]) -> str:
    """Both engines store the context in 16 bits, or in 8 in a format of their own."""
    given = [getattr(profile, key) for key in ("kv_type_k", "kv_type_v") if key in profile.model_fields_set]
    if all(kv_type in ("f16", "bf16") for kv_type in given):
        return ""
    if any(kv_type != "q8_0" for kv_type in given):
        reason = f"{_NAMES[profile.engine]} cannot store the context as {', '.join(given)}"
        warnings.append(Notice("kv_type_k", f"{reason}; {eight_bits} is the closest", 'set both to "q8_0"'))
    return eight_bits


def _key_notice(name: str, how: str) -> Notice:
    return Notice("api_key_file", f"api_key_file is left out: {how}", f"protect {name} in another way")


def _extra(profile: Profile) -> list[Argument]:
    arguments: list[Argument] = []
    for word in profile.extra_args:
        previous = arguments[-1] if arguments else None
        if previous and previous.value is None and not word.startswith("-"):
            arguments[-1] = Argument(previous.flag, word, previous.comment)
        else:
            arguments.append(Argument(word, None, "from extra_args"))
    return arguments
