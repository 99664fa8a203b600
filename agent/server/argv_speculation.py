"""Drafting, as llama-server's arguments. The part in which the dialects differ most."""

from agent.server.argv_memory import UNQUANTISED, add_kv_type, add_layers
from agent.server.command import Builder
from agent.server.profile import KINDS_WITH_A_DRAFT_MODEL, SpeculationKind

DFLASH_N_MAX = 15
"""A block of 16, as the published drafters have it, less the token that is known already."""
_NAMES: dict[str, tuple[str, ...]] = {
    "draft": ("draft-simple", "draft"),
    "dflash": ("draft-dflash", "dflash"),
    "mtp": ("draft-mtp", "mtp"),
    "eagle3": ("draft-eagle3", "eagle3"),
    "dspark": ("draft-dspark", "dspark"),
}
_NGRAM_NUMBERS = ("size_n", "size_m", "min_hits")
_DRAFTS_ON_A_GPU = ("bee-0.3",)
"""There, a DFlash drafter gets a device of its own, and the start ends with "invalid value for main_gpu" if
there is none; seen with BeeLlama 0.3.1."""
_DRAFTS_LITTLE_BY_DEFAULT = ("llama.cpp",)
"""There, `--spec-draft-n-max` is 3 unless given, for DFlash too."""


def add_speculation(build: Builder) -> None:
    """Everything about drafting: the kinds, the draft model, and the numbers of both."""
    profile = build.profile
    if not profile.speculation.kinds:
        return
    if profile.uses_draft_model:
        _add_draft_model(build)
    if build.capabilities.stage_keys:
        _add_stages(build)
    else:
        _add_types(build)
        _add_numbers(build)
    _add_window(build)
    _add_control(build)


def _add_draft_model(build: Builder) -> None:
    profile, speculation = build.profile, build.profile.speculation
    if not build.places.draft:
        build.refuse("draft", "the profile names no draft model file", "add a [draft] table")
    flags = ("--spec-draft-model", "--model-draft", "-md")
    if not build.add(flags, build.places.draft, "the model that proposes tokens"):
        build.refuse("draft", f"{build.server} cannot load a draft model", "use another llama-server")
        return
    layers = profile.gpu_layers if speculation.draft_gpu_layers is None else speculation.draft_gpu_layers
    if layers != "auto":
        flags = ("--spec-draft-ngl", "--gpu-layers-draft", "-ngld")
        add_layers(build, "draft_gpu_layers", flags, layers, "layers of the draft model on the GPU")
    device_flags = ("--spec-draft-device", "--device-draft", "-devd")
    if speculation.draft_devices:
        build.add_or_warn("draft_devices", device_flags, speculation.draft_devices, "GPUs of the draft model")
    elif layers == 0 and speculation.kind == "dflash" and build.capabilities.dialect in _DRAFTS_ON_A_GPU:
        build.add(device_flags, "none", "it would look for a GPU for the draft model even so")
    for letter, kv_type in (("k", speculation.draft_kv_type_k), ("v", speculation.draft_kv_type_v)):
        if kv_type is None:
            continue
        key = f"draft_kv_type_{letter}"
        flags = (f"--spec-draft-type-{letter}", f"--cache-type-{letter}-draft", f"-ct{letter}d")
        add_kv_type(build, key, flags, kv_type, "context cache of the draft model")
        if kv_type not in UNQUANTISED:
            build.warn(
                "draft-kv",
                f"{key} = {kv_type!r}: with a quantised cache almost nothing that a draft model proposes "
                "is accepted",
                "leave it out, which means f16",
            )


