"""`/btw`: a question beside the work. Its answer is shown, recorded, and kept out of the conversation.

It is asked as one more message on the prompt that the server has in its cache, so only the question is new
to it; the next message of the conversation finds the same prompt again.
"""

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from agent.app.chat.engine import Engine, why_gone
from agent.app.chat.live import LiveSession
from agent.app.chat.wording import suit_the_blind
from agent.core import trimming
from agent.core.asking import request_behind
from agent.core.cancel import InterruptedRunError, closing, unless_cancelled
from agent.core.errors import AgentError, ServerError, UsageError
from agent.core.events import (
    ASIDE_TOOL,
    OWN_CALL,
    Notice,
    Prefill,
    Retry,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from agent.core.guide import Offer
from agent.core.messages import Message
from agent.core.model import Reply
from agent.core.summing import answer_in, answered

_MOST_TOKENS = 1_024
_LEAST_TOKENS = 64
_MARGIN_TOKENS = 32
_NOT_RUN = "(This call was not run.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """The `answer`, empty where it was interrupted. `call_id` is that of its events."""

    call_id: str
    answer: str


async def ask_aside(live: LiveSession, question: str) -> Aside:
    """Asks with the events of a tool call; `cancel` of the session ends it. No turn may be under way.

    Raises:
        UsageError: there is nothing to ask beside yet, or no room in the context window.
        ServerError: no answer came.
    """
    if not answered(live.record.conversation.messages):
        raise UsageError("there is no conversation yet that a question could stand beside", "just ask it")
    call_id, began = f"{OWN_CALL}{uuid.uuid4().hex[:12]}", time.monotonic()
    finished = ToolFinished(call_id=call_id, tool=ASIDE_TOOL, outcome="error", text="", seconds=0.0)
    live.emit(ToolStarted(call_id=call_id, tool=ASIDE_TOOL, arguments={"question": question}))
    try:
        engine = await unless_cancelled(live.keeper.ready(), live.cancel)
        live.suit(engine)
        await suit_the_blind(live, engine)
        reply = await _reply(live, engine, question, call_id)
        live.slot_tokens = reply.stats.context_tokens if reply.stats.counted else 0
        answer = _answer(engine, reply)
        finished = replace(finished, outcome="ok" if answer else "cancelled", text=answer)
    except InterruptedRunError:
        finished = replace(finished, outcome="cancelled")
    except AgentError as error:
        finished = replace(finished, text=error.message)
        raise
    finally:
        live.emit(replace(finished, seconds=round(time.monotonic() - began, 2)))
        if finished.outcome == "cancelled":
            live.leave_off()
    return Aside(call_id=call_id, answer=finished.text)


async def _reply(live: LiveSession, engine: Engine, question: str, call_id: str) -> Reply:
    wording = await asyncio.to_thread(files("agent").joinpath("prompts/aside.md").read_text, encoding="utf-8")
    asked, request = live.record.conversation.messages, wording.strip().format(question=question)
    messages = [*asked, *request_behind(asked, request, no_result=_NOT_RUN)]
    most = _room(live, engine, messages)
    events = engine.model.generate(messages, max_tokens=most, offer=Offer(tools=frozenset({"finish"})))
    async with closing(events) as items:
        async for item in items:
            match item:
                case Reply():
                    return item
                case TextDelta():
                    live.emit(ToolOutput(call_id=call_id, text=item.text))
                case Prefill() | Retry() | Notice():
                    live.emit(item)
    raise RuntimeError("a generation has to end with its reply")


def _room(live: LiveSession, engine: Engine, messages: Sequence[Message]) -> int:
    """The most tokens for the answer. Raises UsageError where too few are left."""
    conversation, window = live.record.conversation, engine.model.context_tokens
    if not window:
        return min(_MOST_TOKENS, engine.reply_tokens)
    new = messages[conversation.measured :] if conversation.tokens else messages
    used = conversation.tokens + trimming.tokens_of(new, conversation.characters_per_token)
    free = int(window - used - _MARGIN_TOKENS)
    if free < _LEAST_TOKENS:
        raise UsageError(
            "the context window has no room for a question beside the work", "/compact makes some"
        )
    return min(_MOST_TOKENS, engine.reply_tokens, free)


def _answer(engine: Engine, reply: Reply) -> str:
    """Empty where it was interrupted. Raises ServerError: there is none."""
    if reply.stop_reason == "cancelled":
        return ""
    if reply.error:
        raise ServerError(why_gone(engine.serving, engine.endpoint, reply.error), "ask again")
    goes_on = any(call.name != "finish" for call in reply.message.tool_calls)
    answer = "" if goes_on else answer_in(reply)
    if not answer:
        problem = (
            "the model went on with the work instead of answering" if goes_on else "the model gave no answer"
        )
        raise ServerError(problem, "nothing of it was run; ask without /btw")
    return answer
