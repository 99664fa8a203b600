"""Lets the target answer the prompts; the answers are what a drafter is trained on.

    python generate.py --target MODEL.gguf --prompts prompts.json --out data [--device cuda] [--count 8000]

Two thirds of the answers are greedy, the others drawn at temperature 0.7. As soon as a few are through, the
next prompts take their places in the batch. Answers are written in parts; a run that was interrupted makes
those that are not yet there.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import torch
from target import Cache, Target
from torch import Tensor

STOP = 2
"""`<|im_end|>`, which ends a turn."""

_TEMPERATURE = 0.7
_CANDIDATES = 20
_WINDOW, _TIMES = 24, 3
_SORTED = 8
"""Batches of prompts that are sorted by length together."""
_PART = 64
"""Answers in a file."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--first", type=int, default=0, help="prompt to begin with")
    parser.add_argument("--count", type=int, default=8000, help="prompts to answer")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--drawn", type=float, default=1 / 3, help="share of answers that are not greedy")
    parser.add_argument("--new-tokens", type=int, default=384)
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no answer after that, 0 = all")
    arguments = parser.parse_args()
    begin = time.monotonic()
    target = Target(arguments.target, torch.device(arguments.device))
    asked = json.loads(arguments.prompts.read_text("utf-8"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    held_out = arguments.out / "held_out.npz"
    if not held_out.exists():
        open_answers = [Answer(number, prompt, None) for number, prompt in enumerate(asked["held_out"])]
        answered = write_answers(target, iter(open_answers), len(open_answers), arguments.new_tokens)
        _save(held_out, sorted(answered, key=lambda one: one.number))
    folder = Parts(arguments.out)
    total = 0

    def prompts() -> Iterator[Answer]:
        end = min(arguments.first + arguments.count, len(asked["train"]))
        for number in _in_order(asked["train"], arguments.first, end, _SORTED * arguments.batch):
            if arguments.seconds and time.monotonic() - begin > arguments.seconds:
                return
            if number not in folder.there:
                yield _asked(number, asked["train"][number], arguments.drawn)

    for answer in write_answers(target, prompts(), arguments.batch, arguments.new_tokens):
        total += len(answer.tokens)
        folder.add(answer)
    folder.flush()
    print(f"{total} tokens of answers in {time.monotonic() - begin:.0f} s", flush=True)


@dataclass(slots=True)
class Answer:
    """To one prompt. `chance` draws its tokens, None = always the likeliest one."""

    number: int
    prompt: list[int]
    chance: numpy.random.Generator | None
    tokens: list[int] = field(default_factory=list)
    seen: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add(self, token: int) -> bool:
        """Whether it ends here: by itself, or because a small model in circles teaches nothing."""
        self.tokens.append(token)
        stretch = tuple(self.tokens[-_WINDOW:])
        self.seen[stretch] = self.seen.get(stretch, 0) + 1
        return token == STOP or (len(stretch) == _WINDOW and self.seen[stretch] >= _TIMES)


def write_answers(target: Target, prompts: Iterator[Answer], rows: int, new_tokens: int) -> Iterator[Answer]:
    """Fills in the answers, `rows` at a time, and gives each away as soon as it is through."""
    cache = Cache(target, rows, 1)
    places: list[Answer | None] = [None] * rows
    last = torch.zeros(rows, dtype=torch.long, device=target.device)
    more = True
    while True:
        free = [row for row, answer in enumerate(places) if answer is None]
        if more and (len(free) >= max(1, rows // 8)):
            fresh = [answer for _, answer in zip(free, prompts, strict=False)]
            more = len(fresh) == len(free)
            for row, answer in zip(free, fresh, strict=False):
                places[row] = answer
                last[row] = answer.prompt[-1]
            if fresh:
                cache.reserve(max(len(answer.prompt) for answer in fresh) + new_tokens)
                target.read([answer.prompt for answer in fresh], cache, free[: len(fresh)])
        if all(answer is None for answer in places):
            return
        last = _choose(target.step(last, cache), places)
        for row, token in enumerate(last.tolist()):
            answer = places[row]
            if answer is not None and (answer.add(token) or len(answer.tokens) == new_tokens):
                places[row] = None
                cache.lengths[row] = 0
                yield answer


def _choose(logits: Tensor, places: Sequence[Answer | None]) -> Tensor:
    """The likeliest token of each row, or one drawn from the likeliest."""
    best = logits.argmax(-1)
    drawn = [(row, one.chance) for row, one in enumerate(places) if one is not None and one.chance]
    if not drawn:
        return best
    rows = torch.tensor([row for row, _ in drawn], device=logits.device)
    values, candidates = logits[rows].float().topk(_CANDIDATES, -1)
    sums = (values / _TEMPERATURE).softmax(-1).cumsum(-1)
    luck = torch.tensor([[chance.random()] for _, chance in drawn], device=logits.device)
    taken = (sums < luck).sum(-1, keepdim=True).clamp(max=_CANDIDATES - 1)
    best[rows] = candidates.gather(1, taken)[:, 0]
    return best


def _in_order(prompts: list[list[int]], first: int, end: int, window: int) -> Iterator[int]:
    """Numbers of prompts; neighbours are about as long, so that no row of a batch waits for a longer one."""
    for turn, begin in enumerate(range(first, end, window)):
        numbers = range(begin, min(begin + window, end))
        yield from sorted(numbers, key=lambda number: len(prompts[number]), reverse=turn % 2 == 1)


def _asked(number: int, prompt: list[int], drawn: float) -> Answer:
    chance = numpy.random.default_rng((1, number))
    return Answer(number, prompt, chance if chance.random() < drawn else None)


class Parts:
    """The files of answers in a folder. `there` are the numbers of the prompts that have one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[Answer] = []
        self.there: set[int] = set()
        for path in folder.glob("part-*.npz"):
            self.there.update(numpy.load(path)["numbers"].tolist())

    def add(self, answer: Answer) -> None:
        self._waiting.append(answer)
        if len(self._waiting) == _PART:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            _save(self._folder / f"part-{self._waiting[0].number:06}.npz", self._waiting)
        self._waiting = []


def _save(path: Path, answers: Sequence[Answer]) -> None:
    rows = [answer.prompt + answer.tokens for answer in answers]
    unfinished = path.with_name(f"unfinished-{path.name}")
    numpy.savez(
        unfinished,
        tokens=numpy.concatenate([numpy.array(row, dtype=numpy.uint16) for row in rows]),
        lengths=numpy.array([len(row) for row in rows], dtype=numpy.int32),
        prompts=numpy.array([len(answer.prompt) for answer in answers], dtype=numpy.int32),
        numbers=numpy.array([answer.number for answer in answers], dtype=numpy.int32),
    )
    unfinished.replace(path)


if __name__ == "__main__":
    main()
