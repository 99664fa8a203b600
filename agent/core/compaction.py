"""A conversation that is about to fill its context window made short, in the middle of a turn or between two.

The summary is asked for as one more turn on the prompt that the server has in its cache. Results that the
model has not read yet are no part of that request, and follow the summary whole. What is left then is the
opening of the conversation, which is cached too, the facts from our own record, the model's notes, and what
is not answered yet.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from agent.core import leaving_out, summing, trimming
from agent.core.asking import asking_within
from agent.core.cancel import closing
from agent.core.events import (
    CompactionFinished,
    CompactionStarted,
    Event,
    Notice,
    Prefill,
    PrefixBroken,
    Retry,
)
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage
from agent.core.model import Model, Reply
from agent.core.shortening import NOTES_SHARE, Shortened, Shortening
from agent.core.stats import StepStats
from agent.core.turn import Conversation, CountRequest, FixedPart
from agent.core.worklog import WorkLog

CAUSE = "compaction"
CountTokens = Callable[[str], Awaitable[int | None]]
"""Tokens of a text as the server counts them, None where it does not."""

WordRequest = Callable[[int, str], str]
"""The request for a summary of at most so many words; the text is what a person wants kept above all."""

_MOST_NOTES, _LEAST_NOTES = 1_024, 160
_REQUEST_TOKENS = 240
_MARGIN_TOKENS = 32
_WORDS_PER_TOKEN = 0.6
_LEAST_REPLY_SHARE = 1 / 8
_MOST_LEFT = 0.7
"""At most this share of the tokens is left after a compaction, or it was none."""

_RESULT_SHARE = 0.4
_MOST_RESULT_CHARACTERS = 16_000
_TRIES = 3


class Compactor:
    """Keeps a conversation within the context window of its slot. One for each turn.

    `cannot_fit` says, once it is set, why no further request is possible.
    """

    def __init__(
        self,
        model: Model,
        *,
        share: float,
        word_request: WordRequest,
        reply_tokens: int,
        log: WorkLog,
        count: CountTokens | None = None,
        count_request: CountRequest | None = None,
    ) -> None:
        """`share` of the window is where a compaction begins, `reply_tokens` the most for a reply."""
        self.cannot_fit = ""
        self._model = model
        self._share = share
        self._word_request = word_request
        self._reply_tokens = reply_tokens
        self._log = log
        self._count = count
        self._fixed = FixedPart(count_request)
        self._limit = 0
        self._wanted = False
        self._is_fresh = False
        self._refused: tuple[int, int] | None = None
        self._conversation = Conversation()
        self._turn_start: int | None = None
        self._size = 0
        self._new_ratio = 0.0

    def begin_turn(self, start: int) -> None:
        """A turn begins with the message that will be at `start`: the results before it may be left out."""
        self._turn_start = start

    def observe(self, event: Event) -> None:
        """Sees every event of the turn."""
        self._log.observe(event)

    def replied(self) -> None:
        """The model has made a step that is to be seen, so that there may be another compaction."""
        self._is_fresh = False
        self._refused = None

    def want_room(self) -> bool:
        """Has a compaction made before the next request; False if the last one has brought nothing."""
        self._wanted = not self._is_fresh
        return self._wanted

    @property
    def has_what_to_sum_up(self) -> bool:
        """Whether something stands before what has to stay, so that a compaction could make room."""
        return bool(summing.tail_starts(self._conversation.messages, self._turn_start))

    @property
    def wants_room(self) -> bool:
        """Whether there is to be a compaction before the next request."""
        return self._wanted

    def overflowed(self, told: int, prompt: int = 0) -> bool:
        """Learns from a server that refused a prompt as too long; False if there is no way to go on.

        `told` is the size of the context that the server says it has, `prompt` that of what it refused; 0 if
        it does not say. Right after a compaction only results can be cut that nobody has read yet. The same
        request, refused again with the same words, is not sent a third time.
        """
        refused = len(self._conversation.messages), told
        if refused == self._refused:
            return False
        self._refused = refused
        if prompt:
            self._conversation.tokens = self._size = prompt
            self._conversation.measured = len(self._conversation.messages)
        size = max(self._size, trimming.least_tokens(self._conversation.messages))
        known = min(self._window or size, size) or 1
        self._limit = min(told, self._window or told) if told else known * 3 // 4
        conversation = self._conversation
        conversation.requested = min(conversation.requested, summing.answered(conversation.messages))
        if not self._is_fresh:
            return self.want_room()
        before = list(conversation.messages)
        self._cut_results(conversation, self._window)
        conversation.tokens = self._size
        return conversation.messages != before

    async def is_full(self, conversation: Conversation) -> bool:
        """Whether there has to be a compaction before anything is added."""
        self._conversation = conversation
        self._size = await self._measure(conversation)
        return bool(self._window) and self._size > self._trigger(self._window)

    def reply_room(self) -> int:
        """The most tokens for the next reply, so that a request for a summary still fits after it."""
        if not self._window:
            return self._reply_tokens
        free = self._window - self._size - _MARGIN_TOKENS
        kept_free = free - self._summary_room(self._window)
        return max(1, min(self._reply_tokens, kept_free if kept_free >= self._least_reply() else free))

    def result_limit(self) -> int:
        """The most characters of a tool's result: it has to fit at least after a compaction."""
        window = self._window
        if not window:
            return _MOST_RESULT_CHARACTERS
        conversation = self._conversation
        ratio = min(conversation.characters_per_token, 3.0)
        waiting = conversation.messages[summing.answered(conversation.messages) :]
        last = conversation.messages[summing.tail_start(conversation.messages) :]
        fixed = self._fixed.tokens(conversation) + self._summary_room(window) + self._least_reply()
        short = window * _MOST_LEFT - fixed - trimming.tokens_of(last, ratio)
        now = (
            window * self._share - self._size_after_reply() - trimming.tokens_of(waiting, ratio)
        )  # what fits without a compaction
        return max(0, min(_MOST_RESULT_CHARACTERS, int(max(now, short) * _RESULT_SHARE * ratio)))

    async def make_room(self, conversation: Conversation, cue: str = "") -> AsyncIterator[Event]:
        """Before each request: a compaction if there has to be one, else nothing.

        `cue` is the last line for a model that needs to be told what to do next. See `cannot_fit`.
        """
        self._conversation = conversation
        window = self._window
        self._size = await self._measure(conversation)
        if not window or not (self._wanted or self._size > self._trigger(window)):
            return
        wanted, self._wanted = self._wanted, False
        if not self._is_fresh and await self.leave_out(conversation):
            yield PrefixBroken(cause=leaving_out.CAUSE)
        elif not self._is_fresh and self.has_what_to_sum_up:
            async with closing(self.compact(conversation, cue=cue)) as events:
                async for event in events:
                    yield event
        elif wanted or self._size + self._least_reply() > window:
            self._cut_results(conversation, window)
        if self._size + min(self._least_reply(), _LEAST_NOTES) > window and not self.cannot_fit:
            self.cannot_fit = await self._why_not(conversation, window)

    async def leave_out(self, conversation: Conversation) -> bool:
        """Leaves out results of earlier turns, where that does what a summary would do for less.

        Call `is_full` before. The server has to read again what stands behind the first of them.
        """
        window = self._window
        if not window:
            return False
        most = min(self._size * _MOST_LEFT, self._trigger(window) - leaving_out.least_gain(window))
        start = self._turn_start
        cut = await leaving_out.one_cut(
            conversation.messages,
            turn_start=len(conversation.messages) if start is None else start,
            to_free=self._size - int(most),
            most_again=_REQUEST_TOKENS + self._notes_tokens(window),
            ratio=conversation.characters_per_token,
            count=self._count,
        )
        if cut is None:
            return False
        left, measured = conversation.tokens - cut.saved, conversation.measured
        conversation.begin_again(cut.messages, leaving_out.CAUSE)
        if left > 0:
            conversation.tokens, conversation.measured = left, measured
        self._size, self._is_fresh = self._size - cut.saved, True
        return True

    @property
    def size(self) -> int:
        """Tokens of the conversation as they were measured last."""
        return self._size

    async def compact(
        self,
        conversation: Conversation,
        *,
        instruction: str = "",
        by_hand: bool = False,
        keep_from: int | None = None,
        cue: str = "",
    ) -> AsyncIterator[Event]:
        """Makes the conversation short; the last `CompactionFinished` says what came of it.

        Without `by_hand` a model that gives no summary is no reason to stop: the record has to do then, and
        at most 70 % of the tokens may be left. `keep_from` is where the turns begin that stay as they are.
        """
        self._conversation = conversation
        await self._fixed.learn(conversation)
        before = self._size = await self._measure(conversation)
        # Of a window that nobody knows at least this much is certain: the server has taken the last prompt.
        window = self._window or before + self._summary_room(before)
        yield CompactionStarted(before=before, automatic=not by_hand)
        notes, problem, stats = "", "no request for a summary fits", StepStats()
        async with closing(self._ask(conversation, window, instruction)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    notes, problem, stats = *summing.notes_of(item), item.stats
                else:
                    yield item
        if problem == "interrupted" or (problem and by_hand):
            yield CompactionFinished(before=before, after=before, detail=problem, stats=stats)
            return
        target = before - 1 if by_hand else int(min(before * _MOST_LEFT, self._most_after(window)))
        starts = summing.tail_starts(conversation.messages, self._turn_start)
        found = None
        for tail in starts if keep_from is None else (keep_from,):
            found = found or await self._shortened(conversation, notes, tail, target, window, cue)
        if found is None:
            self.cannot_fit = "" if by_hand else await self._why_not(conversation, window)
            detail = self.cannot_fit or "the summary would be no shorter"
            yield CompactionFinished(before=before, after=before, detail=detail, stats=stats)
            return
        summary = next(one.text for one in found.messages if summing.is_summary(one))
        conversation.shorten(found.messages, found.kept_from, CAUSE)
        self._turn_start = 0
        conversation.tokens, conversation.measured = found.known, found.counted
        self._size, self._is_fresh = found.tokens, True
        yield CompactionFinished(
            before=before,
            after=found.tokens,
            summary=summary,
            opening_kept=found.opening_kept,
            stats=stats,
        )
        yield PrefixBroken(cause=CAUSE)

    @property
    def _window(self) -> int:
        promised = max(0, self._model.context_tokens)
        return min(promised, self._limit) if promised and self._limit else promised or self._limit

    def _notes_tokens(self, window: int) -> int:
        return int(max(_LEAST_NOTES, min(_MOST_NOTES, window * NOTES_SHARE)))

    def _reply_to_request(self, window: int) -> int:
        """What the notes may take; a model that thinks does so before it notes anything."""
        thinks = any(
            isinstance(one, AssistantMessage) and one.reasoning for one in self._conversation.messages
        )
        return self._notes_tokens(window) * (2 if thinks else 1)

    def _summary_room(self, window: int) -> int:
        return self._reply_to_request(window) + _REQUEST_TOKENS + _MARGIN_TOKENS

    def _least_reply(self) -> int:
        if not self._window:
            return self._reply_tokens
        return min(self._reply_tokens, int(self._window * _LEAST_REPLY_SHARE))

    def _most_after(self, window: int) -> int:
        return window - self._least_reply() - self._summary_room(window)

    def _trigger(self, window: int) -> int:
        """Beyond so many tokens there is a compaction before the next request."""
        return int(min(window * self._share, self._most_after(window)))

    def _surely_fits(self) -> int:
        """So many tokens leave room for a whole reply and a request for a summary after it."""
        window = self._window
        whole = window - self._reply_tokens - self._summary_room(window) - _MARGIN_TOKENS
        return min(self._trigger(window), whole)

    async def _measure(self, conversation: Conversation) -> int:
        """Tokens of the conversation as it stands, counted by the server where it could become too many."""
        ratio = conversation.characters_per_token
        new = conversation.messages[conversation.measured :]
        self._new_ratio = ratio
        known = conversation.tokens or self._fixed.tools(conversation)
        about = known + trimming.tokens_of(new, ratio)
        text = "\n".join(map(trimming.text_of, new))
        most = known + len(text.encode("utf-8", "replace")) + trimming.MESSAGE_TOKENS * len(new)
        if not (text and self._window) or most <= self._surely_fits():
            return about
        counted = await self._count(text) if self._count else None
        if counted is None:
            counted = max(trimming.careful_estimate(text), round(len(text) / ratio))
        self._new_ratio = len(text) / max(1, counted)
        if not conversation.tokens:
            conversation.characters_per_token = min(ratio, self._new_ratio)
            await self._fixed.learn(conversation)
            known = self._fixed.tools(conversation)
        return known + counted + trimming.MESSAGE_TOKENS * len(new)

    def _size_after_reply(self) -> int:
        return self._conversation.tokens or self._size

    async def _ask(
        self, conversation: Conversation, window: int, instruction: str
    ) -> AsyncIterator[Prefill | Retry | Notice | Reply]:
        """The request for the notes and its reply. Nothing at all where no request would fit."""
        most = self._reply_to_request(window)
        request = self._word_request(int(self._notes_tokens(window) * _WORDS_PER_TOKEN), instruction)
        fixed, room = self._fixed.tokens(conversation), window - most - _MARGIN_TOKENS
        messages = asking_within(conversation, request, fixed=fixed, room=room)
        if messages is None:
            return
        offer = Offer(tools=frozenset({"finish"}))
        async with closing(self._model.generate(messages, max_tokens=most, offer=offer)) as items:
            async for item in items:
                if isinstance(item, Prefill | Retry | Notice | Reply):
                    yield item

    async def _shortened(
        self, conversation: Conversation, notes: str, tail_start: int, target: int, window: int, cue: str
    ) -> Shortened | None:
        """The shorter conversation, counted where an estimate may be wrong; None if there is none."""
        ratio = conversation.characters_per_token
        shortening = Shortening(
            messages=conversation.messages,
            window=window,
            ratio=ratio,
            fixed=self._fixed.tokens(conversation),
            log=self._log,
        )
        wanted = target
        for _ in range(_TRIES):
            dense = min(ratio, self._new_ratio)  # each measurement knows it better
            found = shortening.within(wanted, notes, tail_start, cue, dense=dense)
            if found is None:
                return None
            trial = Conversation(messages=found.messages, tokens=found.known, measured=found.counted)
            trial.characters_per_token = conversation.characters_per_token
            tokens = await self._measure(trial)
            if tokens <= target:
                return replace(found, tokens=tokens)
            wanted -= tokens - target
        return None

    def _cut_results(self, conversation: Conversation, window: int) -> None:
        """Cuts what the model has not read yet, where there is no other way to make it fit."""
        hot = max(summing.answered(conversation.messages), conversation.requested)
        excess = self._size + self._least_reply() + _MARGIN_TOKENS - window
        if excess <= 0:
            return
        ratio = min(conversation.characters_per_token, self._new_ratio)
        characters = int(excess * ratio) + 1
        tail = conversation.messages[hot:]
        shorter = trimming.with_shorter_results(tail, characters)
        if shorter == tail:
            return
        self._size -= trimming.tokens_of(tail, ratio) - trimming.tokens_of(shorter, ratio)
        conversation.amend(shorter)

    async def _why_not(self, conversation: Conversation, window: int) -> str:
        await self._fixed.learn(conversation)
        fixed, ratio = self._fixed.tokens(conversation), conversation.characters_per_token
        items = trimming.largest_items(conversation.messages, fixed, ratio)
        what = f"cannot fit into {window} tokens of context"
        if self._size + self._least_reply() <= window:
            what = f"takes {self._size} of {window} tokens of context and cannot become much shorter"
        return f"the conversation {what}; the largest items are {items}"
