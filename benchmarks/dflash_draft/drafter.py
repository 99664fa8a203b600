"""A DFlash drafter in PyTorch: a few layers that fill a block of masks in one pass.

What a drafter knows of the text so far are hidden states of the target: each layer makes keys and values of
them, and the block attends to those and to itself, in both directions. Embedding and output are the
target's. The layout is the one that llama.cpp reads as architecture `dflash` (src/models/dflash.cpp).
"""

from dataclasses import dataclass

import torch
from selector import Selector
from target import Shape, Target, rotation, turn_halves
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Plan:
    """What kind of drafter: `block` tokens at once (the known one in front), `layers` of its own.

    `taps` are the layers of the target whose input it sees; `mask` is the token that stands for a gap;
    `rank` and `candidates` are those of the selector, rank 0 = none.
    """

    block: int
    layers: int
    taps: tuple[int, ...]
    mask: int
    rank: int = 0
    candidates: int = 8


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

    def begin_from(self, block: dict[str, Tensor], query_size: Tensor, key_size: Tensor) -> None:
        """Takes over a layer of the target; what its first norm weighs goes into the matrices behind it."""
        weigh = block["attn_norm"].float()[None]
        self.attn_q.weight.copy_(self._halved(block["attn_q"]) * weigh)
        self.attn_k.weight.copy_(self._halved(block["attn_k"]) * weigh)
        self.attn_v.weight.copy_(block["attn_v"].float() * weigh)
        self.attn_q_norm.fill_(query_size)
        self.attn_k_norm.fill_(key_size)
        self.ffn_norm.copy_(block["ffn_norm"])
        for name in ("attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            getattr(self, name).weight.copy_(block[name])

    def _halved(self, matrix: Tensor) -> Tensor:
        """From heads whose neighbours are rotated against each other to heads whose halves are."""
        heads = matrix.float().view(-1, self.shape.head // 2, 2, matrix.shape[1])
        return heads.transpose(1, 2).reshape(matrix.shape)

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
        hidden: Tensor,
    ) -> Tensor:
        """One layer over the blocks.

        Args:
            stream: [batch, anchors * block, width].
            hidden: what of the context is behind an anchor, [batch, 1, anchors, 1, context].
        """
        batch, length, width = stream.shape
        normed = self._norm(stream, self.attn_norm)
        query = self.attn_q(normed).view(batch, length, self.shape.heads, self.shape.head)
        query = turn_halves(self._head_norm(query, self.attn_q_norm).transpose(1, 2), turns)
        key, value = self.keys_and_values(normed, turns)
        attended = self._attend(query, (key, value), context, hidden)
        stream = stream + self.attn_output(attended.reshape(batch, length, width))
        normed = self._norm(stream, self.ffn_norm)
        return stream + self.ffn_down(functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed))

    def _attend(
        self, query: Tensor, own: tuple[Tensor, Tensor], context: tuple[Tensor, Tensor], hidden: Tensor
    ) -> Tensor:
        """A block sees the context before it and itself, never another block: so no dense mask over all."""
        batch, heads, length, head = query.shape
        anchors, groups = hidden.shape[2], heads // self.shape.kv_heads
        block = length // anchors
        # Heads that share a key head are queries of it: [batch, key heads, anchors, groups * block, head].
        grouped = query.view(batch, -1, groups, anchors, block, head).transpose(2, 3).flatten(3, 4)
        grouped = grouped * head**-0.5
        own_key, own_value = (part.reshape(batch, -1, anchors, block, head) for part in own)
        before = (grouped.flatten(2, 3) @ context[0].transpose(-1, -2)).unflatten(2, (anchors, -1))
        scores = torch.cat((before.masked_fill_(hidden, -torch.inf), grouped @ own_key.transpose(-1, -2)), -1)
        shares = scores.softmax(-1)
        seen, inside = shares.split((scores.shape[-1] - block, block), -1)
        attended = (seen.flatten(2, 3) @ context[1]).unflatten(2, (anchors, -1)) + inside @ own_value
        return attended.unflatten(3, (groups, block)).permute(0, 2, 4, 1, 3, 5)

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
        self.selector = (
            Selector(shape.vocabulary, shape.width, plan.rank, plan.candidates) if plan.rank else None
        )

    def begin_from(self, target: Target, tokens: Tensor) -> None:
        """Begins with the target's last layers, over the input of the last layer that is seen.

        So the drafter knows from the start what is looked for in the text before, and what the output matrix
        wants; where it begins at random, it first learns that for a long time.

        Args:
            tokens: some text, for the sizes of hidden states, which differ a lot from layer to layer.
        """
        width = self.shape.width
        states = target.hidden_states(tokens, self.plan.taps)
        size = states.float().pow(2).mean((0, 1)).sqrt().clamp(min=1e-3)
        turns = rotation(torch.arange(tokens.shape[1], device=tokens.device), self.shape)
        stream = states[..., -width:]
        with torch.no_grad():
            self.fc.weight.div_(size[None])
            same = torch.eye(width, device=size.device)
            self.fc.weight[:, -width:] = same / size[-width:].pow(2).mean().sqrt()
            self.output_norm.copy_(target.output_norm)
            for layer, block in zip(self._each(), target.blocks[-self.plan.layers :], strict=True):
                query, key, _ = target.project(block, stream, turns)
                layer.begin_from(block, query.float().pow(2).mean().sqrt(), key.float().pow(2).mean().sqrt())

    def states(self, target: Target, known: Tensor, tokens: Tensor, anchors: Tensor, block: int) -> Tensor:
        """Normed states of what stands behind each anchor, [batch, anchors, block - 1, width].

        Args:
            known: hidden states of the target for these tokens.
            tokens: whole texts; the drafter sees nothing of them behind an anchor.
            anchors: positions of the last known tokens, [batch, anchors].
        """
        with self._fast(target):
            return self(target, self.context(known), anchors, tokens.gather(1, anchors), block)

    def draft(
        self, target: Target, context: list[tuple[Tensor, Tensor]], anchors: Tensor, first: Tensor
    ) -> Tensor:
        """What is proposed behind one anchor of each text, [batch, block - 1].

        Args:
            first: the tokens at the anchors, [batch].
        """
        with self._fast(target):
            states = self(target, context, anchors[:, None], first[:, None], self.plan.block)[:, 0]
        logits = states.to(target.dtype) @ target.output.T
        if self.selector is None:
            return logits.argmax(-1)
        return self.selector.choose(states, logits, first)

    @staticmethod
    def _fast(target: Target) -> torch.autocast:
        half = target.dtype == torch.bfloat16
        return torch.autocast(target.device.type, torch.bfloat16, enabled=half)

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
        slots = torch.arange(context[0][0].shape[2], device=anchors.device)
        hidden = (slots >= anchors[..., None])[:, None, :, None]
        stream = target.embedding[tokens.view(batch, count * block)].to(self.fc.weight.dtype)
        if torch.is_autocast_enabled(stream.device.type):
            stream = stream.to(torch.bfloat16)
        for layer, known in zip(self._each(), context, strict=True):
            stream = layer(stream, known, turns, hidden)
        stream = functional.rms_norm(
            stream, (self.shape.width,), self.output_norm.to(stream.dtype), self.shape.epsilon
        )
        return stream.view(batch, count, block, -1)[:, :, 1:]

    def _each(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]
