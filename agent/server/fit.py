"""How much memory a server will need, from the headers of its model files and its settings. Pure.

The formulas follow llama.cpp's allocation (`src/llama-kv-cache*.cpp`, `src/llama-memory-recurrent.cpp`) and,
for the compute buffers, the peak that its graph allocator reaches. They were compared with what the engine
reported (build 11549, processor, 2026) for llama, qwen2, qwen3, qwen3moe, gemma3, gemma4, qwen35 and dflash
models; `tests/server/cases/engine_memory.json` holds those measurements. All sizes are bytes.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from agent.core.errors import UsageError
from agent.server.model_shape import LayerCache, ModelShape

MIB = 1024 * 1024
KV_BLOCK_BYTES: dict[str, float] = {
    "f32": 128,
    "f16": 64,
    "bf16": 64,
    "q8_0": 34,
    "q8_KV": 34,
    "q6_1": 28,
    "q6_0": 26,
    "q5_1": 24,
    "q5_0": 22,
    "q4_1": 20,
    "q4_0": 18,
    "iq4_nl": 18,
    "q3_1": 16,
    "q3_0": 14,
    "q2_1": 12,
    "q2_0": 10,
    "turbo4_tcq": 17,
    "turbo4": 16.5,
    "turbo3_tcq": 13,
    "turbo3": 12.5,
    "turbo2_tcq": 9,
    "turbo2": 8.5,
    "kvarn8": 33.5,
    "kvarn6": 25.5,
    "kvarn5": 21.5,
    "kvarn4": 17.5,
    "kvarn3": 13.5,
    "kvarn2": 9.5,
}
"""Bytes of 32 elements. Those of forks were read in their sources and not measured with a running server:

- `turbo`: blocks of 128 in ggml/src/ggml-common.h of BeeLlama 0.3.1 (34, 50 and 66 bytes; with `_tcq` 36 and
  52) and of its preview of 0.3.2 (`turbo4_tcq`, 68).
- `kvarn`, and `q2_0` to `q6_1`: the same preview. A record (src/llama-kv-cache-kvarn.cpp) holds 128 tokens of
  128 elements and 768 bytes of scales. 384 tokens of each stream, kept as f16 beside it, are left out.
- `q8_KV`: ik_llama.cpp has 8 bytes more for each row (ggml/src/ggml.c), which is a head; 128 wide here."""
FULL_PRECISION = ("f32", "f16", "bf16")
_BLOCK = 32
_CELLS_TOGETHER = 256
_FLOAT = 4
_SERVER_BYTES = 64 * MIB
"""Program, vocabulary and buffers for requests, measured with small models."""
_GPU_RUNTIME_BYTES = 512 * MIB
"""What CUDA and its libraries take for a process; not reported by the engine, not measured here."""
_MOST_CHECKPOINTS = 32
_DRAFTING = ("draft", "dflash", "eagle3", "mtp")
_READS_HIDDEN_STATES = ("dflash", "eagle3")

Part = Literal["weights", "kv", "recurrent", "draft weights", "draft kv", "compute", "draft compute", "other"]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What the need depends on. `context` is for one slot; `gpu_layers` counts the output as one.

    `cpu_moe_layers`: so many layers, from the first one, keep their experts in RAM.
    `draft_window`: tokens that the draft model keeps, None = as many as the target (upstream).
    `logits_of_whole_batch`: older engines reserve the output for each token of a batch.
    """

    context: int
    slots: int = 1
    unified_kv: bool = False
    batch: int = 2048
    ubatch: int = 512
    kv_type_k: str = "f16"
    kv_type_v: str = "f16"
    draft_kv_type_k: str = "f16"
    draft_kv_type_v: str = "f16"
    flash_attention: bool = True
    gpu_layers: int = 0
    cpu_moe_layers: int = 0
    speculation: str = "none"
    n_max: int = 3
    cache_ram_bytes: int = 0
    full_window_cache: bool = False
    draft_window: int | None = None
    logits_of_whole_batch: bool = False

    @property
    def tokens(self) -> int:
        """Tokens that are worked on at once."""
        return max(1, min(self.batch, self.ubatch, self.context * self.slots))

    @property
    def drafts(self) -> bool:
        return self.speculation in _DRAFTING


