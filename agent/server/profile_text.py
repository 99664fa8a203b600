"""Profiles as text for people: what each key means, and a new profile that starts from another one."""

from collections.abc import Iterator
from typing import Any

from agent.server.profile import NOT_EMBEDDED, SPECULATION_NOT_EMBEDDED, Profile

MEANINGS = {
    "description": "one line for `agent profile list`",
    "engine": "embedded, llama-server, remote, vllm or sglang",
    "card": "the model card that completes it: a name, auto or none",
    "dialect": "the llama-server that it is written for: bee-0.3, bee-0.4, llama.cpp or ik",
    "url": "address of a running server",
    "api_key_env": "name of the environment variable that holds that server's key",
    "model": "for vllm and sglang: owner/name on Hugging Face, or a folder",
    "draft_model": "the same for the draft model",
    "context": "tokens of context for one conversation",
    "slots": "conversations at the same time",
    "unified_kv": "the slots share one context cache",
    "batch": "tokens of a prompt at once; a smaller number reacts sooner to Ctrl-C",
    "batch_seconds": "seconds that a batch may take here, where batch is the largest; 0 = batch as it is",
    "ubatch": "of those, tokens computed at once; more is faster and takes more memory",
    "kv_type_k": "storage of the context, keys: f16, q8_0, q5_0, turbo3 ...",
    "kv_type_v": "storage of the context, values; other than f16 needs flash attention",
    "flash_attention": "auto, on or off",
    "gpu_layers": "auto, all, or a number",
    "cpu_moe_layers": "layers whose experts stay in RAM: all, or a number",
    "devices": 'GPUs to use, such as ["CUDA0"]',
    "split_mode": "how several GPUs share the model: none, layer, row, tensor, graph",
    "tensor_split": "the share of each GPU",
    "main_gpu": "the GPU for what is not shared",
    "threads": "CPU threads, 0 = automatic",
    "load_mode": "how the file is loaded: auto, none, mmap, mlock, mmap+mlock, dio",
    "no_host": "no buffers in RAM that the GPU could do without",
    "cache_ram_mib": "MiB of RAM for prompts that lost their slot, 0 = off",
    "checkpoints": "earlier states to go back to, for each slot",
    "checkpoint_step": "tokens between two of those",
    "cache_reuse": "smallest piece of a prompt that is moved instead of read again, 0 = off",
    "slot_similarity": "share of the prompt that has to match to get a slot again",
    "swa_full": "layers with a window keep everything, so that it can be cut",
    "jinja": "run the model's own template; tool calls need it",
    "chat_template": "name or text of a template instead of the model's own",
    "chat_template_file": "a file with one",
    "reasoning": "thinking before the answer: on, off or auto",
    "reasoning_budget": "tokens of thought, -1 = no limit",
    "reasoning_format": "none, auto, deepseek or deepseek-legacy",
    "preserve_reasoning": "earlier thoughts stay in the prompt, so that it can be reused",
    "host": "where the server listens; 127.0.0.1 = this machine only",
    "port": "its port",
    "api_key_file": "file with keys, one a line; whoever has none is not let in",
    "cors_origins": "web pages that may use it besides its own",
    "slot_save_path": "existing folder where slots may be saved",
    "metrics": "counters at /metrics",
    "log_timestamps": "in the server's log",
    "log_prefix": "in the server's log",
    "log_file": "file of the server's log",
    "log_verbosity": "how much it logs",
    "extra_args": "more words for the command line, checked against what the server knows",
    "template_arguments": "what the template is told",
    "file": "a name in the models folder, or an absolute path",
    "sha256": "checksum of the file",
    "bytes": "size of the file",
    "kind": "none, draft, dflash, mtp, eagle3, dspark, ngram-mod ..., or a list of several",
    "also": "kinds without a model beside that",
    "n_max": "tokens proposed at once",
    "n_min": "fewer are not worth a check",
    "p_min": "stop when less certain than this",
    "n_match": "ngram-mod: tokens that have to match",
    "size_n": "other n-gram kinds: tokens that have to match",
    "size_m": "other n-gram kinds: tokens proposed",
    "min_hits": "other n-gram kinds: how often it must have been seen",
    "ngram_n_max": "ngram-mod beside a draft model: tokens proposed at once",
    "ngram_n_min": "ngram-mod beside a draft model: fewer are not worth a check",
    "cross_context": "dflash: tokens of the model's states that the drafter sees",
    "draft_context": "context of the draft model",
    "draft_kv_type_k": "storage of the draft model's context; anything but f16 ruins its guesses",
    "draft_kv_type_v": "the same for values",
    "draft_gpu_layers": "layers of the draft model on the GPU; default: as gpu_layers",
    "draft_devices": "GPUs of the draft model",
    "adaptive": "how the length of drafts follows what they gain: profit, fringe or off",
    "branch_budget": "tokens on side branches of a draft",
    "temperature": "how freely the model chooses",
    "top_k": "of how many tokens",
    "top_p": "of which share of the probability",
    "min_p": "how likely a token must be, compared with the likeliest",
    "repeat_penalty": "against repetitions, 1 = off",
    "protocol": "tool calls: native, constrained or auto",
}
_HEAD = """\
# A server profile of your own. It starts from the one that it extends: what is not set here is as it is
# there. Take the # off a line to change it, and off the [name] above it where it has one. See all of it with
# `agent profile show {name}`, check it with `agent profile validate {name}`.

extends = {extends}
description = {description}
"""
_TABLES = ("target", "draft", "speculation", "sampling", "tools", "model_card", "template_arguments")
_LEFT_OUT = ("name", "description", "sources")


def whole_table(profile: Profile) -> dict[str, Any]:
    """A profile with everything that it extends. What it leaves to the server is left out."""
    if profile.engine != "embedded":
        return _own(profile)
    useless = {**dict.fromkeys(NOT_EMBEDDED, True), "speculation": set(SPECULATION_NOT_EMBEDDED)}
    return profile.model_dump(mode="json", exclude_none=True, exclude=useless)


def _own(profile: Profile) -> dict[str, Any]:
    own = profile.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    if profile.engine != "remote":
        own.pop("url", None)  # follows from the port
    return own


def new_profile_text(name: str, base: Profile, extends: str) -> str:
    """TOML for a profile that extends `base`, with everything that `base` sets as comments to start from.

    Args:
        extends: how `base` is named: its name, or its file.
    """
    own = _own(base)
    lines = [_HEAD.format(name=name, extends=_toml(extends), description=_toml(f"my {base.name}"))]
    plain = {key: value for key, value in own.items() if key not in _TABLES}
    lines += _settings(plain)
    for table in _TABLES:
        if own.get(table):
            lines += ["", f"# [{table}]", *_settings(own[table])]
    return "\n".join(lines) + "\n"


def _settings(table: dict[str, Any]) -> Iterator[str]:
    shown = {
        key: f"# {key} = {_toml(value)}"
        for key, value in table.items()
        if key not in _LEFT_OUT and value is not None and not isinstance(value, dict) and value != []
    }
    width = max(map(len, shown.values()), default=0)
    for key, text in shown.items():
        meaning = MEANINGS.get(key, "")
        yield f"{text:<{min(width, 60)}}  # {meaning}" if meaning else text


def _toml(value: Any) -> str:
    import tomlkit

    return tomlkit.item(value).as_string()
