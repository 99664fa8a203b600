"""Replies that say why there is no whole one, in the words that the loop and the model go on with."""

from agent.core.messages import AssistantMessage
from agent.core.model import Reply
from agent.llm.draft import Draft
from agent.llm.failures import Failure

UNPARSED_REPLY = "The server could not read your tool call. Nothing was run. Send the whole call again."
_CIRCLING_REPLY = "Your reply repeated itself without end. Nothing was run. Try another way."


def failed(failure: Failure) -> Reply:
    """After the last try of a request. A call that the server could not read is the model's to mend."""
    if failure.kind == "unparsed":
        return Reply(message=AssistantMessage(""), stop_reason="stop", problem=UNPARSED_REPLY)
    reason = "overflow" if failure.kind == "overflow" else "error"
    return Reply(
        message=AssistantMessage(""),
        stop_reason=reason,
        error=failure.text,
        window=failure.window,
        prompt_tokens=failure.prompt,
    )


def too_long(window: int, prompt: int) -> Reply:
    """For a request that was not made; `window` and `prompt` are tokens."""
    error = f"the conversation and a reply to it do not fit into the context window of {window} tokens"
    return Reply(
        message=AssistantMessage(""),
        stop_reason="overflow",
        error=error,
        window=window,
        prompt_tokens=prompt,
    )


def circling(draft: Draft, started: float) -> Reply:
    """`started` is when the request was made, by the clock of `time.monotonic`."""
    return Reply(
        message=AssistantMessage(draft.content),
        stop_reason="repetition",
        stats=draft.figures(started),
        problem=_CIRCLING_REPLY,
    )


def cancelled(draft: Draft, started: float) -> Reply:
    """What had come by then stays; `started` as for `circling`."""
    message = AssistantMessage(draft.content, draft.thoughts)
    return Reply(message=message, stop_reason="cancelled", stats=draft.figures(started))
