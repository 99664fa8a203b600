"""Which of the likeliest words goes behind which: what makes one draft of the guesses for a block (DFlash 2).

The layers fill all gaps of a block at once, so no gap knows what became of the one before it: "return" and
"None" may both be likely in two places, and "return return" comes of it. The selector adds to the logit of a
word how well it goes behind the word that was chosen before, a product of three short vectors: of the word
before, of the word, and of the state of the gap. It is a walk over a few candidates for each gap, so it costs
next to nothing.
"""

import torch
from target import Target
from torch import Tensor, nn


class Selector(nn.Module):
    """`rank` is the length of the vectors, `candidates` how many words of each gap are looked at."""

    def __init__(self, vocabulary: int, width: int, rank: int, candidates: int) -> None:
        super().__init__()
        self.candidates = candidates
        self.before = nn.Parameter(torch.zeros(vocabulary, rank))
        self.behind = nn.Parameter(torch.zeros(vocabulary, rank))
        self.gate = nn.Linear(width, rank, bias=False)
        nn.init.normal_(self.gate.weight, std=0.02)

    def begin_from(self, target: Target) -> None:
        """Words that the target embeds alike begin alike; what goes behind them is learned from nothing."""
        embedding = target.embedding.float()
        _, directions = torch.linalg.eigh(embedding.T @ embedding)
        main = embedding @ directions[:, -self.before.shape[1] :]
        with torch.no_grad():
            self.before.copy_(main / main.pow(2).mean(0).sqrt())

    def pull(self, states: Tensor, before: Tensor) -> Tensor:
        """What is looked for behind the words `before`, [..., rank]: times `behind` it is added to logits."""
        return self.before[before] * self.gate(states.float())

    def choose(self, states: Tensor, logits: Tensor, first: Tensor) -> Tensor:
        """The draft, [blocks, gaps].

        Args:
            states: [blocks, gaps, width].
            logits: [blocks, gaps, vocabulary].
            first: the known word before the first gap, [blocks].
        """
        values, words = logits.float().topk(self.candidates, -1)
        draft = []
        for gap in range(states.shape[1]):
            first = draft[-1] if draft else first
            pull = self.pull(states[:, gap], first)
            scores = values[:, gap] + (self.behind[words[:, gap]] @ pull[..., None])[..., 0]
            draft.append(words[:, gap].gather(1, scores.argmax(-1, keepdim=True))[:, 0])
        return torch.stack(draft, 1)
