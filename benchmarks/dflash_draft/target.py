"""The target model in PyTorch: weights out of its GGUF file, hidden states for a drafter, and text.

Only what a model of the llama architecture needs. The weights are the dequantised ones of the very file that
the server loads, so that the drafter learns from the model that it will draft for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import torch
from torch import Tensor
from torch.nn import functional

LAYER_NAMES = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip
_SLOTS_AT_A_TIME = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model of the llama architecture, in the words of its GGUF keys."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    vocabulary: int
    rope_base: float
    epsilon: float


class Target:
    """A frozen model. All methods work on token ids of shape [batch, length]."""

    def __init__(self, path: Path, device: torch.device) -> None:
        reader = gguf.GGUFReader(path)
        self.shape = shape_of(reader)
        self.device, self.dtype = device, fast_type(device)
        weights = {
            tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy()).to(
                device, self.dtype
            )
            for tensor in reader.tensors
        }
        self.embedding = weights["token_embd.weight"]
        self.output = weights.get("output.weight", self.embedding)
        self.output_norm = weights["output_norm.weight"]
        self.blocks = [
            {name: weights[f"blk.{number}.{name}.weight"] for name in LAYER_NAMES}
            for number in range(self.shape.layers)
        ]

    @torch.no_grad()
    def hidden_states(
        self,
        tokens: Tensor,
        layers: tuple[int, ...],
        keep: Callable[[int, Tensor, Tensor], None] | None = None,
    ) -> Tensor:
        """What goes into each of `layers`, side by side; later layers are not computed.

        Args:
            keep: called with the number, the keys and the values of every layer, which are then all computed.
        """
        length = tokens.shape[1]
        turns = rotation(torch.arange(length, device=self.device), self.shape)
        stream = self.embedding[tokens]
        kept: dict[int, Tensor] = {}
        for number, block in enumerate(self.blocks):
            if number in layers:
                kept[number] = stream
            if keep is None and len(kept) == len(layers):
                break
            query, key, value = self.project(block, stream, turns)
            if keep is not None:
                keep(number, key, value)
            groups = self.shape.heads // self.shape.kv_heads
            attended = functional.scaled_dot_product_attention(
                query,
                key.repeat_interleave(groups, 1),
                value.repeat_interleave(groups, 1),
                is_causal=True,
            )
            stream = self._finish(block, stream, attended)
        return torch.cat([kept[number] for number in layers], -1) if layers else stream

    @torch.no_grad()
    def step(self, tokens: Tensor, cache: "Cache") -> Tensor:
        """Logits behind each of `tokens`, one for each row of the cache, which they are added to."""
        turns = rotation(cache.lengths[:, None], self.shape)
        visible = cache.begin_step()
        stream = self.embedding[tokens][:, None]
        for number, block in enumerate(self.blocks):
            query, key, value = self.project(block, stream, turns)
            keys, values = cache.add(number, key, value)
            # The heads that share a key head are queries of it: [rows, key heads, group, head].
            grouped = query.view(len(tokens), self.shape.kv_heads, -1, self.shape.head)
            attended = functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=visible)
            stream = self._finish(block, stream, attended.reshape(query.shape))
        cache.end_step()
        return self._norm(stream[:, 0], self.output_norm) @ self.output.T

    @torch.no_grad()
    def read(self, prompts: list[list[int]], cache: "Cache", rows: list[int]) -> None:
        """Puts all but the last token of each prompt into a row of the cache."""
        longest = max(map(len, prompts))
        # Behind a short prompt stands anything: nothing looks there, and answers are written over it.
        tokens = torch.tensor([prompt + [0] * (longest - len(prompt)) for prompt in prompts])
        chosen = torch.tensor(rows, device=self.device)
        lengths = torch.tensor([len(prompt) - 1 for prompt in prompts], device=self.device)
        cache.fill(chosen, lengths)
        self.hidden_states(tokens.to(self.device), (), lambda layer, *pair: cache.put(layer, chosen, *pair))

    def project(
        self, block: dict[str, Tensor], stream: Tensor, turns: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        shape = self.shape
        batch, length, _ = stream.shape
        normed = self._norm(stream, block["attn_norm"])

        def heads(name: str, count: int) -> Tensor:
            return (normed @ block[name].T).view(batch, length, count, shape.head).transpose(1, 2)

        query, key = heads("attn_q", shape.heads), heads("attn_k", shape.kv_heads)
        return (
            turn_neighbours(query, turns),
            turn_neighbours(key, turns),
            heads("attn_v", shape.kv_heads),
        )

    def _finish(self, block: dict[str, Tensor], stream: Tensor, attended: Tensor) -> Tensor:
        joined = attended.transpose(1, 2).reshape(stream.shape)
        stream = stream + joined @ block["attn_output"].T
        normed = self._norm(stream, block["ffn_norm"])
        gated = functional.silu(normed @ block["ffn_gate"].T) * (normed @ block["ffn_up"].T)
        return stream + gated @ block["ffn_down"].T

    def _norm(self, stream: Tensor, weight: Tensor) -> Tensor:
        return (
            functional.rms_norm(stream.float(), (self.shape.width,), None, self.shape.epsilon).to(self.dtype)
            * weight
        )


class Cache:
    """Keys and values of all layers, a row for each text; each text has a length of its own."""

    def __init__(self, target: Target, rows: int, slots: int) -> None:
        shape = target.shape
        size = (shape.layers, 2, rows, shape.kv_heads, slots, shape.head)
        self._held = torch.zeros(size, device=target.device, dtype=target.dtype)
        self._rows = torch.arange(rows, device=target.device)
        self._end = 1
        self.lengths = torch.zeros(rows, dtype=torch.long, device=target.device)

    def reserve(self, slots: int) -> None:
        """Makes room for texts of this length and somewhat longer ones: each time all that is held is copied.

        The gap in the heap where the smaller copy was is seldom used again. With a few slots at a time, such
        gaps had grown to 20 GB after 40 minutes.
        """
        missing = -(-slots // _SLOTS_AT_A_TIME) * _SLOTS_AT_A_TIME - self._held.shape[4]
        if missing > 0:
            self._held = functional.pad(self._held, (0, 0, 0, missing))

    def fill(self, rows: Tensor, lengths: Tensor) -> None:
        self.lengths[rows] = lengths

    def put(self, layer: int, rows: Tensor, key: Tensor, value: Tensor) -> None:
        self._held[layer, 0, rows, :, : key.shape[2]] = key
        self._held[layer, 1, rows, :, : value.shape[2]] = value

    def begin_step(self) -> Tensor:
        """What each row may look at, its next token included: [rows, 1, 1, slots]."""
        self._end = int(self.lengths.max()) + 1
        slots = torch.arange(self._end, device=self.lengths.device)
        return (slots <= self.lengths[:, None])[:, None, None]

    def add(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        held = self._held[layer]
        held[0, self._rows, :, self.lengths] = key[:, :, 0]
        held[1, self._rows, :, self.lengths] = value[:, :, 0]
        return held[0, :, :, : self._end], held[1, :, :, : self._end]

    def end_step(self) -> None:
        self.lengths += 1


def fast_type(device: torch.device) -> torch.dtype:
    """bfloat16 where the machine multiplies it faster than float32: GPUs, and processors with AMX."""
    if device.type == "cpu" and not torch.cpu.get_capabilities().get("amx_bf16", False):
        return torch.float32
    return torch.bfloat16


def shape_of(reader: gguf.GGUFReader) -> Shape:
    """Raises KeyError when the file is of another architecture."""

    def value(name: str) -> float:
        return reader.fields[f"llama.{name}"].contents()

    width, heads = int(value("embedding_length")), int(value("attention.head_count"))
    embedding = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    return Shape(
        width=width,
        layers=int(value("block_count")),
        heads=heads,
        kv_heads=int(value("attention.head_count_kv")),
        head=width // heads,
        inner=int(value("feed_forward_length")),
        vocabulary=int(embedding.shape[1]),
        rope_base=value("rope.freq_base"),
        epsilon=value("attention.layer_norm_rms_epsilon"),
    )


def rotation(positions: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary embedding, [..., length, head / 2]."""
    exponent = torch.arange(0, shape.head, 2, device=positions.device, dtype=torch.float32) / shape.head
    angles = positions[..., None].float() * torch.exp(-exponent * math.log(shape.rope_base))
    return angles.cos(), angles.sin()


def turn_neighbours(states: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Rotates pairs of neighbours, the way in which llama GGUF files have their heads laid out."""
    cosine, sine = (_per_head(part, states) for part in turns)
    even, odd = states[..., 0::2].float(), states[..., 1::2].float()
    turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1)
    return turned.flatten(-2).to(states.dtype)


def turn_halves(states: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Rotates the first half of a head against the second ("NeoX"), as llama.cpp does for drafters."""
    cosine, sine = (_per_head(part, states) for part in turns)
    first, second = states.float().chunk(2, -1)
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), -1).to(states.dtype)


def _per_head(turns: Tensor, states: Tensor) -> Tensor:
    # [length, half] or [batch, length, half] -> something that fits [batch, heads, length, half].
    return turns if turns.dim() < states.dim() - 1 else turns[:, None]
