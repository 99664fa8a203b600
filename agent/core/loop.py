"""The turn loop: an async generator that takes a prompt and yields typed events until the turn is over."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from agent.core.cancel import InterruptedRunError, closing, halting, unless_cancelled
from agent.core.events import (
    AssistantReplied,
    CompactionFinished,
    CompactionStarted,
    Event,
    Notice,
    PrefixBroken,
    StepFinished,
    StepStarted,
    ToolFinished,
    TurnFinished,
    UserMessageAdded,
)
from agent.core.guide import Offer
from agent.core.inbox import Said
from agent.core.limits import CallLimit, TimeLimit, TurnState
from agent.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, broken_off
from agent.core.model import ModelItem, Reply
from agent.core.stats import StepStats, total
from agent.core.turn import Conversation, Ending, TurnServices
from agent.core.verifier import Verdict

Item = TypeVar("Item")

FINISH_TOOL = "finish"
BAD_REPLIES_ALLOWED = 3
FAILED_FINISHES_ALLOWED = 3
REPEATED_CALL = "The same call stands in this reply already. It was run once."


async def run_turn(
    conversation: Conversation, prompt: str | Said, services: TurnServices
) -> AsyncIterator[Event]:
    """Runs one turn, from a person's prompt to the model's closing answer.

    Yields the events of the turn; `TurnFinished` is always the last one.
    """
    deadline = next((guard for guard in services.guards if isinstance(guard, TimeLimit)), None)
    async with halting(services.cancel, deadline.remaining if deadline else None) as halt:
        turn = _Turn(conversation, services, halt, deadline)
        if conversation.lacks_reply:
            yield PrefixBroken(cause="the last request has no reply in the conversation")
        said = prompt if isinstance(prompt, Said) else Said(prompt, prompt)
        if services.compactor:
            services.compactor.begin_turn(len(conversation.messages))
        conversation.add(UserMessage(said.told, said.pictures))
        added = UserMessageAdded(text=said.text, is_note=said.is_note)
        if services.compactor:
            services.compactor.observe(added)
        yield added
        while not turn.stopped():
            async with closing(turn.step()) as events:
                async for event in events:
                    if services.guide:
                        services.guide.observe(event)
                    if services.compactor:
                        services.compactor.observe(event)
                    yield event
    yield turn.finished()


class _Turn:
    """The state of one running turn; each method is one phase of a step.

    `halt` is set when the turn has to end at once: by a person, or because the time of `deadline` is up.
    """

    def __init__(
        self,
        conversation: Conversation,
        services: TurnServices,
        halt: asyncio.Event,
        deadline: TimeLimit | None,
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._halt = halt
        self._deadline = deadline
        self._calls = next((one for one in services.guards if isinstance(one, CallLimit)), CallLimit(0))
        self._state = TurnState()
        self._bad_replies = 0
        self._failed_finishes = 0
        self._reply_room = services.reply_tokens
        self._ending: Ending | None = None
        self._pictures: list[UserMessage] = []

    def stopped(self) -> bool:
        """Whether no further step is to be made; the ending is known then."""
        if self._ending is None:
            if self._halt.is_set():
                self._ending = self._halted()
            else:
                stops = (guard.check(self._state) for guard in self._services.guards)
                stop = next(filter(None, stops), None)
                self._ending = Ending(stop.reason, "", stop.detail) if stop else None
        return self._ending is not None

    def _halted(self) -> Ending:
        if self._deadline and self._halt.is_set() and not self._services.cancel.is_set():
            stop = self._deadline.stop()
            return Ending(stop.reason, "", stop.detail)
        return Ending("cancelled", "", "interrupted")

    def finished(self) -> TurnFinished:
        ending = self._ending or Ending("gave_up", "", "the turn ended without a reason")
        return TurnFinished(
            reason=ending.reason,
            answer=ending.answer,
            detail=ending.detail,
            steps=self._state.steps,
            stats=total(self._state.stats),
        )

    async def step(self) -> AsyncIterator[Event]:
        """One request to the model, and what follows from the reply."""
        for said in await self._services.inbox.take() if self._services.inbox else ():
            self._conversation.add(UserMessage(said.told, said.pictures))
            yield UserMessageAdded(text=said.text, is_note=said.is_note)
        async with closing(self._make_room()) as events:
            async for event in events:
                yield event
        if self._ending is not None or self._halt.is_set():
            return
        self._state.begin_step()
        yield StepStarted(step=self._state.steps)
        reply: Reply | None = None
        async with closing(self._generate()) as items:
            async for item in items:
                if isinstance(item, Reply):
                    reply = item
                else:
                    yield item
        if reply is None:
            raise RuntimeError("a model's stream has to end with its reply")
        self._state.stats.append(reply.stats)
        yield AssistantReplied(text=reply.message.text, reasoning=reply.message.reasoning)
        yield StepFinished(step=self._state.steps, stop_reason=reply.stop_reason, stats=reply.stats)
        async with closing(self._act_on(reply)) as events:
            async for event in events:
                yield event

    async def _make_room(self) -> AsyncIterator[Event]:
        """A compaction where the next request would not leave enough of the context window."""
        compactor = self._services.compactor
        if compactor is None:
            return
        cue = self._services.guide.cue() if self._services.guide else ""
        under_way: CompactionStarted | None = None
        async with closing(self._in_time(compactor.make_room(self._conversation, cue))) as events:
            async for event in events:
                if isinstance(event, CompactionStarted):
                    under_way = event
                if isinstance(event, CompactionFinished):
                    under_way = None
                    self._state.stats.append(event.stats)
                    self._state.compactions += event.after != event.before
                yield event
        if under_way:  # the time was up before there was a summary
            size = under_way.before
            yield CompactionFinished(before=size, after=size, detail="the time is up", stats=StepStats())
        if compactor.cannot_fit:
            self._ending = Ending("context_full", "", compactor.cannot_fit)

    async def _generate(self) -> AsyncIterator[ModelItem]:
        """The model's stream, closed when the time is up. A cancel is the model's own business."""
        messages = self._conversation.messages
        self._conversation.requested = len(messages)
        offer = self._services.guide.offer() if self._services.guide else Offer()
        compactor, most = self._services.compactor, self._services.reply_tokens
        self._reply_room = min(most, compactor.reply_room()) if compactor else most
        stream = self._services.model.generate(messages, max_tokens=self._reply_room, offer=offer)
        has_replied = False
        async with closing(self._in_time(stream)) as items:
            async for item in items:
                has_replied = has_replied or isinstance(item, Reply)
                yield item
        if not has_replied and self._halt.is_set():
            yield Reply(message=AssistantMessage(""), stop_reason="cancelled")

    async def _in_time(self, stream: AsyncIterator[Item]) -> AsyncIterator[Item]:
        """The stream, until it ends or the time is up; then `halt` is set."""
        async with closing(stream):
            while True:
                try:
                    async with asyncio.timeout(self._deadline.remaining if self._deadline else None):
                        item = await anext(stream)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    self._halt.set()
                    return
                yield item

    async def _act_on(self, reply: Reply) -> AsyncIterator[Event]:
        if reply.stop_reason == "cancelled":
            self._conversation.add(broken_off(reply.message))
            self._ending = self._halted()
        elif reply.stop_reason == "overflow":
            for event in self._overflowed(reply):
                yield event
        elif reply.stop_reason == "error":
            self._ending = Ending("server_failed", "", reply.error)
        elif reply.problem and self._met_the_window(reply):
            yield Notice(text="the reply met the end of the context window, so the model sums up first")
        elif reply.problem:
            self._state.context_tokens = reply.stats.context_tokens - reply.stats.decoded_tokens
            self._conversation.measure(reply.stats, with_reply=False)
            for event in self._refuse(reply):
                yield event
        else:
            self._bad_replies = self._bad_replies + 1 if self._asks_for_nothing_known(reply.message) else 0
            self._state.context_tokens = reply.stats.context_tokens
            self._state.calls = reply.message.tool_calls
            self._conversation.add(reply.message)
            self._conversation.measure(reply.stats, with_reply=True)
            if self._services.compactor:
                self._services.compactor.replied()
            async with closing(self._follow(reply.message)) as events:
                async for event in events:
                    yield event
            if self._ending is None and self._bad_replies >= BAD_REPLIES_ALLOWED:
                name = reply.message.tool_calls[0].name
                self._ending = Ending("gave_up", "", _unusable(f"there is no tool {name!r}"))

    def _asks_for_nothing_known(self, message: AssistantMessage) -> bool:
        """Whether there are calls, and all of tools that there are not."""
        names = [call.name for call in message.tool_calls]
        known = self._services.executor.knows
        return bool(names) and not any(name == FINISH_TOOL or known(name) for name in names)

    def _overflowed(self, reply: Reply) -> list[Event]:
        """The server has less room than was thought: the next request is shorter, if that is possible."""
        compactor = self._services.compactor
        if compactor is None or not compactor.overflowed(reply.window, reply.prompt_tokens):
            self._ending = Ending("context_full", "", reply.error)
            return []
        told = Notice(text=f"the server refused the prompt as too long: {reply.error}", level="warning")
        return [told] if compactor.wants_room else [told, PrefixBroken(cause="results were cut to fit")]

    def _met_the_window(self, reply: Reply) -> bool:
        """Whether a reply was cut short for want of room, which a compaction can make."""
        compactor = self._services.compactor
        if compactor is None or reply.stop_reason != "length":
            return False
        is_short = self._reply_room < self._services.reply_tokens
        return is_short and compactor.has_what_to_sum_up and compactor.want_room()

    def _refuse(self, reply: Reply) -> list[Event]:
        """Drops a reply that cannot be acted on, and says what was wrong with it.

        A bad reply that stays in the history is imitated by small models and refused by some servers.
        """
        self._bad_replies += 1
        if self._bad_replies >= BAD_REPLIES_ALLOWED:
            detail = _unusable(reply.problem)
            if reply.is_empty:
                detail = f"the model produced no answer: {BAD_REPLIES_ALLOWED} replies in a row were empty"
            self._ending = Ending("gave_up", "", detail)
            return []
        self._conversation.add(UserMessage(reply.problem))
        return [
            Notice(text=f"reply dropped: {reply.problem}", level="warning"),
            PrefixBroken(cause="an unusable reply was dropped"),
            UserMessageAdded(text=reply.problem, is_note=True),
        ]

    async def _follow(self, message: AssistantMessage) -> AsyncIterator[Event]:
        finishes = [call for call in message.tool_calls if call.name == FINISH_TOOL]
        others = [call for call in message.tool_calls if call.name != FINISH_TOOL]
        to_run = _without_repeats(others)
        self._pictures.clear()
        for place, call in enumerate(others):
            if call not in to_run:
                self._answer_calls([call], REPEATED_CALL)
                continue
            if self._calls.remaining == 0:  # an answer that counts on calls that were not run is none
                left_out, finishes = [*others[place:], *finishes], []
                self._answer_calls(left_out, f"Not run: {self._calls.stop().detail}.")
                break
            last = not finishes if call is to_run[-1] else self._calls.remaining == 1
            async with closing(self._run(call, verify=last)) as events:
                async for event in events:
                    yield event
        if finishes or not message.tool_calls:
            answer = str(finishes[0].arguments.get("answer", "")) if finishes else message.text
            async with closing(self._finish(answer, finishes)) as events:
                async for event in events:
                    yield event
        if self._ending is None:
            for pictures in self._pictures:
                self._conversation.add(pictures)

    async def _run(self, call: ToolCall, *, verify: bool) -> AsyncIterator[Event]:
        """Runs a call. The verdict on a change rides in the last result that the model reads next."""
        self._calls.count()
        result: ToolMessage | None = None
        async with closing(self._services.executor.execute(call, self._halt)) as items:
            async for item in items:
                if isinstance(item, ToolMessage):
                    result = item
                    continue
                if isinstance(item, UserMessage):
                    self._pictures.append(item)
                    continue
                if isinstance(item, ToolFinished) and item.diffs:
                    self._state.changed.add(call.id)
                yield item
        if result is None:
            raise RuntimeError("an executor has to end with the message for the model")
        self._state.results[call.id] = result.text
        if result.is_error:
            self._state.failed.add(call.id)
        if verify and self._state.changed and self._services.verifier:
            verdict = await self._judge(self._services.verifier.after_change())
            if verdict is not None:
                yield verdict.event
                cue = self._services.guide.cue() if self._services.guide else ""
                result = replace(result, note=f"{verdict.feedback}\n{cue}".rstrip())
        self._conversation.add(result)

    async def _finish(self, answer: str, calls: Sequence[ToolCall]) -> AsyncIterator[Event]:
        verdict: Verdict | None = None
        if self._services.verifier:
            verdict = await self._judge(self._services.verifier.at_finish())
        if self._halt.is_set():
            self._answer_calls(calls, "Interrupted.")
            return
        if verdict is not None:
            yield verdict.event
        if verdict is None or verdict.passed:
            self._answer_calls(calls, "Done.")
            self._ending = Ending("done", answer, "done")
            return
        self._failed_finishes += 1
        self._answer_calls(calls, verdict.feedback)
        if self._failed_finishes >= FAILED_FINISHES_ALLOWED:
            detail = f"the check still fails after {self._failed_finishes} tries: {verdict.event.command}"
            self._ending = Ending("check_failed", answer, detail)
        elif not calls:
            self._conversation.add(UserMessage(verdict.feedback))
            yield UserMessageAdded(text=verdict.feedback, is_note=True)

    async def _judge(self, judging: Coroutine[Any, Any, Verdict | None]) -> Verdict | None:
        try:
            return await unless_cancelled(judging, self._halt)
        except InterruptedRunError:
            return None

    def _answer_calls(self, calls: Sequence[ToolCall], text: str) -> None:
        for call in calls:
            self._conversation.add(ToolMessage(call.id, call.name, text))


def _unusable(why: str) -> str:
    return f"{BAD_REPLIES_ALLOWED} replies in a row were unusable: {why}"


def _without_repeats(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls of one reply without those that repeat an earlier one of them to the letter."""
    first: list[ToolCall] = []
    for call in calls:
        if not any(one.name == call.name and one.arguments == call.arguments for one in first):
            first.append(call)
    return first
