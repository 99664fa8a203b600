"""Context, its storage, where the layers go, and how the file is loaded, as llama-server's arguments."""

from typing import get_args

from agent.server.command import Builder
from agent.server.profile import UpstreamKvType

EVERY_LAYER = 999
"""For servers that only take a number; more than any model has."""
UNQUANTISED = ("f32", "f16", "bf16")
_SUCCESSORS = {
    "turbo2": "kvarn2",
    "turbo2_tcq": "kvarn2",
    "turbo3": "kvarn3",
    "turbo3_tcq": "kvarn3",
    "turbo4": "kvarn4",
    "turbo4_tcq": "kvarn4",
}
"""BeeLlama 0.4 turns the first of each pair into the second by itself, see its list of migrations."""
_OF_SIMILAR_SIZE = {
    **dict.fromkeys(("turbo2", "turbo3", "turbo4", "turbo2_tcq", "turbo3_tcq", "turbo4_tcq"), "q4_0"),
    **dict.fromkeys(("kvarn2", "kvarn3", "kvarn4", "q2_0", "q2_1", "q3_0", "q3_1"), "q4_0"),
    **dict.fromkeys(("kvarn5",), "q5_0"),
    **dict.fromkeys(("kvarn6", "q6_0", "q6_1"), "q5_1"),
    **dict.fromkeys(("kvarn8", "q8_KV"), "q8_0"),
}


def add_offload(build: Builder) -> None:
    """Layers and devices, batches, context and threads."""
    profile = build.profile
    if profile.gpu_layers != "auto":
        add_layers(build, "gpu_layers", ("-ngl", "--gpu-layers"), profile.gpu_layers, "layers on the GPU")
    elif build.given("gpu_layers") and "auto" in build.allowed("-ngl"):
        build.add("-ngl", "auto", "as many layers on the GPU as fit")
    if profile.cpu_moe_layers == "all":
        build.add_or_warn("cpu_moe_layers", "--cpu-moe", None, "all experts stay in RAM")
    elif profile.cpu_moe_layers is not None:
        comment = "the first layers' experts stay in RAM"
        build.add_or_warn("cpu_moe_layers", "--n-cpu-moe", profile.cpu_moe_layers, comment)
    if profile.devices:
        build.add_or_warn("devices", "--device", profile.devices, "the GPUs to use")
    _add_split(build)
    threads = build.places.threads or profile.threads
    if threads:
        build.add("--threads", threads, "CPU threads")
    build.add(("-b", "--batch-size"), profile.batch, "tokens of a prompt between two looks at Ctrl-C")
    build.add(("-ub", "--ubatch-size"), min(profile.ubatch, profile.batch), "tokens computed at once")
    slots = f"{profile.slots} x {profile.context} tokens" if profile.slots > 1 else "tokens of context"
    build.add("--ctx-size", profile.context * profile.slots, slots)
    if build.given("flash_attention") or profile.flash_attention != "auto":
        _add_flash_attention(build)


def add_layers(build: Builder, key: str, flags: tuple[str, ...], value: int | str, comment: str) -> None:
    """A number of layers; "all" as a number where the server takes nothing else."""
    if value == "all" and build.capabilities.dialect == "ik":
        value, comment = EVERY_LAYER, f"{comment}: all of them"
    elif value == "all":
        comment = f"all {comment}"
    build.add_or_warn(key, flags, value, comment, "this build seems to be for the processor only")


def _add_split(build: Builder) -> None:
    profile = build.profile
    if profile.split_mode is not None:
        allowed = build.allowed("--split-mode")
        if allowed and profile.split_mode not in allowed:
            reason = f'{build.server} does not know split_mode = "{profile.split_mode}"'
            build.refuse("split_mode", reason, f"it knows {', '.join(allowed)}")
        else:
            build.add_or_warn("split_mode", "--split-mode", profile.split_mode, "how GPUs share the model")
        if profile.split_mode == "tensor" and profile.uses_draft_model:
            build.warn(
                "split-and-draft",
                'split_mode = "tensor" together with a draft model has crashed llama.cpp',
                'set split_mode = "layer"',
            )
    if profile.tensor_split:
        build.add_or_warn("tensor_split", "--tensor-split", profile.tensor_split, "each GPU's share")
    if profile.main_gpu is not None:
        build.add_or_warn("main_gpu", "--main-gpu", profile.main_gpu, "the GPU for what is not shared")


