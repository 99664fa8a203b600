"""The answers of the target, in memory: they are a few MB."""

from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from torch import Tensor

_SHORTEST = 12


@dataclass(frozen=True, slots=True)
class Batch:
    """`tokens` [batch, length]; `anchors` [batch, blocks] are positions of the last known token.

    `texts` are the numbers of the answers, each with how much of its beginning is left out.
    """

    tokens: Tensor
    anchors: Tensor
    texts: list[tuple[int, int]]


class Answers:
    """`rows` are prompts with their answers, `starts` where in them the answers begin."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self.rows: list[numpy.ndarray] = []
        self.starts: list[int] = []
        for path in sorted(folder.glob(pattern)):
            part = numpy.load(path)
            ends = numpy.cumsum(part["lengths"])
            for end, length, prompt in zip(ends, part["lengths"], part["prompts"], strict=True):
                if length - prompt >= _SHORTEST:
                    self.rows.append(part["tokens"][end - length : end].astype(numpy.int64))
                    self.starts.append(int(prompt))

    def batch(self, number: int, size: int, length: int, blocks: int, seed: int) -> Batch:
        """One of an endless row of batches, always the same for the same `number` and `seed`."""
        size = min(size, len(self.rows))
        rounds, at = divmod(number, len(self.rows) // size)
        order = numpy.random.default_rng((seed, rounds)).permutation(len(self.rows))
        chosen = order[at * size : (at + 1) * size]
        return self._batch(chosen, length, blocks, numpy.random.default_rng((seed, rounds, at)))

    def _batch(
        self, chosen: numpy.ndarray, length: int, blocks: int, random: numpy.random.Generator
    ) -> Batch:
        texts, cuts = [], []
        anchors = numpy.zeros((len(chosen), blocks), dtype=numpy.int64)
        for row, index in enumerate(chosen):
            # A long prompt loses its beginning, so that there is always some answer to learn from.
            cut = max(0, min(self.starts[index] - length // 2, len(self.rows[index]) - length))
            cuts.append((int(index), cut))
            texts.append(self.rows[index][cut : cut + length])
            first = max(1, self.starts[index] - cut)
            places = numpy.arange(first, max(first + 1, len(texts[-1]) - 2))
            # Each place once before any comes a second time.
            rounds = [random.permutation(places) for _ in range(-(-blocks // len(places)))]
            anchors[row] = numpy.concatenate(rounds)[:blocks]
        tokens = numpy.zeros((len(texts), max(map(len, texts))), dtype=numpy.int64)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
        return Batch(torch.from_numpy(tokens), torch.from_numpy(anchors), cuts)

    def vocabulary(self) -> numpy.ndarray:
        """The tokens that occur, in order."""
        return numpy.unique(numpy.concatenate(self.rows))
