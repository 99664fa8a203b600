"""The answers of the target, in memory: they are a few MB."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from torch import Tensor

_SHORTEST = 12


@dataclass(frozen=True, slots=True)
class Batch:
    """`tokens` [batch, length]; `anchors` [batch, blocks] are positions of the last known token."""

    tokens: Tensor
    anchors: Tensor


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

    def batches(self, size: int, length: int, blocks: int, seed: int) -> Iterator[Batch]:
        """For ever, in an order that `seed` decides."""
        random = numpy.random.default_rng(seed)
        while True:
            order = random.permutation(len(self.rows))
            for at in range(0, len(order) - size + 1, size):
                yield self._batch(order[at : at + size], length, blocks, random)

    def _batch(
        self, chosen: numpy.ndarray, length: int, blocks: int, random: numpy.random.Generator
    ) -> Batch:
        tokens = numpy.zeros((len(chosen), length), dtype=numpy.int64)
        anchors = numpy.zeros((len(chosen), blocks), dtype=numpy.int64)
        for row, index in enumerate(chosen):
            # A long prompt loses its beginning, so that there is always some answer to learn from.
            cut = max(0, min(self.starts[index] - length // 2, len(self.rows[index]) - length))
            text = self.rows[index][cut : cut + length]
            tokens[row, : len(text)] = text
            first = max(1, self.starts[index] - cut)
            anchors[row] = random.integers(first, max(first + 1, len(text) - 2), blocks)
        return Batch(torch.from_numpy(tokens), torch.from_numpy(anchors))
