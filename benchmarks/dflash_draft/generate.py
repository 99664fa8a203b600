"""Lets the target answer the prompts; the answers are what a drafter is trained on.

    python generate.py --target MODEL.gguf --prompts prompts.json --out data [--device cuda] [--count 8000]

Two thirds of the answers are greedy, the others drawn at temperature 0.7. Answers are written in parts, and
parts that are there already are not made again.
"""

import argparse
import json
import time
from pathlib import Path

import numpy
import torch
from target import Target

STOP = 2
"""`<|im_end|>`, which ends a turn."""

_GREEDY_SHARE = 2 / 3
_TEMPERATURE = 0.7
_WINDOW, _TIMES = 24, 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=8000, help="prompts to answer")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--new-tokens", type=int, default=384)
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no part after that, 0 = all")
    arguments = parser.parse_args()
    begin = time.monotonic()
    device = torch.device(arguments.device)
    target = Target(arguments.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    asked = json.loads(arguments.prompts.read_text("utf-8"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    answer(target, asked["held_out"], arguments.out / "held_out.npz", 0, 0.0, arguments.new_tokens)
    # Prompts of one length leave no gaps in a batch.
    prompts = sorted(asked["train"][: arguments.count], key=len)
    parts = [prompts[at : at + arguments.batch] for at in range(0, len(prompts), arguments.batch)]
    total = 0
    for number in numpy.random.default_rng(1).permutation(len(parts)):
        if arguments.seconds and time.monotonic() - begin > arguments.seconds:
            break
        path = arguments.out / f"part-{number:05}.npz"
        share = 1 - _GREEDY_SHARE
        total += answer(target, parts[number], path, int(number) + 1, share, arguments.new_tokens)
    print(f"{total} tokens of answers in {time.monotonic() - begin:.0f} s", flush=True)


def answer(
    target: Target, prompts: list[list[int]], path: Path, seed: int, drawn_share: float, new_tokens: int
) -> int:
    """Writes the answers to one part, unless it is there. The number of new tokens."""
    if path.exists():
        return 0
    drawn = numpy.random.default_rng(seed).random(len(prompts)) < drawn_share
    temperature = torch.tensor(numpy.where(drawn, _TEMPERATURE, 0.0), device=target.device).float()
    answers = [without_circles(one) for one in target.generate(prompts, new_tokens, temperature, STOP, seed)]
    rows = [prompt + reply for prompt, reply in zip(prompts, answers, strict=True)]
    unfinished = path.with_name(f"unfinished-{path.name}")
    numpy.savez(
        unfinished,
        tokens=numpy.concatenate([numpy.array(row, dtype=numpy.uint16) for row in rows]),
        lengths=numpy.array([len(row) for row in rows], dtype=numpy.int32),
        prompts=numpy.array([len(prompt) for prompt in prompts], dtype=numpy.int32),
    )
    unfinished.replace(path)
    return sum(map(len, answers))


def without_circles(tokens: list[int]) -> list[int]:
    """Cut where the same stretch comes for the third time: a small model in circles teaches nothing."""
    seen: dict[tuple[int, ...], int] = {}
    for end in range(_WINDOW, len(tokens)):
        stretch = tuple(tokens[end - _WINDOW : end])
        seen[stretch] = seen.get(stretch, 0) + 1
        if seen[stretch] >= _TIMES:
            return tokens[:end]
    return tokens


if __name__ == "__main__":
    main()
