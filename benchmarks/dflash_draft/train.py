"""Trains a DFlash drafter on the target's own answers.

    python train.py --target MODEL.gguf --data data --out drafter.pt [--device cuda] [--seconds 3600]

A batch is a few answers; in each, blocks begin at random tokens of the answer. The drafter sees the target's
hidden states before a block and the block's first token, and has to name the tokens behind it. Positions
further back count less, because a draft is only used up to its first mistake. A run that was interrupted
goes on from its last checkpoint, with the batches that would have come.
"""

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from answers import Answers, Batch
from drafter import Drafter, Plan
from measure import measure
from saved import load_drafter
from states import States
from target import Target
from torch import Tensor
from torch.nn import functional

_CHECKPOINT_SECONDS = 120.0
_REPORT_STEPS = 20
_DECAY = 3.0
"""After so many positions a token is asked for e times less often."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--begin", type=Path, help="a drafter to go on with, .pt or .gguf")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="of work: processor time for each thread"
    )
    parser.add_argument("--steps", type=int, default=0, help="end after these and not after seconds")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=784)
    parser.add_argument("--blocks", type=int, default=96)
    parser.add_argument("--block", type=int, default=8)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--taps", default="2,9,16,23,29")
    parser.add_argument("--mask", type=int, default=5)
    parser.add_argument("--rank", type=int, default=32, help="of the selector, 0 = none")
    parser.add_argument("--others", type=int, default=2048, help="tokens in the loss that never occur")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--selector-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    device = torch.device(arguments.device)
    target = Target(arguments.target, device)
    answers = Answers(arguments.data, "part-*.npz")
    print(f"{len(answers.rows)} answers, {sum(map(len, answers.rows))} tokens", flush=True)
    Training(target, _drafter(target, answers, arguments), answers, arguments).run()


def _drafter(target: Target, answers: Answers, arguments: argparse.Namespace) -> Drafter:
    taps = tuple(int(word) for word in arguments.taps.split(","))
    plan = Plan(arguments.block, arguments.layers, taps, arguments.mask, arguments.rank)
    drafter = Drafter(target.shape, plan).to(target.device)
    if drafter.selector is not None:
        drafter.selector.begin_from(target)
    if arguments.begin:
        state = load_drafter(arguments.begin, target.device)
        # One that had no selector gets one.
        drafter.load_state_dict(state["drafter"], strict=False)
    else:
        sample = answers.batch(0, arguments.batch, arguments.length, 1, arguments.seed)
        drafter.begin_from(target, sample.tokens.to(target.device))
    return drafter


def _groups(drafter: Drafter, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The weights with the rates that they are learned at: a selector begins with next to nothing."""
    selector = list(drafter.selector.parameters()) if drafter.selector is not None else []
    of_selector = set(map(id, selector))
    others = [weight for weight in drafter.parameters() if id(weight) not in of_selector]
    matrices = [weight for weight in others if weight.dim() > 1]
    vectors = [weight for weight in others if weight.dim() == 1]
    groups = [
        {"params": matrices, "weight_decay": 0.01, "rate": arguments.rate},
        {"params": vectors, "weight_decay": 0.0, "rate": arguments.rate},
        {"params": selector, "weight_decay": 0.01, "rate": arguments.selector_rate},
    ]
    return [group for group in groups if group["params"]]


