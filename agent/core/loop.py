"""The turn loop: an async generator that takes a prompt and yields typed events until the turn is over."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from agent.core.events import (
    AssistantReplied,
    Event,
    Notice,
    PrefixBroken,
    StepFinished,
    StepStarted,
    ToolFinished,
    TurnFinished,
    TurnReason,
    UserMessageAdded,
)
from agent.core.executor import ToolExecutor
from agent.core.limits import Guard, Stop, TurnState
from agent.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agent.core.model import Model, Reply
from agent.core.stats import total
from agent.core.verifier import Verdict, Verifier

FINISH_TOOL = "finish"
BAD_REPLIES_ALLOWED = 3
FAILED_FINISHES_ALLOWED = 3


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages of a session. Only ever appended to, so that the server's prompt cache holds."""

    messages: list[Message] = field(default_factory=list)

    def add(self, message: Message) -> None:
        self.messages.append(message)


@dataclass(slots=True, kw_only=True)
class TurnServices:
    """What a turn works with. `cancel` may be set at any time from the same event loop."""

    model: Model
    executor: ToolExecutor
    guards: Sequence[Guard]
    verifier: Verifier | None = None
    reply_tokens: int = 2048
    cancel: asyncio.Event = field(default_factory=asyncio.Event)


async def run_turn(conversation: Conversation, prompt: str, services: TurnServices) -> AsyncIterator[Event]:
    """Runs one turn, from a person's prompt to the model's closing answer.

    Yields the events of the turn; `TurnFinished` is always the last one.
    """
    turn = _Turn(conversation, services)
    conversation.add(UserMessage(prompt))
    yield UserMessageAdded(text=prompt)
    while turn.ending is None:
        if turn.stopped():
            break
        async for event in turn.step():
            yield event
    yield turn.finished()


@dataclass(frozen=True, slots=True)
class _Ending:
    reason: TurnReason
    answer: str
    detail: str


class _Turn:
    """The state of one running turn; each method is one phase of a step."""

    def __init__(self, conversation: Conversation, services: TurnServices) -> None:
        self._conversation = conversation
        self._services = services
        self._state = TurnState()
        self._bad_replies = 0
        self._failed_finishes = 0
        self.ending: _Ending | None = None

    def stopped(self) -> bool:
        if self._services.cancel.is_set():
            self.ending = _Ending("cancelled", "", "interrupted")
            return True
        for guard in self._services.guards:
            stop = guard.check(self._state)
            if isinstance(stop, Stop):
                self.ending = _Ending(stop.reason, "", stop.detail)
                return True
        return False

    def finished(self) -> TurnFinished:
        ending = self.ending or _Ending("gave_up", "", "the turn ended without a reason")
        return TurnFinished(
            reason=ending.reason,
            answer=ending.answer,
            detail=ending.detail,
            steps=self._state.steps,
            stats=total(self._state.stats),
        )

    async def step(self) -> AsyncIterator[Event]:
        """One request to the model, and what follows from the reply."""
        self._state.steps += 1
        yield StepStarted(step=self._state.steps)
        reply: Reply | None = None
        stream = self._services.model.generate(
            self._conversation.messages, max_tokens=self._services.reply_tokens
        )
        async for item in stream:
            if isinstance(item, Reply):
                reply = item
            else:
                yield item
        if reply is None:
            raise RuntimeError("a model's stream has to end with its reply")
        self._state.stats.append(reply.stats)
        self._state.calls = reply.message.tool_calls
        yield AssistantReplied(text=reply.message.text, reasoning=reply.message.reasoning)
        yield StepFinished(step=self._state.steps, stop_reason=reply.stop_reason, stats=reply.stats)
        async for event in self._act_on(reply):
            yield event

    async def _act_on(self, reply: Reply) -> AsyncIterator[Event]:
        if reply.stop_reason == "cancelled":
            self.ending = _Ending("cancelled", "", "interrupted")
        elif reply.stop_reason == "overflow":
            self.ending = _Ending("context_full", "", reply.error)
        elif reply.stop_reason == "error":
            self.ending = _Ending("server_failed", "", reply.error)
        elif reply.problem:
            for event in self._refuse(reply):
                yield event
        else:
            self._bad_replies = 0
            self._conversation.add(reply.message)
            async for event in self._follow(reply.message):
                yield event

    def _refuse(self, reply: Reply) -> list[Event]:
        """Drops a reply that cannot be acted on, and says what was wrong with it.

        A bad reply that stays in the history is imitated by small models and refused by some servers.
        """
        self._bad_replies += 1
        if self._bad_replies >= BAD_REPLIES_ALLOWED:
            self.ending = _Ending(
                "gave_up", "", f"{BAD_REPLIES_ALLOWED} replies in a row were unusable: {reply.problem}"
            )
            return []
        self._conversation.add(UserMessage(reply.problem))
        return [
            Notice(text=f"reply dropped: {reply.problem}", level="warning"),
            PrefixBroken(cause="an unusable reply was dropped"),
            UserMessageAdded(text=reply.problem),
        ]

    async def _follow(self, message: AssistantMessage) -> AsyncIterator[Event]:
        finish = next((call for call in message.tool_calls if call.name == FINISH_TOOL), None)
        others = [call for call in message.tool_calls if call.name != FINISH_TOOL]
        changed = False
        for position, call in enumerate(others):
            last = finish is None and position == len(others) - 1
            async for event in self._run(call, verify=last, changed_before=changed):
                if isinstance(event, ToolFinished):
                    changed = changed or bool(event.diffs)
                yield event
        if finish is not None or not message.tool_calls:
            answer = str(finish.arguments.get("answer", "")) if finish else message.text
            async for event in self._finish(answer, finish):
                yield event

    async def _run(self, call: ToolCall, *, verify: bool, changed_before: bool) -> AsyncIterator[Event]:
        """Runs a call. The verdict on a change rides in the result that the model reads next."""
        changed = changed_before
        result: ToolMessage | None = None
        async for item in self._services.executor.execute(call, self._services.cancel):
            if isinstance(item, ToolMessage):
                result = item
                continue
            if isinstance(item, ToolFinished):
                changed = changed or bool(item.diffs)
            yield item
        if result is None:
            raise RuntimeError("an executor has to end with the message for the model")
        verdict: Verdict | None = None
        if verify and changed and self._services.verifier and not self._services.cancel.is_set():
            verdict = await self._services.verifier.after_change()
        if verdict is not None:
            yield verdict.event
            text = f"{result.text}\n\n{verdict.feedback}"
            result = ToolMessage(result.call_id, result.tool_name, text, result.is_error)
        self._conversation.add(result)

    async def _finish(self, answer: str, call: ToolCall | None) -> AsyncIterator[Event]:
        verdict = await self._services.verifier.at_finish() if self._services.verifier else None
        if verdict is not None:
            yield verdict.event
        if verdict is None or verdict.passed:
            self._answer_call(call, "Done.")
            self.ending = _Ending("done", answer, "done")
            return
        self._failed_finishes += 1
        self._answer_call(call, verdict.feedback)
        if self._failed_finishes >= FAILED_FINISHES_ALLOWED:
            detail = f"the check still fails after {self._failed_finishes} tries: {verdict.event.command}"
            self.ending = _Ending("check_failed", answer, detail)
            return
        if call is None:
            self._conversation.add(UserMessage(verdict.feedback))
            yield UserMessageAdded(text=verdict.feedback)

    def _answer_call(self, call: ToolCall | None, text: str) -> None:
        if call is not None:
            self._conversation.add(ToolMessage(call.id, call.name, text))
