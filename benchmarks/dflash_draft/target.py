"""The target model in PyTorch: weights out of its GGUF file, hidden states for a drafter, and text.

Only what a model of the llama architecture needs. The weights are the dequantised ones of the very file that
the server loads, so that the drafter learns from the model that it will draft for.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import gguf
import torch
from torch import Tensor
from torch.nn import functional

LAYER_NAMES = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip


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

    def __init__(self, path: Path, device: torch.device, dtype: torch.dtype) -> None:
        reader = gguf.GGUFReader(path)
        self.shape = shape_of(reader)
        self.device, self.dtype = device, dtype
        weights = {
            tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy()).to(
                device, dtype
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
    def hidden_states(self, tokens: Tensor, layers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """What goes into each of `layers`, side by side, and the normed output of the last layer."""
        length = tokens.shape[1]
        turns = rotation(torch.arange(length, device=self.device), self.shape)
        stream = self.embedding[tokens]
        kept: dict[int, Tensor] = {}
        for number, block in enumerate(self.blocks):
            if number in layers:
                kept[number] = stream
            query, key, value = self._project(block, stream, turns)
            groups = self.shape.heads // self.shape.kv_heads
            attended = functional.scaled_dot_product_attention(
                query,
                key.repeat_interleave(groups, 1),
                value.repeat_interleave(groups, 1),
                is_causal=True,
            )
            stream = self._finish(block, stream, attended)
        return torch.cat([kept[number] for number in layers], -1), self._norm(stream, self.output_norm)

    @torch.no_grad()
    def generate(
        self, prompts: list[list[int]], new_tokens: int, temperature: Tensor, stop: int, seed: int
    ) -> list[list[int]]:
        """Continues each prompt until `stop` or `new_tokens`.

        Args:
            temperature: one per prompt, 0 = always the likeliest token.
        """
        random = torch.Generator(self.device).manual_seed(seed)
        longest = max(map(len, prompts))
        rows = [[stop] * (longest - len(prompt)) + prompt for prompt in prompts]
        tokens = torch.tensor(rows, device=self.device)
        padding = torch.tensor([longest - len(prompt) for prompt in prompts], device=self.device)
        cache = Cache(self.shape, len(prompts), longest + new_tokens, self.device, self.dtype)
        done = torch.zeros(len(prompts), dtype=torch.bool, device=self.device)
        produced = []
        step = tokens
        for _ in range(new_tokens):
            logits = self._step(step, cache, padding)
            step = choose(logits, temperature, random)
            step[done] = stop
            done |= step == stop
            produced.append(step)
            if bool(done.all()):
                break
            step = step[:, None]
        table = torch.stack(produced, 1).tolist()
        return [row[: row.index(stop) + 1] if stop in row else row for row in table]

    def _step(self, tokens: Tensor, cache: "Cache", padding: Tensor) -> Tensor:
        """Logits after the last of `tokens`, which follow what is in the cache."""
        count, begin = tokens.shape[1], cache.length
        end = begin + count
        slots = torch.arange(end, device=self.device)
        positions = (slots[begin:][None] - padding[:, None]).clamp(min=0)
        turns = rotation(positions, self.shape)
        visible = (slots[None, None] <= slots[begin:][None, :, None]) & (
            slots[None, None] >= padding[:, None, None]
        )
        # A row of padding would see nothing at all, and softmax of nothing is no number.
        visible |= slots[None, None] == slots[begin:][None, :, None]
        groups = self.shape.heads // self.shape.kv_heads
        stream = self.embedding[tokens]
        for number, block in enumerate(self.blocks):
            query, key, value = self._project(block, stream, turns)
            keys, values = cache.extend(number, key, value)
            batch, _, _, head = query.shape
            # The heads that share a key head are queries of it: [batch, key heads, group * tokens, head].
            grouped = query.view(batch, self.shape.kv_heads, groups * count, head)
            mask = visible[:, None].repeat(1, 1, groups, 1)
            attended = functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask)
            stream = self._finish(block, stream, attended.reshape(batch, -1, count, head))
        cache.length = end
        return self._norm(stream[:, -1], self.output_norm) @ self.output.T

    def _project(
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
    """Keys and values of all layers for a fixed number of slots."""

    def __init__(
        self, shape: Shape, batch: int, slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        size = (shape.layers, 2, batch, shape.kv_heads, slots, shape.head)
        self._held = torch.zeros(size, device=device, dtype=dtype)
        self.length = 0

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        end = self.length + key.shape[2]
        held = self._held[layer]
        held[0, :, :, self.length : end] = key
        held[1, :, :, self.length : end] = value
        return held[0, :, :, :end], held[1, :, :, :end]


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


def choose(logits: Tensor, temperature: Tensor, random: torch.Generator) -> Tensor:
    """The likeliest token where the temperature is 0, else one drawn from the 20 likeliest."""
    best = logits.argmax(-1)
    values, candidates = logits.float().topk(20, -1)
    shares = (values / temperature.clamp(min=1e-3)[:, None]).softmax(-1)
    drawn = candidates.gather(1, torch.multinomial(shares, 1, generator=random))[:, 0]
    return torch.where(temperature > 0, drawn, best)


def _per_head(turns: Tensor, states: Tensor) -> Tensor:
    # [length, half] or [batch, length, half] -> something that fits [batch, heads, length, half].
    return turns if turns.dim() < states.dim() - 1 else turns[:, None]
