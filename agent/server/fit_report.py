"""Whether the server of a profile fits into this machine, as a report for a person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.core.errors import ModelFileError, UsageError
from agent.server.compat import Finding, check_pair, layouts_of
from agent.server.fit import FULL_PRECISION, MIB, Estimate, ServerSettings, estimate, layers_of
from agent.server.fit_suggest import (
    Budget,
    Suggestion,
    largest_context,
    largest_weights,
    most_gpu_layers,
    suggest,
)
from agent.server.gguf import read_model
from agent.server.gguf_types import GgufHeader
from agent.server.hardware import Hardware
from agent.server.missing import how_to_get
from agent.server.model_file import ModelFile
from agent.server.model_shape import ModelShape, shape_of
from agent.server.profile import Profile

Verdict = Literal["fits", "tight", "partly", "too big"]

_TIGHT_SHARE = 0.05
_EVERY_LAYER = 10_000
_ENGINE_N_MAX = 3
_DFLASH_N_MAX = 15
_BEE_WINDOW = 512
"""What `--spec-dflash-cross-ctx` of BeeLlama before 0.4 is without being given."""
_SERVER_CACHE_RAM_MIB = 8192
"""The default of `--cache-ram`, in upstream and in its forks."""


@dataclass(frozen=True, slots=True)
class FitReport:
    """The need of a profile's server beside what is there. Sizes in bytes, `largest_context` in tokens.

    `verdict`: "tight" = less than a twentieth would be left; "partly" = the GPU takes only some layers.
    `largest_weights`: how big the target's file could be with everything else as it is.
    """

    profile: str
    model: str
    verdict: Verdict
    settings: ServerSettings
    layers: int
    need: Estimate
    budget: Budget
    largest_context: int
    largest_weights: int
    suggestions: tuple[Suggestion, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def left(self) -> int:
        """What would be left where memory is scarcest, below zero when it does not fit."""
        return self.budget.left(self.need)

    @property
    def usable(self) -> bool:
        """Whether the server can be started and will work as the profile says."""
        return self.verdict != "too big" and all(one.severity != "refusal" for one in self.findings)


def fit_report(
    profile: Profile,
    models_folder: Path,
    hardware: Hardware,
    *,
    gpu: bool | None = None,
    headers: Mapping[str, Path] | None = None,
) -> FitReport:
    """Estimates what a profile's server needs and compares it with what `hardware` has now.

    Args:
        gpu: whether the engine can use a GPU; None = only an engine that is not the embedded one, whose
            usual build cannot.
        headers: for model files that are not here, by their names in the profile, where their headers are.

    Raises:
        UsageError: the profile starts no server.
        ModelFileError: a model file is missing or damaged.
    """
    if profile.target is None:
        raise UsageError(
            f"profile {profile.name!r} uses a server that runs elsewhere, there is nothing to fit",
            "choose a profile with a [target] table",
        )
    target = read_model(_find(profile.target, models_folder, headers or {}))
    of_draft = profile.draft if profile.uses_draft_model else None
    draft = read_model(_find(of_draft, models_folder, headers or {})) if of_draft else None
    shape, draft_shape = shape_of(target), shape_of(draft) if draft else None
    use_gpu = bool(hardware.gpus) and (profile.engine != "embedded" if gpu is None else gpu)
    budget = Budget(hardware.vram_free if use_gpu else 0, hardware.ram_available, hardware.unified_memory)
    settings = settings_of(profile, draft_shape)
    settings = replace(settings, gpu_layers=_gpu_layers(profile, shape, draft_shape, settings, budget))
    need = estimate(shape, draft_shape, settings)
    return FitReport(
        profile=profile.name,
        model=f"{target.name} {target.file_type}".strip(),
        verdict=_verdict(need, settings, shape, budget, profile.gpu_layers),
        settings=settings,
        layers=layers_of(shape),
        need=need,
        budget=budget,
        largest_context=largest_context(shape, draft_shape, settings, budget),
        largest_weights=largest_weights(shape, draft_shape, settings, budget),
        suggestions=suggest(shape, draft_shape, settings, budget),
        findings=(
            *_pair_findings(profile, target, draft),
            *_setting_findings(profile, shape, settings),
        ),
        notes=_notes(hardware, need, budget, use_gpu),
    )


def settings_of(profile: Profile, draft: ModelShape | None = None) -> ServerSettings:
    """What the memory depends on in a profile; `gpu_layers` is left at none."""
    speculation = profile.speculation
    most = min(_DFLASH_N_MAX, draft.block_size - 1) if draft else _DFLASH_N_MAX
    usual = most if speculation.kind == "dflash" else _ENGINE_N_MAX
    return ServerSettings(
        context=profile.context,
        slots=profile.slots,
        unified_kv=profile.unified_kv,
        batch=profile.batch,
        ubatch=profile.ubatch,
        kv_type_k=profile.kv_type_k,
        kv_type_v=profile.kv_type_v,
        flash_attention=profile.flash_attention != "off",
        cpu_moe_layers=_EVERY_LAYER if profile.cpu_moe_layers == "all" else profile.cpu_moe_layers or 0,
        speculation=speculation.kind,
        n_max=usual if speculation.n_max is None else speculation.n_max,
        draft_kv_type_k=speculation.draft_kv_type_k or "f16",
        draft_kv_type_v=speculation.draft_kv_type_v or "f16",
        draft_window=_draft_window(profile),
        cache_ram_bytes=_cache_ram_mib(profile) * MIB,
        full_window_cache=profile.swa_full,
    )


def _draft_window(profile: Profile) -> int | None:
    """How much of the context a DFlash drafter keeps: a window in two families, all of it in the others."""
    if profile.speculation.kind != "dflash" or profile.engine != "llama-server":
        return None
    usual = {"bee-0.3": _BEE_WINDOW, "ik": None}
    if profile.dialect not in usual:
        return None
    return profile.speculation.cross_context or usual[profile.dialect]


def _cache_ram_mib(profile: Profile) -> int:
    """A llama-server is only told about it by profiles that say something, and has its own default."""
    told = profile.engine == "embedded" or "cache_ram_mib" in profile.model_fields_set
    return profile.cache_ram_mib if told else _SERVER_CACHE_RAM_MIB


def render_fit(report: FitReport) -> str:
    """The report as plain text: the need, what is there, what changes would do, what else to know."""
    lines = [f"{report.profile}: {report.model}", ""]
    at_start = [_row(row.label, row.gpu, row.ram) for row in report.need.rows if not row.later]
    later = [_row(row.label, row.gpu, row.ram) for row in report.need.rows if row.later]
    rows = [("", "GPU", "RAM"), *at_start]
    rows.append(_row("needed", report.need.gpu, report.need.ram))
    rows.append(_row("free now", report.budget.gpu, report.budget.ram))
    rows += [("", "", ""), ("in use it may grow by", "", ""), *later] if later else []
    lines += _aligned(rows if report.budget.gpu else [(label, ram) for label, _, ram in rows])
    lines += ["", _conclusion(report)]
    if report.suggestions:
        head = ("change", "saves", "fits", "")
        lines += ["", *_aligned([head, *(_suggested(one) for one in report.suggestions)])]
    for finding in report.findings:
        lines += ["", f"{finding.severity}: {finding.reason}", f"hint: {finding.remedy}"]
    lines += ["", *report.notes] if report.notes else []
    return "\n".join(lines) + "\n"


def shown_size(size: int) -> str:
    """Bytes for a person, in the units of disks and downloads: "448 MB", "1.04 GB"."""
    if abs(size) < 1e9:
        return f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:.2f} GB"


def _find(file: ModelFile, models_folder: Path, headers: Mapping[str, Path]) -> Path:
    """Where the file lies. It is not verified: its header is all that is needed."""
    if found := file.found_in(models_folder):
        return found
    if file.file in headers:
        return headers[file.file]
    size = f"; it has {shown_size(file.bytes)}" if file.bytes else ""
    path = file.path_in(models_folder)
    hint = how_to_get(file, path)
    if any(source.kind == "hub" for source in file.sources):
        hint += ", or plan with its header alone: `agent server fit PROFILE --online`"
    raise ModelFileError(f"the model file {path} is not there{size}", hint)


def _gpu_layers(
    profile: Profile, target: ModelShape, draft: ModelShape | None, settings: ServerSettings, budget: Budget
) -> int:
    if not budget.gpu:
        return 0
    if profile.gpu_layers == "auto":
        return most_gpu_layers(target, draft, settings, budget)
    return layers_of(target) if profile.gpu_layers == "all" else min(profile.gpu_layers, layers_of(target))


def _verdict(
    need: Estimate, settings: ServerSettings, target: ModelShape, budget: Budget, asked: str | int
) -> Verdict:
    left = budget.left(need)
    if left < 0:
        return "too big"
    if asked == "auto" and budget.gpu and settings.gpu_layers < layers_of(target):
        return "partly"
    scarce = budget.gpu if need.gpu and left == budget.gpu - need.gpu else budget.ram
    return "tight" if left < scarce * _TIGHT_SHARE else "fits"


def _pair_findings(profile: Profile, target: GgufHeader, draft: GgufHeader | None) -> tuple[Finding, ...]:
    asked, layouts = profile.speculation, layouts_of(profile.dialect)
    return check_pair(asked.kind, target, draft, n_max=asked.n_max, layouts=layouts)


def _setting_findings(profile: Profile, target: ModelShape, settings: ServerSettings) -> list[Finding]:
    found = []
    if not settings.flash_attention and settings.kv_type_v not in FULL_PRECISION:
        reason = f'kv_type_v = "{settings.kv_type_v}" needs flash attention, which the profile turns off'
        found.append(Finding("refusal", "flash-attention", reason, 'set flash_attention = "auto"'))
    if target.trained_context and settings.context > target.trained_context:
        reason = f"context = {settings.context}, but the model was trained with {target.trained_context}"
        remedy = f"set context = {target.trained_context} or less: beyond that its answers get worse"
        found.append(Finding("warning", "context", reason, remedy))
    return found


def _notes(hardware: Hardware, need: Estimate, budget: Budget, use_gpu: bool) -> tuple[str, ...]:
    notes = list(hardware.notes)
    if hardware.gpus and not use_gpu:
        names = ", ".join(gpu.name for gpu in hardware.gpus)
        notes.append(f"{names}: not used, the embedded engine runs on the processor")
    elif len(hardware.gpus) > 1:
        notes.append(
            f"the free memory of {len(hardware.gpus)} GPUs is taken together; each needs a little more"
        )
    in_ram = need.ram + (need.gpu if budget.unified else 0)
    if in_ram <= budget.ram < in_ram + need.ram_later:
        growth = shown_size(need.ram_later)
        notes.append(f"in use it may grow by {growth} in RAM, more than there is: lower cache_ram_mib")
    return tuple(notes)


def _conclusion(report: FitReport) -> str:
    place = "on the GPU" if report.need.gpu else "in RAM"
    left = shown_size(abs(report.left))
    if report.verdict == "too big":
        conclusion = f"Does not fit: {left} are missing."
        if report.largest_weights:
            size = shown_size(report.largest_weights)
            conclusion += f" With all else as it is, a model file of up to {size} would fit."
        return conclusion
    context = f"The longest context that fits is {report.largest_context} tokens."
    if report.verdict == "partly":
        layers = f"{report.settings.gpu_layers} of {report.layers} layers"
        return f"Fits in part: {layers} go to the GPU, the others run on the processor, slowly."
    tight = ", which is tight" if report.verdict == "tight" else ""
    return f"Fits: {left} would be left {place}{tight}. {context}"


def _row(label: str, gpu: int, ram: int) -> tuple[str, str, str]:
    return label, shown_size(gpu) if gpu else "-", shown_size(ram) if ram else "-"


def _suggested(one: Suggestion) -> tuple[str, str, str, str]:
    return one.change, shown_size(one.saves), "yes" if one.fits else "no", one.cost


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first and the fourth column begin at the left, the others end at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    to_the_left = (0, 3)
    return [
        "  ".join(
            text.ljust(width) if number in to_the_left else text.rjust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
