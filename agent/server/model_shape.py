"""What a model's size in memory depends on, taken from the header of its file.

The rules for what each architecture keeps are llama.cpp's (`src/llama-hparams.cpp`, `src/models/*.cpp`);
the numbers that follow from them were compared with what the engine reports, see `agent.server.fit`.
"""

import re
from dataclasses import dataclass

from agent.server.drafter import block_size, read_layers
from agent.server.gguf_types import GgufArray, GgufHeader

_WINDOW_EVERY = {
    "afmoe": 4,
    "cohere2": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "llama4": 4,
    "muse-glimmer": 4,
    "olmo2": 4,
}
"""Every n-th layer sees everything, the others a window; for files that do not say it themselves."""
_LLAMA4_WINDOW = 8192
_HYBRID_INTERVAL = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}
"""Every n-th layer has attention, the others a recurrent state; `full_attention_interval` may differ."""
_EMBEDDING, _OUTPUT = "token_embd.weight", "output.weight"
_EXPERTS = re.compile(r"\.ffn_(up|down|gate|gate_up)_(ch)?exps\.")
"""What `--cpu-moe` and `--n-cpu-moe` keep in RAM, by llama.cpp's common/common.h."""


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one layer keeps of each token, in elements; `windowed` layers only of the newest ones."""

    key: int
    value: int
    windowed: bool


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """The state of all recurrent layers for one sequence, in elements of four bytes.

    `one_layer` is the largest part that a single layer works on, `channels` the width of its convolution.
    """

    elements: int
    one_layer: int
    channels: int
    inner: int


@dataclass(frozen=True, slots=True)
class Widths:
    """Elements for each token that the steps of a layer hold at the same time."""

    embedding: int
    feed_forward: int
    experts_used: int
    expert_feed_forward: int
    heads: int
    queries: int
    keys_and_values: int
    gated_attention: bool
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of tensors: of the embedding, of each layer, and of all others (the output among them).

    `tied` says that the embedding serves as the output too, so that a GPU needs a copy of it. `experts` is
    the part of each layer that its experts take.
    """

    embedding: int
    layers: tuple[int, ...]
    others: int
    tied: bool
    experts: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        return self.embedding + sum(self.layers) + self.others


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Everything that the estimate needs about one model file."""

    name: str
    architecture: str
    trained_context: int
    window: int
    caches: tuple[LayerCache | None, ...]
    nextn_caches: tuple[LayerCache | None, ...]
    recurrent: RecurrentState | None
    widths: Widths
    weights: Weights
    target_layers: int
    block_size: int

    @property
    def windowed(self) -> bool:
        return any(cache is not None and cache.windowed for cache in self.caches)


def shape_of(header: GgufHeader) -> ModelShape:
    """Reads the shape of a model.

    Raises:
        ModelFileError: the header lacks what a model of this kind must say.
    """
    window, windowed = _windows(header)
    recurrent_layers = _recurrent_layers(header)
    caches = _caches(header, windowed, recurrent_layers)
    main = header.main_layers
    return ModelShape(
        name=header.name,
        architecture=header.architecture,
        trained_context=header.own_number("context_length", 0),
        window=window,
        caches=caches[:main],
        nextn_caches=caches[main:],
        recurrent=_recurrent_state(header, sum(recurrent_layers[:main])),
        widths=_widths(header, any(recurrent_layers)),
        weights=_weights(header),
        target_layers=len(read_layers(header)[1] or ()),
        block_size=block_size(header),
    )


def _windows(header: GgufHeader) -> tuple[int, tuple[bool, ...]]:
    """The size of the window and which layers have one."""
    layers = header.block_count
    window = header.sliding_window
    if header.architecture == "llama4" and header.own("attention.sliding_window") is None:
        window = _LLAMA4_WINDOW
    key = "attention.sliding_window_pattern"
    pattern = header.own(key)
    if not window:
        return 0, (False,) * layers
    if isinstance(pattern, GgufArray):
        return window, tuple(bool(value) for value in header.per_layer(key))
    every = header.own_number(key, _WINDOW_EVERY.get(header.architecture, 1))
    # One of one layer sees everything: other architectures carry the key, but the engine ignores it.
    return window, tuple(every == 0 or number % every < every - 1 for number in range(layers))


def _recurrent_layers(header: GgufHeader) -> tuple[bool, ...]:
    layers, main = header.block_count, header.main_layers
    if header.own("attention.recurrent_layers") is not None:
        return tuple(bool(value) for value in header.per_layer("attention.recurrent_layers"))
    interval = _HYBRID_INTERVAL.get(header.architecture)
    if interval is not None:
        interval = header.own_number("full_attention_interval", interval)
        return tuple(number < main and bool((number + 1) % max(1, interval)) for number in range(layers))
    has_state = header.own("ssm.state_size") is not None or header.own("shortconv.l_cache") is not None
    if not has_state:
        return (False,) * layers
    counts = header.kv_head_counts
    if 0 not in counts:  # falcon-h1: each layer has both
        return (True,) * layers
    if header.architecture.startswith("nemotron_h"):  # some layers are neither, only a feed-forward network
        inner = header.per_layer("feed_forward_length")
        return tuple(not count and not length for count, length in zip(counts, inner, strict=True))
    return tuple(not count for count in counts)


def _caches(
    header: GgufHeader, windowed: tuple[bool, ...], recurrent: tuple[bool, ...]
) -> tuple[LayerCache | None, ...]:
    kv_heads = header.kv_head_counts
    shared = header.own_number("attention.shared_kv_layers", 0)
    both = all(recurrent) and all(kv_heads)
    key, value = header.key_length, header.value_length
    window_key = header.own_number("attention.key_length_swa", key)
    window_value = header.own_number("attention.value_length_swa", value)
    if header.own("attention.key_length_mla") is not None:
        value = window_value = 0  # the values are a part of the keys
    found: list[LayerCache | None] = []
    for number, heads in enumerate(kv_heads):
        reuses = number >= header.main_layers - shared and number < header.main_layers
        if not heads or reuses or (recurrent[number] and not both):
            found.append(None)
        elif windowed[number]:
            found.append(LayerCache(window_key * heads, window_value * heads, windowed=True))
        else:
            found.append(LayerCache(key * heads, value * heads, windowed=False))
    return tuple(found)


def _recurrent_state(header: GgufHeader, layers: int) -> RecurrentState | None:
    if not layers:
        return None
    short = header.own_number("shortconv.l_cache", 0)
    if short:
        elements = header.embedding_length * (short - 1)
        return RecurrentState(elements * layers, elements, header.embedding_length, 0)
    inner, state = header.own_number("ssm.inner_size", 0), header.own_number("ssm.state_size", 0)
    channels = inner + 2 * header.own_number("ssm.group_count", 0) * state
    convolution = max(0, header.own_number("ssm.conv_kernel", 0) - 1) * channels
    return RecurrentState((convolution + inner * state) * layers, inner * state, channels, inner)


def _widths(header: GgufHeader, hybrid: bool) -> Widths:
    heads = max(header.head_counts)
    key = max(header.key_length, header.own_number("attention.key_length_swa", 0))
    lengths = header.key_length + header.value_length
    used = header.own_number("expert_used_count", 0)
    has_dense = header.own("feed_forward_length") is not None
    return Widths(
        embedding=header.embedding_length,
        feed_forward=max(header.per_layer("feed_forward_length")) if has_dense else 0,
        experts_used=used,
        expert_feed_forward=header.own_number("expert_feed_forward_length", 0),
        heads=heads,
        queries=heads * key,
        keys_and_values=max(header.kv_head_counts) * lengths,
        gated_attention=hybrid and header.architecture in _HYBRID_INTERVAL,
        vocabulary=_vocabulary(header),
    )


def _vocabulary(header: GgufHeader) -> int:
    for name in (_OUTPUT, _EMBEDDING):
        tensor = header.tensor(name)
        if tensor is not None and len(tensor.dimensions) > 1:
            return tensor.dimensions[1]
    return header.vocabulary_size


def _weights(header: GgufHeader) -> Weights:
    layers, experts = [0] * header.block_count, [0] * header.block_count
    embedding = others = 0
    tied = True
    for tensor in header.tensors:
        number = tensor.name.removeprefix("blk.").partition(".")[0]
        if tensor.name.startswith("blk.") and number.isdecimal() and int(number) < len(layers):
            layers[int(number)] += tensor.bytes
            experts[int(number)] += tensor.bytes if _EXPERTS.search(tensor.name) else 0
        elif tensor.name == _EMBEDDING:
            embedding += tensor.bytes
        else:
            others += tensor.bytes
        tied = tied and tensor.name != _OUTPUT
    return Weights(embedding, tuple(layers), others, tied and embedding > 0, tuple(experts))
