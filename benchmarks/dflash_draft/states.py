"""What the target makes of the answers, computed once and kept on disk.

On a processor it would else be half of the work.
"""

import tempfile
from pathlib import Path

import numpy
import torch
from answers import Answers, Batch
from target import Target
from torch import Tensor


class States:
    """Hidden states for a drafter, 2 bytes a number: 5.8 KB for each token and five layers of 576.

    The file is gone when the process is; a run that goes on computes them again as it needs them.
    """

    def __init__(self, target: Target, answers: Answers, taps: tuple[int, ...], folder: Path) -> None:
        self._target, self._answers, self._taps = target, answers, taps
        # A GPU computes them faster than they are read.
        self._keeps = target.device.type == "cpu"
        self._ends = numpy.cumsum([len(row) for row in answers.rows])
        self._there = numpy.zeros(len(answers.rows), dtype=bool)
        if self._keeps:
            size = (int(self._ends[-1]), len(taps) * target.shape.width)
            with tempfile.TemporaryFile(dir=folder) as file:
                self._kept = numpy.memmap(file, numpy.int16, "w+", shape=size)

    def of(self, batch: Batch) -> Tensor:
        """[batch, length, taps * width], as `Target.hidden_states` gives them."""
        if not self._keeps:
            return self._target.hidden_states(batch.tokens.to(self._target.device), self._taps)
        known = torch.zeros(*batch.tokens.shape, self._kept.shape[1], dtype=torch.bfloat16)
        for row, (index, cut) in enumerate(batch.texts):
            states = self._of_answer(index)[cut : cut + batch.tokens.shape[1]]
            known[row, : len(states)] = torch.from_numpy(states.copy()).view(torch.bfloat16)
        return known.to(self._target.dtype)

    def _of_answer(self, index: int) -> numpy.ndarray:
        row = self._answers.rows[index]
        kept = self._kept[self._ends[index] - len(row) : self._ends[index]]
        if not self._there[index]:
            states = self._target.hidden_states(torch.from_numpy(row)[None], self._taps)[0]
            kept[:] = states.to(torch.bfloat16).view(torch.int16).numpy()
            self._there[index] = True
        return kept