def _known(build: Builder, kind: SpeculationKind) -> str | None:
    """The server's name for a kind; None, and a refusal, where it has none."""
    types = build.capabilities.spec_types
    name = next((name for name in _NAMES.get(kind, (kind,)) if name in types), None)
    if name is not None:
        return name
    plain_models_have_no_name = not any(one.startswith("draft") for one in types)
    if kind == "draft" and plain_models_have_no_name and not build.capabilities.stage_keys:
        # A draft model alone, without --spec-type, means it in older servers.
        return ""
    known = ", ".join(types) or "nothing at all"
    old = " (it may be older than DFlash in llama.cpp, summer 2026)" if kind == "dflash" else ""
    build.refuse(
        "speculation",
        f'{build.server} does not know speculation.kind = "{kind}", only {known}{old}',
        "choose another kind, or another llama-server",
    )
    return None


def _add_types(build: Builder) -> None:
    kinds = build.profile.speculation.kinds
    if len(kinds) > 1 and not build.capabilities.combines:
        rest = ", ".join(kinds[1:])
        build.warn(
            "combination",
            f"{rest} is left out: {build.server} drafts in one way at a time",
            f"{kinds[0]} stays",
        )
        kinds = kinds[:1]
    names = [name for kind in kinds if (name := _known(build, kind))]
    if names:
        build.add("--spec-type", ",".join(names), "how tokens are proposed")


def _add_numbers(build: Builder) -> None:
    speculation, kind = build.profile.speculation, build.profile.speculation.kind
    n_max = _draft_n_max(build)
    if n_max is not None:
        comment = "tokens proposed at once"
        if speculation.n_max is None:
            comment += f": a whole block; {build.capabilities.dialect} would propose 3"
        build.add_or_warn("n_max", ("--spec-draft-n-max", "--draft-max"), n_max, comment)
    if _drafts_with_a_model(kind):
        for key, flags, comment in (
            ("n_min", ("--spec-draft-n-min", "--draft-min"), "fewer are not worth a check"),
            ("p_min", ("--spec-draft-p-min", "--draft-p-min"), "stop when less certain than this"),
        ):
            value = getattr(speculation, key)
            if value is not None:
                build.add_or_warn(key, flags, value, comment)
    for one in speculation.kinds:
        for key, value in _ngram_numbers(build, one).items():
            name = key.replace("_", "-")
            flags = (f"--spec-{one}-{name}",) if one == "ngram-mod" else (
                f"--spec-{one}-{name}",
                f"--spec-ngram-{name}",
            )  # fmt: skip
            build.add_or_warn(key, flags, value, f"{name} of {one}")


def _draft_n_max(build: Builder) -> int | None:
    speculation = build.profile.speculation
    if not _drafts_with_a_model(speculation.kind):
        return None
    if speculation.n_max is None and speculation.kind == "dflash":
        return DFLASH_N_MAX if build.capabilities.dialect in _DRAFTS_LITTLE_BY_DEFAULT else None
    return speculation.n_max


def _drafts_with_a_model(kind: SpeculationKind) -> bool:
    return kind in KINDS_WITH_A_DRAFT_MODEL or kind == "mtp"


def _ngram_numbers(build: Builder, kind: SpeculationKind) -> dict[str, int]:
    """The numbers that the profile gives for one kind that drafts from the context."""
    speculation = build.profile.speculation
    alone = not _drafts_with_a_model(speculation.kind)
    if kind == "ngram-mod":
        n_max, n_min = speculation.ngram_n_max, speculation.ngram_n_min
        if alone and speculation.kind == kind:
            n_max = speculation.n_max if n_max is None else n_max
            n_min = speculation.n_min if n_min is None else n_min
        numbers = {"n_match": speculation.n_match, "n_min": n_min, "n_max": n_max}
    elif kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v"):
        numbers = {key: getattr(speculation, key) for key in _NGRAM_NUMBERS}
    else:
        numbers = {}
    return {key: value for key, value in numbers.items() if value is not None}