def _add_flash_attention(build: Builder) -> None:
    value = build.profile.flash_attention
    comment = "attention in one pass, with less memory" if value != "off" else "attention step by step"
    if value == "on" and build.profile.kv_type_v not in UNQUANTISED:
        comment = "a quantised V cache needs it"
    if build.capabilities.knows("--flash-attn") and "--flash-attn" not in build.capabilities.valued:
        # Before autumn 2025 it was a switch.
        if value == "on":
            build.add("--flash-attn", None, comment)
        return
    build.add_or_warn("flash_attention", "--flash-attn", value, comment)


def add_kv_types(build: Builder) -> None:
    """How the context is stored. Left to the server where the profile says nothing."""
    profile = build.profile
    if profile.flash_attention == "off" and profile.kv_type_v not in UNQUANTISED:
        build.refuse(
            "kv-without-flash-attention",
            f'kv_type_v = "{profile.kv_type_v}" needs flash attention, which the profile turns off',
            'set flash_attention = "on", or kv_type_v = "f16"',
        )
    added = []
    for key, flag in (("kv_type_k", "--cache-type-k"), ("kv_type_v", "--cache-type-v")):
        if build.given(key):
            comment = f"{'keys' if key.endswith('k') else 'values'} of the context cache"
            added.append(add_kv_type(build, key, (flag,), getattr(profile, key), comment))
    if len(added) == 2 and len({str(one).startswith("kvarn") for one in added}) > 1:
        build.warn(
            "one-sided-kvarn",
            "only one of kv_type_k and kv_type_v is a kvarn type: BeeLlama makes the other one the same",
            "set both",
        )


def add_kv_type(build: Builder, key: str, flags: tuple[str, ...], kv_type: str, comment: str) -> str | None:
    """One storage type, under the name that this server has for it; what was added."""
    allowed = build.allowed(flags) or get_args(UpstreamKvType)
    successor = _SUCCESSORS.get(kv_type, "")
    if kv_type not in allowed and successor in allowed:
        build.warn(key, f"{kv_type} is called {successor} in {build.server}", f'set {key} = "{successor}"')
        kv_type = successor
    if kv_type in allowed:
        build.add_or_warn(key, flags, kv_type, comment)
        return kv_type
    similar = next((old for old, new in _SUCCESSORS.items() if new == kv_type and old in allowed), None)
    similar = similar or _OF_SIMILAR_SIZE.get(kv_type)
    hint = f'set {key} = "{similar}"' if similar in allowed else "choose one of those"
    build.refuse(key, f'{build.server} does not know {key} = "{kv_type}", only {", ".join(allowed)}', hint)
    return None


def add_loading(build: Builder) -> None:
    """How the model file gets into memory: one flag in new servers, two or three switches in others."""
    mode = build.profile.load_mode
    if build.given("load_mode") and mode != "auto":
        if build.capabilities.knows("--load-mode"):
            allowed = build.allowed("--load-mode")
            if allowed and mode not in allowed:
                reason = f'{build.server} does not know load_mode = "{mode}"'
                build.refuse("load_mode", reason, f"it knows {', '.join(allowed)}")
            else:
                build.add(("-lm", "--load-mode"), mode, _LOAD_COMMENTS[mode])
        else:
            _add_old_loading(build, mode)
    if build.profile.no_host:
        build.add_or_warn("no_host", "--no-host", None, "no buffers in RAM that the GPU could do without")


_LOAD_COMMENTS = {
    "none": "the file is read, not mapped",
    "mmap": "the file is mapped",
    "mlock": "read into memory that is never swapped out",
    "mmap+mlock": "mapped, and never swapped out",
    "dio": "read past the system's file cache",
}


def _add_old_loading(build: Builder, mode: str) -> None:
    if mode in ("none", "mlock"):
        build.add_or_warn("load_mode", "--no-mmap", None, "the file is read, not mapped")
    elif mode == "mmap":
        build.add(
            "--mmap", None, "the file is mapped"
        )  # and where there is no such switch, it is the default
    if mode in ("mlock", "mmap+mlock"):
        build.add_or_warn("load_mode", "--mlock", None, "what is loaded is never swapped out")
    elif mode == "dio":
        build.add_or_warn("load_mode", "--direct-io", None, "read past the system's file cache")
