"""A long conversation made short: the model sums it up, and goes on with that and the last turns.

The request for the summary is one more turn on the prompt that the server has in its cache, so only the
summary takes time. After that the server reads the short conversation from its beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from agent.app.engine import Engine
from agent.app.live import LiveSession
from agent.core.cancel import closing
from agent.core.errors import UsageError
from agent.core.events import (
    CompactionFinished,
    CompactionStarted,
    ContextStatus,
    Notice,
    Prefill,
    PrefixBroken,
)
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agent.core.model import Reply
from agent.llm.tokens import estimate

CAUSE = "compaction"
_MOST_SUMMARY_TOKENS = 1_024
# What the summary may take up of the window, and the last turns of the window and of what there is.
_SUMMARY_SHARE = 0.125
_KEPT_SHARE = 0.2
_KEPT_OF_ALL = 0.25
_KEPT_TURNS = 2
_WORDS_PER_TOKEN = 0.6
_UNKNOWN_WINDOW = 8_192
_BEGINNING = "(Our earlier conversation, summed up:)\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Tokens `before` and `after` (an estimate), and the summary that the conversation now begins with."""

    before: int
    after: int
    summary: str


async def compact(live: LiveSession, engine: Engine, instruction: str = "") -> Compaction:
    """Makes the conversation short at a person's wish. `instruction` says what the summary is to be about.

    Raises:
        UsageError: there is nothing to sum up, or no summary came; the conversation is as it was then.
    """
    live.suit(engine)
    if not any(isinstance(one, AssistantMessage) for one in live.record.conversation.messages):
        raise UsageError("there is nothing to sum up yet")
    finished = await _compact(live, engine, instruction, automatic=False)
    if finished.detail:
        raise UsageError(
            f"the conversation stays as it is: {finished.detail}", "try again, or begin a new one"
        )
    return Compaction(before=finished.before, after=finished.after, summary=finished.summary)


async def compact_if_full(live: LiveSession, engine: Engine) -> None:
    """At the beginning of a turn: makes room where the settings want that. A failure is only told."""
    threshold = live.loaded.settings.limits.compact_at
    window = engine.model.context_tokens
    if not threshold or not window or live.used_tokens < threshold * window:
        return
    live.emit(Notice(text="the context is nearly full, so the model sums up the conversation first"))
    finished = await _compact(live, engine, "", automatic=True)
    if finished.detail and not live.cancel.is_set():
        text = f"the context is nearly full and could not be made shorter: {finished.detail}"
        live.emit(Notice(text=text, level="warning"))


async def _compact(
    live: LiveSession, engine: Engine, instruction: str, *, automatic: bool
) -> CompactionFinished:
    conversation = live.record.conversation
    old = list(conversation.messages)
    before = live.used_tokens or _tokens(old)
    live.emit(CompactionStarted(before=before, automatic=automatic))
    window = engine.model.context_tokens or _UNKNOWN_WINDOW
    summary, problem = await _summary(live, engine, old, window, instruction)
    if problem:
        finished = CompactionFinished(before=before, after=before, detail=problem)
        live.emit(finished)
        return finished
    budget = min(window * _KEPT_SHARE, _tokens(old) * _KEPT_OF_ALL)
    start = _kept_from(old, list(conversation.marks.values()), budget)
    system = [one for one in old[:1] if isinstance(one, SystemMessage)]
    # They began the message that the summary replaces, and no summary keeps them word for word.
    instructions = await live.extensions.instructions(context_tokens=engine.model.context_tokens)
    beginning = "\n\n".join(filter(None, [instructions, f"{_BEGINNING}{summary}"]))
    new: list[Message] = [*system, UserMessage(beginning), *old[start:]]
    after = round(_tokens(new) * before / max(1, _tokens(old)))
    if after >= before:
        finished = CompactionFinished(before=before, after=before, detail="the summary would be no shorter")
        live.emit(finished)
        return finished
    moved = len(new) - len(old)
    conversation.marks = {turn: mark + moved for turn, mark in conversation.marks.items() if mark >= start}
    conversation.begin_again(new, CAUSE)
    finished = CompactionFinished(before=before, after=after, summary=summary)
    live.emit(finished)
    live.emit(PrefixBroken(cause=CAUSE))
    live.used_tokens = after
    live.emit(ContextStatus(used=after, window=engine.model.context_tokens))
    return finished


async def _summary(
    live: LiveSession, engine: Engine, messages: Sequence[Message], window: int, instruction: str
) -> tuple[str, str]:
    """The model's summary, or what went wrong."""
    most = min(_MOST_SUMMARY_TOKENS, int(window * _SUMMARY_SHARE))
    wanted = files("agent").joinpath("prompts/compact.md").read_text("utf-8").strip()
    request = wanted.format(words=int(most * _WORDS_PER_TOKEN))
    if instruction.strip():
        request += f"\nAbove all keep: {instruction.strip()}"
    reply: Reply | None = None
    stream = engine.model.generate(
        [*messages, UserMessage(request)], max_tokens=most, offer=Offer(tools=frozenset({"finish"}))
    )
    async with closing(stream) as items:
        async for item in items:
            if isinstance(item, Reply):
                reply = item
            elif isinstance(item, Prefill):
                live.emit(item)
    if reply is None or reply.stop_reason == "cancelled":
        return "", "interrupted"
    if reply.error:
        return "", reply.error
    if reply.stop_reason == "repetition":
        return "", "the model repeated itself instead of summing up"
    summary = _said_in(reply)
    return (summary, "") if summary else ("", "the model gave no summary")


def _said_in(reply: Reply) -> str:
    """The text of a reply, or of the call of `finish` that it is. One that was cut short will do."""
    if reply.problem and (reply.stop_reason != "length" or reply.message.text.lstrip().startswith("{")):
        return ""
    answers = [str(call.arguments.get("answer", "")) for call in reply.message.tool_calls]
    text = "" if any(call.in_text for call in reply.message.tool_calls) else reply.message.text
    return (next(filter(None, answers), "") or text).strip()


def _kept_from(messages: Sequence[Message], marks: Sequence[int], budget: float) -> int:
    """Where the turns begin that stay as they are: the last two if they fit, and never the first."""
    start = len(messages)
    kept = 0
    for mark in sorted(set(marks), reverse=True):
        if mark >= len(messages):
            continue  # the turn that begins right now
        if kept == _KEPT_TURNS or mark <= 1 or _tokens(messages[mark:]) > budget:
            break
        start = mark
        kept += 1
    return start


def _tokens(messages: Sequence[Message]) -> int:
    """About how many tokens the texts of these messages have."""
    return sum(estimate(_text_of(message)) for message in messages)


def _text_of(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        calls = [f"{call.name} {call.raw_arguments}" for call in message.tool_calls if not call.in_text]
        return "\n".join([message.text, *calls])
    return f"{message.tool_name}\n{message.text}" if isinstance(message, ToolMessage) else message.text