class Training:
    def __init__(
        self, target: Target, drafter: Drafter, answers: Answers, arguments: argparse.Namespace
    ) -> None:
        self.target, self.drafter, self.answers, self.arguments = target, drafter, answers, arguments
        self.states = States(target, answers, drafter.plan.taps, arguments.out.parent)
        occurring = torch.from_numpy(answers.vocabulary()).to(target.device)
        self.words = Words(occurring, target.shape.vocabulary, arguments.others)
        self.optimizer = torch.optim.AdamW(_groups(drafter, arguments), betas=(0.9, 0.95), fused=True)
        self.spent = 0.0
        self.step = 0

    def run(self) -> None:
        arguments = self.arguments
        self._resume()
        before, begin, saved = self.spent, self._clock(), time.monotonic()
        recent: list[Tensor] = []
        while self._share() < 1:
            recent.append(self._learn())
            self.spent = before + self._clock() - begin
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
        done = {"steps": self.step, "seconds": round(self.spent, 1)}
        report = {**asdict(result), **vars(arguments), **done}
        text = json.dumps(report, indent=1, default=str)
        print(text, flush=True)
        arguments.out.with_suffix(".json").write_text(text, encoding="utf-8")

    def _share(self) -> float:
        """Of the training, so far."""
        if self.arguments.steps:
            return self.step / self.arguments.steps
        return self.spent / self.arguments.seconds

    def _clock(self) -> float:
        """Seconds; on a processor those that it worked, so that nothing ends early on a busy machine."""
        if self.target.device.type == "cpu":
            return time.process_time() / torch.get_num_threads()
        return time.monotonic()

    def _learn(self) -> Tensor:
        arguments = self.arguments
        share_of_rate = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * self._share()))
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * share_of_rate * min(1.0, (self.step + 1) / 50)
        torch.manual_seed(arguments.seed * 1_000_003 + self.step)
        batch = self.answers.batch(
            self.step, arguments.batch, arguments.length, arguments.blocks, arguments.seed
        )
        known = self.states.of(batch)
        loss = loss_of(self.target, self.drafter, batch, known, self.words)
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


class Words:
    """The tokens that a loss is computed over: all that occur in the answers, and each time a few others.

    The whole vocabulary costs several times as much and hardly changes the sum in the softmax; the others
    that are drawn stand for those that are not.
    """

    def __init__(self, occurring: Tensor, vocabulary: int, others: int) -> None:
        self.occurring = occurring
        absent = torch.ones(vocabulary, dtype=torch.bool, device=occurring.device)
        absent[occurring] = False
        self._absent = absent.nonzero()[:, 0]
        self._others = min(others, len(self._absent))
        self._slots = torch.zeros(vocabulary, dtype=torch.long, device=occurring.device)
        self._slots[occurring] = torch.arange(len(occurring), device=occurring.device)

    def sample(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens, what to add to their logits, and where each occurring token is."""
        drawn = self._absent[torch.randint(len(self._absent), (self._others,), device=self._absent.device)]
        chosen = torch.cat((self.occurring, drawn))
        extra = torch.zeros(len(chosen), device=chosen.device)
        extra[len(self.occurring) :] = math.log(len(self._absent) / max(1, self._others))
        return chosen, extra, self._slots


def loss_of(target: Target, drafter: Drafter, batch: Batch, known: Tensor, words: Words) -> Tensor:
    """Cross entropy of the tokens behind the anchors, far ones drawn less often than near ones.

    Args:
        known: the target's hidden states for the tokens of the batch.
    """
    block = drafter.plan.block
    tokens, anchors = batch.tokens.to(target.device), batch.anchors.to(target.device)
    places = anchors[..., None] + torch.arange(1, block, device=tokens.device)
    labels = tokens.gather(1, places.clamp(max=tokens.shape[1] - 1).flatten(1)).view(places.shape)
    chances = torch.exp(-torch.arange(block - 1, device=tokens.device) / _DECAY)
    # 0 is what stands behind the end of an answer.
    asked = (places < tokens.shape[1]) & (labels > 0)
    asked &= torch.rand(labels.shape, device=tokens.device) < chances
    states = drafter.states(target, known, tokens, anchors, block)[asked]
    chosen, extra, slots = words.sample()
    logits = (states.to(target.dtype) @ target.output[chosen].T).float() + extra
    if drafter.selector is not None:
        before = tokens.gather(1, (places - 1).clamp(max=tokens.shape[1] - 1).flatten(1)).view(places.shape)
        pull = drafter.selector.pull(states, before[asked])
        logits = logits + pull @ drafter.selector.behind[chosen].T
    return functional.cross_entropy(logits, slots[labels[asked]])


if __name__ == "__main__":
    main()
