"""What a conversation becomes when it is summed up: what is left out first, and what last, until it fits."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core import summing, trimming
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.core.trimming import cut
from agent.core.worklog import WorkLog

NOTES_SHARE = 1 / 16
"""Of the window, for the model's notes."""

_FACTS_SHARE = 0.06
_OPENING_SHARE = 0.4
_TAIL_SHARE = 1 / 8
_OWN_WORDS, _OWN_WORDS_CHARACTERS = 3, 300


@dataclass(frozen=True, slots=True)
class Shortened:
    """What a conversation becomes, in `tokens`, of which the first `counted` messages have `known` ones.

    `kept_from` is where its end was in the old one.
    """

    messages: list[Message]
    tokens: int
    known: int
    counted: int
    kept_from: int
    opening_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """A conversation that is to become shorter.

    `window` is in tokens, and `fixed` what the system text and the tools take of it. `ratio` is characters
    per token.
    """

    messages: list[Message]
    window: int
    ratio: float
    fixed: int
    log: WorkLog

    def within(self, target: int, notes: str, tail_start: int, cue: str, *, dense: float) -> Shortened | None:
        """The shorter conversation in at most `target` tokens: what is left out first comes first here.

        Args:
            notes: the model's own, empty where it gave none.
            tail_start: the index of the first message that stays behind the summary.
            dense: characters per token of what is not answered yet, which may be another kind of text.
            cue: what the model is told to go on with where nothing follows the summary.
        """
        messages, window, ratio, fixed = self.messages, self.window, self.ratio, self.fixed
        opening = summing.opening_of(messages[:tail_start])
        system = [one for one in opening if isinstance(one, SystemMessage)]
        said = [one for one in opening if not isinstance(one, SystemMessage)]
        tail = summing.tail_from(messages, tail_start)
        notes = notes or self._own_notes(messages[:tail_start])
        whole = trimming.tokens_of(said, ratio) <= window * _OPENING_SHARE
        facts = int(window * _FACTS_SHARE * ratio)
        for attempt in range(5):
            if attempt == 2 or (attempt == 0 and not whole):
                said = [summing.shorter_text(one, int(window * _TAIL_SHARE * ratio)) for one in said]
                whole = whole and said == opening[len(system) :]
            if attempt == 3:
                notes, facts = cut(notes, int(window * NOTES_SHARE * ratio)), facts // 2
            if attempt == 4:
                tail, notes = summing.tail_as_text(tail, notes, int(window * _TAIL_SHARE * ratio))
            shown = [text for one in (*said, *tail) for text in summing.said_in(one)]
            told = self.log.facts(first_is_kept=whole, characters=facts, shown=shown)
            summary = summing.summary_text(told, notes, "" if tail else cue)
            told_tokens = fixed + trimming.tokens_of([*said, UserMessage(summary)], ratio)
            excess = told_tokens + trimming.tokens_of(tail, dense) - target
            if attempt >= 1 and excess > 0:
                tail = trimming.with_shorter_results(tail, int(excess * dense) + 1)
            tokens = told_tokens + trimming.tokens_of(tail, dense)
            if tokens <= target:
                new: list[Message] = [*system, *said, UserMessage(summary), *tail]
                known = fixed + trimming.tokens_of(said, ratio)
                return Shortened(new, tokens, known, len(system) + len(said), tail_start, whole)
        return None

    def _own_notes(self, messages: Sequence[Message]) -> str:
        """Where the model gave no notes: the earlier ones, and what it said last."""
        texts = [one.text.strip() for one in messages if isinstance(one, AssistantMessage)]
        said = [text for text in texts if text and not text.startswith("{")][-_OWN_WORDS:]
        return "\n".join(filter(None, [self.log.notes, *(cut(one, _OWN_WORDS_CHARACTERS) for one in said)]))
