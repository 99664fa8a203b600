"""Trains a DFlash drafter on the target's own answers.

    python train.py --target MODEL.gguf --data data --out drafter.pt [--device cuda] [--seconds 3600]

A batch is a few answers; in each, blocks begin at random tokens of the answer. The drafter sees the target's
hidden states before a block and the block's first token, and has to name the tokens behind it. Positions
further back count less, because a draft is only used up to its first mistake. A run that was interrupted
goes on from its last checkpoint.
"""

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path

import torch
from answers import Answers, Batch
from drafter import Drafter, Plan
from measure import measure
from target import Target
from torch import Tensor
from torch.nn import functional

_CHECKPOINT_SECONDS = 120.0
_REPORT_STEPS = 200
_DECAY = 4.0
"""After so many positions a prediction counts e times less."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--block", type=int, default=8)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--taps", default="2,9,16,23,29")
    parser.add_argument("--mask", type=int, default=5)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    device = torch.device(arguments.device)
    target = Target(arguments.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    taps = tuple(int(word) for word in arguments.taps.split(","))
    plan = Plan(arguments.block, arguments.layers, taps, arguments.mask)
    drafter = Drafter(target.shape, plan).to(device)
    answers = Answers(arguments.data, "part-*.npz")
    print(f"{len(answers.rows)} answers, {sum(map(len, answers.rows))} tokens", flush=True)
    Training(target, drafter, answers, arguments).run()


class Training:
    def __init__(
        self, target: Target, drafter: Drafter, answers: Answers, arguments: argparse.Namespace
    ) -> None:
        self.target, self.drafter, self.answers, self.arguments = target, drafter, answers, arguments
        matrices = [weight for weight in drafter.parameters() if weight.dim() > 1]
        vectors = [weight for weight in drafter.parameters() if weight.dim() == 1]
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=arguments.rate, betas=(0.9, 0.95))
        self.spent = 0.0
        self.step = 0

    def run(self) -> None:
        arguments = self.arguments
        self._resume()
        batches = self.answers.batches(
            arguments.batch, arguments.length, arguments.blocks, arguments.seed + self.step
        )
        before = self.spent
        begin = saved = time.monotonic()
        recent: list[Tensor] = []
        while self.spent < arguments.seconds:
            recent.append(self._learn(next(batches)))
            self.spent = before + time.monotonic() - begin
            self.step += 1
            if self.step % _REPORT_STEPS == 0:
                loss = torch.stack(recent).mean().item()
                print(f"step {self.step} {self.spent:.0f} s loss {loss:.3f}", flush=True)
                recent.clear()
            if time.monotonic() - saved > _CHECKPOINT_SECONDS:
                self._save()
                saved = time.monotonic()
        self._save()
        held_out = Answers(arguments.data, "held_out.npz")
        result = measure(self.target, self.drafter, held_out)
        report = {**asdict(result), "steps": self.step, "seconds": round(self.spent, 1), **vars(arguments)}
        text = json.dumps(report, indent=1, default=str)
        print(text, flush=True)
        arguments.out.with_suffix(".json").write_text(text, encoding="utf-8")

    def _learn(self, batch: Batch) -> Tensor:
        share = min(1.0, self.spent / self.arguments.seconds)
        rate = self.arguments.rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate * min(1.0, (self.step + 1) / 100)
        if self.step == 0:
            states, _ = self.target.hidden_states(batch.tokens.to(self.target.device), self.drafter.plan.taps)
            self.drafter.begin_from(self.target, states)
        loss = loss_of(self.target, self.drafter, batch, self.arguments.block)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.drafter.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def _save(self) -> None:
        unfinished = self.arguments.out.with_suffix(".tmp")
        state = {
            "plan": asdict(self.drafter.plan),
            "drafter": self.drafter.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "spent": self.spent,
            "step": self.step,
        }
        torch.save(state, unfinished)
        unfinished.replace(self.arguments.out)

    def _resume(self) -> None:
        if not self.arguments.out.exists():
            return
        state = torch.load(self.arguments.out, map_location=self.target.device, weights_only=True)
        self.drafter.load_state_dict(state["drafter"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.spent, self.step = state["spent"], state["step"]
        print(f"going on at step {self.step}, after {self.spent:.0f} s", flush=True)


def loss_of(target: Target, drafter: Drafter, batch: Batch, block: int) -> Tensor:
    """Cross entropy of the tokens behind the anchors, near ones counting more."""
    tokens, anchors = batch.tokens.to(target.device), batch.anchors.to(target.device)
    places = anchors[..., None] + torch.arange(1, block, device=tokens.device)
    inside = places < tokens.shape[1]
    labels = tokens.gather(1, places.clamp(max=tokens.shape[1] - 1).flatten(1)).view(places.shape)
    logits = drafter.logits(target, tokens, anchors, block)
    weights = torch.exp(-torch.arange(block - 1, device=tokens.device) / _DECAY).expand(labels.shape)
    # 0 is what stands behind the end of an answer.
    weights = weights * inside * (labels > 0)
    losses = functional.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), reduction="none")
    return (losses.view(labels.shape) * weights).sum() / weights.sum()


if __name__ == "__main__":
    main()
