"""How much of what a drafter proposes the target would accept, over answers that the target gave greedily.

python measure.py --target MODEL.gguf --data data --drafter drafter.pt
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import torch
from answers import Answers
from drafter import Drafter, Plan
from saved import load_drafter
from target import Target

_AT_ONCE = 24


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
    order = sorted(range(len(answers.rows)), key=lambda index: len(answers.rows[index]))
    asked, right = numpy.zeros(drafter.plan.block - 1), numpy.zeros(drafter.plan.block - 1)
    steps = produced = 0
    for at in range(0, len(order), _AT_ONCE):
        walks = [Walk(answers.rows[index], answers.starts[index]) for index in order[at : at + _AT_ONCE]]
        for walk, draft in _drafts(target, drafter, walks):
            accepted, gained, judged = walk.accept(draft)
            asked[:judged] += 1
            right[:accepted] += 1
            steps, produced = steps + 1, produced + gained
    by_position = [float(hits / times) if times else None for hits, times in zip(right, asked, strict=True)]
    return Acceptance(produced / max(1, steps), by_position, steps, produced)


@dataclass(slots=True)
class Walk:
    """Through one answer; `at` is the last token that is known so far."""

    row: numpy.ndarray
    at: int

    @property
    def done(self) -> bool:
        return self.at >= len(self.row) - 1

    def accept(self, draft: numpy.ndarray) -> tuple[int, int, int]:
        """Accepted tokens, tokens gained with the target's own, and positions that were looked at."""
        truth = self.row[self.at + 1 : self.at + 1 + len(draft)]
        accepted = int((draft[: len(truth)] == truth).cumprod().sum())
        gained = min(accepted + 1, len(self.row) - 1 - self.at)
        self.at += gained
        return accepted, gained, min(accepted + 1, len(truth))


def _drafts(target: Target, drafter: Drafter, walks: list[Walk]) -> Iterator[tuple[Walk, numpy.ndarray]]:
    """A draft for each answer that is not at its end, until all are; the walks are moved on meanwhile."""
    tokens = numpy.zeros((len(walks), max(len(walk.row) for walk in walks)), dtype=numpy.int64)
    for number, walk in enumerate(walks):
        tokens[number, : len(walk.row)] = walk.row
    known = target.hidden_states(torch.from_numpy(tokens).to(target.device), drafter.plan.taps)
    with torch.autocast(target.device.type, torch.bfloat16, enabled=target.dtype == torch.bfloat16):
        context = drafter.context(known)
    while going := [number for number, walk in enumerate(walks) if not walk.done]:
        chosen = torch.tensor(going, device=target.device)
        anchors = torch.tensor([walks[number].at for number in going], device=target.device)
        first = torch.from_numpy(tokens[going, [walks[number].at for number in going]]).to(target.device)
        seen = [(key[chosen], value[chosen]) for key, value in context]
        drafts = drafter.draft(target, seen, anchors, first).cpu().numpy()
        for number, draft in zip(going, drafts, strict=True):
            yield walks[number], draft


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--drafter", type=Path, required=True)
    parser.add_argument("--answers", default="held_out.npz", help="files of the data folder")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    target = Target(arguments.target, device)
    state = load_drafter(arguments.drafter, device)
    plan = state["plan"]
    drafter = Drafter(target.shape, Plan(**plan))
    drafter.load_state_dict(state["drafter"])
    print(json.dumps(asdict(measure(target, drafter.to(device), Answers(arguments.data, arguments.answers)))))


if __name__ == "__main__":
    main()