@dataclass(frozen=True, slots=True)
class Row:
    """A part of the need. `later`: not at the start, memory that it grows to in use."""

    part: Part
    label: str
    gpu: int
    ram: int
    later: bool = False

    @property
    def bytes(self) -> int:
        return self.gpu + self.ram


@dataclass(frozen=True, slots=True)
class Estimate:
    rows: tuple[Row, ...]

    @property
    def gpu(self) -> int:
        return sum(row.gpu for row in self.rows if not row.later)

    @property
    def ram(self) -> int:
        return sum(row.ram for row in self.rows if not row.later)

    @property
    def ram_later(self) -> int:
        return sum(row.ram for row in self.rows if row.later)

    def part(self, part: Part) -> int:
        return sum(row.bytes for row in self.rows if row.part == part)


def estimate(target: ModelShape, draft: ModelShape | None, settings: ServerSettings) -> Estimate:
    """What a server with these models and settings needs.

    Raises:
        UsageError: an unknown KV type.
    """
    rows = [*_weight_rows(target, draft, settings), *_cache_rows(target, draft, settings)]
    rows += _compute_rows(target, draft, settings)
    if settings.speculation in _READS_HIDDEN_STATES:
        rows.append(
            Row("other", "hidden states for the draft", 0, _hidden_state_bytes(target, draft, settings))
        )
    on_gpu = settings.gpu_layers > 0
    runtime = _GPU_RUNTIME_BYTES if on_gpu else 0
    rows.append(Row("other", "the server itself, about", runtime, _SERVER_BYTES))
    rows += _later_rows(target, settings)
    return Estimate(tuple(row for row in rows if row.bytes))


def layers_of(shape: ModelShape) -> int:
    """Layers that can be on a GPU, the output counted as one."""
    return len(shape.weights.layers) + 1


