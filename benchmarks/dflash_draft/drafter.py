"""A DFlash drafter in PyTorch: a few layers that fill a block of masks in one pass.

What a drafter knows of the text so far are hidden states of the target: each layer makes keys and values of
them, and the block attends to those and to itself, in both directions. Embedding and output are the
target's. The layout is the one that llama.cpp reads as architecture `dflash` (src/models/dflash.cpp).
"""

from dataclasses import dataclass

import torch
from target import Shape, Target, rotation, turn_halves
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Plan:
    """What kind of drafter: `block` tokens at once (the known one in front), `layers` of its own.

    `taps` are the layers of the target whose input it sees; `mask` is the token that stands for a gap.
    """

    block: int
    layers: int
    taps: tuple[int, ...]
    mask: int


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
        self.attn_norm = nn.Parameter(torch.ones(shape.width))
        self.attn_q = nn.Linear(shape.width, queries, bias=False)
        self.attn_k = nn.Linear(shape.width, keys, bias=False)
        self.attn_v = nn.Linear(shape.width, keys, bias=False)
        self.attn_output = nn.Linear(queries, shape.width, bias=False)
        self.attn_q_norm = nn.Parameter(torch.ones(shape.head))
        self.attn_k_norm = nn.Parameter(torch.ones(shape.head))
        self.ffn_norm = nn.Parameter(torch.ones(shape.width))
        self.ffn_gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.inner, bias=False)
        self.ffn_down = nn.Linear(shape.inner, shape.width, bias=False)

    def keys_and_values(self, source: Tensor, turns: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Of the context or of the block, [batch, key heads, length, head]; `source` is normed already."""
        batch, length, _ = source.shape
        size = (batch, length, self.shape.kv_heads, self.shape.head)
        key = self._head_norm(self.attn_k(source).view(size), self.attn_k_norm).transpose(1, 2)
        return turn_halves(key, turns), self.attn_v(source).view(size).transpose(1, 2)

    def forward(
        self,
        stream: Tensor,
        context: tuple[Tensor, Tensor],
        turns: tuple[Tensor, Tensor],
        visible: Tensor,
    ) -> Tensor:
        """One layer over the blocks. `visible` is [batch, 1, block tokens, context + block tokens]."""
        batch, length, width = stream.shape
        normed = self._norm(stream, self.attn_norm)
        query = self.attn_q(normed).view(batch, length, self.shape.heads, self.shape.head)
        query = turn_halves(self._head_norm(query, self.attn_q_norm).transpose(1, 2), turns)
        key, value = self.keys_and_values(normed, turns)
        groups = self.shape.heads // self.shape.kv_heads
        attended = functional.scaled_dot_product_attention(
            query,
            torch.cat((context[0], key), 2).repeat_interleave(groups, 1),
            torch.cat((context[1], value), 2).repeat_interleave(groups, 1),
            attn_mask=visible,
        )
        stream = stream + self.attn_output(attended.transpose(1, 2).reshape(batch, length, width))
        normed = self._norm(stream, self.ffn_norm)
        return stream + self.ffn_down(functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed))

    def _norm(self, stream: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(stream, (self.shape.width,), weight.to(stream.dtype), self.shape.epsilon)

    def _head_norm(self, states: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(states, (self.shape.head,), weight.to(states.dtype), self.shape.epsilon)


class Drafter(nn.Module):
    def __init__(self, shape: Shape, plan: Plan) -> None:
        super().__init__()
        self.shape, self.plan = shape, plan
        self.fc = nn.Linear(shape.width * len(plan.taps), shape.width, bias=False)
        self.enc_output_norm = nn.Parameter(torch.ones(shape.width))
        self.layers = nn.ModuleList(Layer(shape) for _ in range(plan.layers))
        self.output_norm = nn.Parameter(torch.ones(shape.width))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)

    def begin_from(self, target: Target, sample: Tensor) -> None:
        """Evens out the size of the hidden states, which differs a lot from layer to layer.

        Args:
            sample: hidden states of some text, as the target gives them.
        """
        with torch.no_grad():
            size = sample.float().pow(2).mean((0, 1)).sqrt().clamp(min=1e-3)
            self.fc.weight.div_(size.to(self.fc.weight)[None])
            self.output_norm.copy_(target.output_norm.float())

    def logits(self, target: Target, tokens: Tensor, anchors: Tensor, block: int) -> Tensor:
        """What stands behind each anchor, [batch, anchors, block - 1, vocabulary].

        Args:
            tokens: whole texts; the drafter sees nothing of them behind an anchor.
            anchors: positions of the last known tokens, [batch, anchors].
        """
        known, _ = target.hidden_states(tokens, self.plan.taps)
        with torch.autocast(target.device.type, torch.bfloat16, enabled=target.device.type == "cuda"):
            states = self(target, self.context(known), anchors, tokens.gather(1, anchors), block)
        return states.to(target.dtype) @ target.output.T

    def context(self, states: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of each layer for hidden states at positions 0, 1, 2 …"""
        fused = functional.rms_norm(
            self.fc(states), (self.shape.width,), self.enc_output_norm.to(states.dtype), self.shape.epsilon
        )
        turns = rotation(torch.arange(states.shape[1], device=states.device), self.shape)
        return [layer.keys_and_values(fused, turns) for layer in self._each()]

    def forward(
        self,
        target: Target,
        context: list[tuple[Tensor, Tensor]],
        anchors: Tensor,
        first: Tensor,
        block: int,
    ) -> Tensor:
        """Normed states of the tokens behind each anchor, [batch, anchors, block - 1, width].

        Args:
            anchors: positions of the last known token, [batch, anchors]; what is before them is context.
            first: the tokens at those positions.
        """
        batch, count = anchors.shape
        offsets = torch.arange(block, device=anchors.device)
        tokens = torch.full((batch, count, block), self.plan.mask, device=anchors.device)
        tokens[:, :, 0] = first
        positions = (anchors[..., None] + offsets).reshape(batch, count * block)
        turns = rotation(positions, self.shape)
        visible = self._visible(anchors, context[0][0].shape[2], block)
        stream = target.embedding[tokens.view(batch, count * block)].to(self.fc.weight.dtype)
        if torch.is_autocast_enabled(stream.device.type):
            stream = stream.to(torch.bfloat16)
        for layer, known in zip(self._each(), context, strict=True):
            stream = layer(stream, known, turns, visible)
        stream = functional.rms_norm(
            stream, (self.shape.width,), self.output_norm.to(stream.dtype), self.shape.epsilon
        )
        return stream.view(batch, count, block, -1)[:, :, 1:]

    def _each(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    @staticmethod
    def _visible(anchors: Tensor, context: int, block: int) -> Tensor:
        batch, count = anchors.shape
        slots = torch.arange(context, device=anchors.device)
        before = (slots < anchors[..., None])[:, :, None].expand(batch, count, block, context)
        same = torch.eye(count, dtype=torch.bool, device=anchors.device)
        own = same[:, None, :, None].expand(count, block, count, block).reshape(count * block, count * block)
        own = own[None].expand(batch, -1, -1)
        return torch.cat((before.reshape(batch, count * block, context), own), -1)[:, None]