def _add_stages(build: Builder) -> None:
    """ik_llama.cpp: `--spec-type KIND:key=value,...`, two at the most, the one without a model first."""
    main, others = build.profile.speculation.kind, build.profile.speculation.also
    partners = 1 if main in ("draft", "mtp") else 0
    chain: tuple[SpeculationKind, ...] = (*others[:partners], main)
    left_out = others[partners:]
    if left_out:
        build.warn(
            "combination",
            f"{', '.join(left_out)} is left out: {build.server} combines one kind that needs no model with "
            "a plain draft model or mtp, nothing else",
            f"{' and '.join(chain)} stays",
        )
    for kind in chain:
        name = _known(build, kind)
        if name:
            keys = ",".join(f"{key}={value}" for key, value in _stage(build, kind).items())
            build.add("--spec-type", f"{name}:{keys}" if keys else name, "how tokens are proposed")


def _stage(build: Builder, kind: SpeculationKind) -> dict[str, object]:
    speculation = build.profile.speculation
    if not _drafts_with_a_model(kind):
        numbers: dict[str, object] = dict(_ngram_numbers(build, kind))
        renamed = {"n_match": "ngram_size_n", **{key: f"ngram_{key}" for key in _NGRAM_NUMBERS}}
        stage = {renamed.get(key, key): value for key, value in numbers.items()}
    else:
        n_max = DFLASH_N_MAX if speculation.n_max is None and kind == "dflash" else speculation.n_max
        stage = {"n_max": n_max, "n_min": speculation.n_min, "p_min": speculation.p_min}
        if kind == "dflash" and "cross_ctx" in build.capabilities.stage_keys:
            stage["cross_ctx"] = speculation.cross_context
        stage = {key: value for key, value in stage.items() if value is not None}
    for key in [key for key in stage if key not in build.capabilities.stage_keys]:
        build.warn(key, f"{key} of {kind} is left out: {build.server} has nothing like it")
        del stage[key]
    return stage


def _add_window(build: Builder) -> None:
    """What a drafter sees of the conversation, and how many slots have one."""
    profile, speculation, caps = build.profile, build.profile.speculation, build.capabilities
    draft_context = ("--spec-draft-ctx-size", "--ctx-size-draft", "-cd")
    window = speculation.cross_context
    if window is not None and speculation.kind == "dflash" and "cross_ctx" not in caps.stage_keys:
        comment = "tokens that the drafter sees of the model's states"
        if caps.stage_keys:
            build.add(draft_context, window, comment)
        elif not build.add("--spec-dflash-cross-ctx", window, comment):
            build.warn(
                "cross_context",
                f"cross_context is left out: in {build.server} a drafter keeps the whole context",
                "that takes more memory; lower context if it does not fit",
            )
    if speculation.draft_context is not None and profile.uses_draft_model:
        build.add_or_warn(
            "draft_context", draft_context, speculation.draft_context, "context of the draft model",
            "the draft model gets the context of the target",
        )  # fmt: skip
    if speculation.kind == "dflash" and profile.slots > 1:
        build.add("--spec-dflash-max-slots", profile.slots, "every slot drafts")


def _add_control(build: Builder) -> None:
    speculation = build.profile.speculation
    if speculation.branch_budget is not None:
        build.add_or_warn(
            "branch_budget", "--spec-branch-budget", speculation.branch_budget, "tokens on side branches",
            "drafts are single lines",
        )  # fmt: skip
    adaptive = speculation.adaptive
    if adaptive is None:
        return
    if build.capabilities.knows("--spec-dm-controller"):
        known = build.allowed("--spec-dm-controller")
        if adaptive == "off" and build.add("--no-spec-dm-adaptive", None, "drafts always have full length"):
            return
        if known and adaptive not in known:
            build.warn(
                "adaptive", f"{build.server} does not know adaptive = {adaptive!r}", f"it knows {known}"
            )
            return
        build.add("--spec-dm-controller", adaptive, "how the length of drafts follows what they gain")
    elif adaptive != "off" and not build.add("--spec-autotune", None, "numbers of drafting are tuned"):
        build.warn("adaptive", f"adaptive is left out: {build.server} always drafts at full length")
