"""How much of what a drafter proposes the target would accept, over answers that the target gave greedily.

python measure.py --target MODEL.gguf --data data --drafter drafter.pt
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import torch
from answers import Answers
from drafter import Drafter, Plan
from target import Target

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Acceptance:
    """`mean_accepted_length` is tokens per step of the target, its own one included.

    `by_position` says for each position of a draft how often it was accepted where all before it were.
    """

    mean_accepted_length: float
    by_position: list[float | None]
    target_steps: int
    tokens: int


@torch.no_grad()
def measure(target: Target, drafter: Drafter, answers: Answers) -> Acceptance:
    """Walks through each answer as the server would, from one accepted draft to the next."""
    block = drafter.plan.block
    asked, right = numpy.zeros(block - 1), numpy.zeros(block - 1)
    steps = produced = 0
    for row, start in zip(answers.rows, answers.starts, strict=True):
        guesses = _guesses(target, drafter, row, start)
        at = start
        while at < len(row) - 1:
            truth = row[at + 1 : at + block]
            accepted = int((guesses[at - start][: len(truth)] == truth).cumprod().sum())
            asked[: min(accepted + 1, len(truth))] += 1
            right[:accepted] += 1
            gained = min(accepted + 1, len(row) - 1 - at)
            steps, produced, at = steps + 1, produced + gained, at + gained
    by_position = [float(hits / times) if times else None for hits, times in zip(right, asked, strict=True)]
    return Acceptance(produced / max(1, steps), by_position, steps, produced)


def _guesses(target: Target, drafter: Drafter, row: numpy.ndarray, start: int) -> numpy.ndarray:
    """What would be drafted behind each token of an answer."""
    tokens = torch.from_numpy(row)[None].to(target.device)
    anchors = torch.arange(start, len(row) - 1, device=target.device)[None]
    drafts = [
        drafter.logits(target, tokens, anchors[:, at : at + _AT_ONCE], drafter.plan.block).argmax(-1)[0].cpu()
        for at in range(0, anchors.shape[1], _AT_ONCE)
    ]
    return torch.cat(drafts).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--drafter", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    target = Target(arguments.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    state = torch.load(arguments.drafter, map_location=device, weights_only=True)
    plan = state["plan"]
    drafter = Drafter(target.shape, Plan(plan["block"], plan["layers"], tuple(plan["taps"]), plan["mask"]))
    drafter.load_state_dict(state["drafter"])
    print(json.dumps(asdict(measure(target, drafter.to(device), Answers(arguments.data, "held_out.npz")))))


if __name__ == "__main__":
    main()