def row_bytes(elements: int, kv_type: str) -> int:
    """Bytes for so many elements of a KV cache."""
    if kv_type not in KV_BLOCK_BYTES:
        known = ", ".join(KV_BLOCK_BYTES)
        raise UsageError(f"the size of the KV type {kv_type!r} is not known here", f"known are: {known}")
    return math.ceil(-(-elements // _BLOCK) * KV_BLOCK_BYTES[kv_type])


def compute_bytes(shape: ModelShape, settings: ServerSettings, *, outputs: int, residuals: int = 5) -> int:
    """The compute buffer of one model: the most that a step needs at once, and the attention masks.

    Args:
        outputs: tokens whose logits are kept.
        residuals: how many vectors of the model's width are held beside what a step works on.
    """
    width = shape.widths
    tokens = settings.tokens
    cells, windowed_cells, _ = _cells(shape, settings)
    mask = (cells + (windowed_cells if shape.windowed else 0)) * tokens
    stages = [
        3 * width.feed_forward + residuals * width.embedding,
        3 * width.experts_used * width.expert_feed_forward + residuals * width.embedding,
        2 * width.experts_used * width.embedding + (residuals + 1) * width.embedding,
    ]
    if width.gated_attention:
        stages.append(4 * width.queries + (residuals - 1) * width.embedding)
    if not settings.flash_attention:
        attention = (residuals + 1) * width.embedding + width.keys_and_values
        stages.append(attention + width.heads * (cells if any(shape.caches) else 0))
    whole = max(stages) * tokens * _FLOAT
    if shape.recurrent is not None:
        whole = max(whole, _recurrent_step_bytes(shape, settings, residuals))
    logits = outputs * width.vocabulary * _FLOAT
    return max(whole, logits) + mask * (2 if settings.flash_attention else _FLOAT)


def _weight_rows(target: ModelShape, draft: ModelShape | None, settings: ServerSettings) -> list[Row]:
    rows = [
        Row(
            "weights",
            "target weights",
            *_placed_weights(target, settings.gpu_layers, settings.cpu_moe_layers),
        )
    ]
    if draft is not None:
        placed = _placed_weights(draft, layers_of(draft) if settings.gpu_layers else 0)
        rows.append(Row("draft weights", "draft weights", *placed))
    return rows


def _placed_weights(shape: ModelShape, gpu_layers: int, cpu_moe_layers: int = 0) -> tuple[int, int]:
    """Bytes on the GPU and in RAM. The embedding is always looked up in RAM."""
    weights = shape.weights
    layers = min(gpu_layers, layers_of(shape))
    if not layers:
        return 0, weights.total
    output = weights.others + (weights.embedding if weights.tied else 0)
    first = len(weights.layers) - (layers - 1)
    experts = sum(weights.experts[first:cpu_moe_layers])
    on_gpu = output + sum(weights.layers[first:]) - experts
    in_ram = weights.embedding + sum(weights.layers[:first]) + experts
    return on_gpu, in_ram


def _cache_rows(target: ModelShape, draft: ModelShape | None, settings: ServerSettings) -> list[Row]:
    by_layer = _cache_of_layers(target, target.caches, settings)
    rows = [Row("kv", _kv_label(settings), *_split(by_layer, target, settings.gpu_layers))]
    if target.recurrent is not None:
        copies = 1 + (settings.n_max if settings.drafts else 0)
        size = target.recurrent.elements * _FLOAT * settings.slots * copies
        count = len(target.caches)
        states = [size // count] * count
        rows.append(Row("recurrent", "recurrent state", *_split(states, target, settings.gpu_layers)))
    of_draft, caches = _drafting_model(target, draft, settings)
    if of_draft is not None:
        size = sum(_cache_of_layers(of_draft, caches, _of_draft(settings)))
        on_gpu = settings.gpu_layers > 0
        rows.append(Row("draft kv", "draft KV cache", size if on_gpu else 0, 0 if on_gpu else size))
    return rows


def _kv_label(settings: ServerSettings) -> str:
    slots = f" x {settings.slots} slots" if settings.slots > 1 else ""
    types = {settings.kv_type_k, settings.kv_type_v}
    shown = settings.kv_type_k if len(types) == 1 else f"{settings.kv_type_k}/{settings.kv_type_v}"
    return f"KV cache, {settings.context} tokens{slots}, {shown}"


def _split(by_layer: list[int], shape: ModelShape, gpu_layers: int) -> tuple[int, int]:
    """What of each layer's part is on the GPU and in RAM: the last layers go to the GPU first."""
    kept = max(0, len(shape.weights.layers) - max(0, gpu_layers - 1)) if gpu_layers else len(by_layer)
    return sum(by_layer[kept:]), sum(by_layer[:kept])


def _cache_of_layers(
    shape: ModelShape, caches: tuple[LayerCache | None, ...], settings: ServerSettings
) -> list[int]:
    cells, windowed_cells, streams = _cells(shape, settings)
    sizes = []
    for cache in caches:
        if cache is None:
            sizes.append(0)
            continue
        each = row_bytes(cache.key, settings.kv_type_k) + row_bytes(cache.value, settings.kv_type_v)
        sizes.append(each * streams * (windowed_cells if cache.windowed else cells))
    return sizes


def _cells(shape: ModelShape, settings: ServerSettings) -> tuple[int, int, int]:
    """Cells of a full and of a windowed cache, and how many of each there are."""
    together = settings.slots if settings.unified_kv else 1
    cells = _padded(settings.context * together)
    wanted = cells if settings.full_window_cache else shape.window * together + settings.tokens
    streams = 1 if settings.unified_kv else settings.slots
    return cells, _padded(min(cells, wanted)), streams


def _padded(cells: int) -> int:
    return -(-cells // _CELLS_TOGETHER) * _CELLS_TOGETHER


def _drafting_model(
    target: ModelShape, draft: ModelShape | None, settings: ServerSettings
) -> tuple[ModelShape | None, tuple[LayerCache | None, ...]]:
    """The model that drafts and its layers; with MTP it is a part of the target."""
    if draft is not None:
        return draft, (*draft.caches, *draft.nextn_caches)
    if settings.speculation == "mtp" and target.nextn_caches:
        # Its own context runs these layers only, none of which has a recurrent state.
        return replace(target, recurrent=None), target.nextn_caches
    return None, ()


def _of_draft(settings: ServerSettings) -> ServerSettings:
    context = settings.context
    if settings.draft_window is not None:
        context = min(context, settings.draft_window + settings.tokens)
    key, value = settings.draft_kv_type_k, settings.draft_kv_type_v
    return replace(settings, context=context, kv_type_k=key, kv_type_v=value)


def _compute_rows(target: ModelShape, draft: ModelShape | None, settings: ServerSettings) -> list[Row]:
    tokens = settings.tokens
    checked = settings.slots * (1 + (settings.n_max if settings.drafts else 0))
    outputs = tokens if settings.logits_of_whole_batch else min(tokens, checked)
    size = compute_bytes(target, settings, outputs=outputs)
    if settings.speculation in _READS_HIDDEN_STATES:
        # The first of the layers whose state goes to the draft costs nothing more.
        size += max(0, _read_layers(draft) - 1) * tokens * target.widths.embedding * _FLOAT
    rows = [_compute_row("compute", "compute buffer", size, target, settings)]
    of_draft, _ = _drafting_model(target, draft, settings)
    if of_draft is None:
        return rows
    own = _of_draft(settings)
    if settings.speculation in _READS_HIDDEN_STATES:
        # All tokens of a batch have logits, and choosing among them on the device needs a copy.
        size = compute_bytes(of_draft, own, outputs=2 * tokens)
    else:
        size = compute_bytes(of_draft, own, outputs=settings.slots, residuals=2 if draft is None else 5)
    rows.append(_compute_row("draft compute", "draft compute buffer", size, of_draft, settings))
    return rows


def _compute_row(part: Part, label: str, size: int, shape: ModelShape, settings: ServerSettings) -> Row:
    if not settings.gpu_layers:
        return Row(part, label, 0, size)
    cells, _, _ = _cells(shape, settings)
    inputs = settings.tokens * (cells * 2 + shape.widths.embedding * _FLOAT)
    return Row(part, label, size, inputs)


def _recurrent_step_bytes(shape: ModelShape, settings: ServerSettings, residuals: int) -> int:
    """Fitted to what the engine reported: its intermediate states do not follow from few numbers."""
    state = shape.recurrent
    if state is None:
        return 0
    floats = residuals * shape.widths.embedding + 2 * state.channels + state.inner // 4
    snapshots = settings.n_max if settings.drafts else 0
    copies = 1.5 + snapshots + (settings.slots - 1) * (5.6 + 3 * snapshots)
    return settings.tokens * floats * _FLOAT + int(copies * state.one_layer * _FLOAT)


def _read_layers(draft: ModelShape | None) -> int:
    return draft.target_layers if draft is not None else 0


def _hidden_state_bytes(target: ModelShape, draft: ModelShape | None, settings: ServerSettings) -> int:
    """Kept by the target for a batch, once more in the draft's batch, and for the tokens at hand."""
    rows = 2 * settings.batch + settings.tokens
    return rows * _read_layers(draft) * target.widths.embedding * _FLOAT


def _later_rows(target: ModelShape, settings: ServerSettings) -> list[Row]:
    rows = [Row("other", "prompt cache, up to", 0, settings.cache_ram_bytes, later=True)]
    one = 0
    if target.windowed:
        cells = min(target.window, settings.context)
        one = sum(
            row_bytes(cache.key, settings.kv_type_k) + row_bytes(cache.value, settings.kv_type_v)
            for cache in target.caches
            if cache is not None and cache.windowed
        )
        one *= cells
    if target.recurrent is not None:
        one += target.recurrent.elements * _FLOAT
    size = one * _MOST_CHECKPOINTS * settings.slots
    rows.append(Row("other", f"context checkpoints, up to {_MOST_CHECKPOINTS}", 0, size, later=True))
    return rows
