"""From what went wrong with a request to what is done about it."""

from dataclasses import dataclass
from typing import Any, Literal

FailureKind = Literal[
    "overflow",
    "loading",
    "refused",
    "unreachable",
    "dropped",
    "server",
    "unparsed",  # the server could not read what the model had generated
    "garbage",
]
# llama-server's words when its parser for tool calls fails on the output of the model.
_UNPARSED = "model produced output that does not match"
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """`retry` says whether the same request may be sent again."""

    kind: FailureKind
    text: str
    retry: bool


def classify(error: BaseException, base_url: str, *, streaming: bool) -> Failure:
    """Sorts an exception of the HTTP stack or the OpenAI client.

    `streaming` says whether part of the reply had arrived; half a reply is never acted on.
    """
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        return _by_status(error.status_code, _body(error.body), base_url)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        # It may well be evaluating the prompt, which a second request would only delay.
        return Failure("unreachable", f"the server at {base_url} went silent", False)
    if isinstance(error, openai.APIConnectionError) and not streaming and _never_connected(error):
        return Failure("unreachable", f"the server at {base_url} does not answer", True)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | OSError):
        where = "in the middle of a reply" if streaming else "before it replied"
        return Failure("dropped", f"the connection to {base_url} was lost {where}", True)
    if isinstance(error, openai.APIError) and error.body is not None:
        return _by_body(_body(error.body), str(error))
    return Failure("garbage", f"the server at {base_url} sent something that is no reply", True)


def _never_connected(error: BaseException) -> bool:
    import httpx2

    return isinstance(error.__cause__, httpx2.ConnectError)


def _body(body: Any) -> dict[str, Any]:
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            return inner
    return {}


def _by_status(status: int, body: dict[str, Any], base_url: str) -> Failure:
    message = _one_line(body.get("message")) or f"HTTP {status}"
    if body.get("type") == "exceed_context_size_error":
        return Failure("overflow", message, False)
    if status == 503:
        return Failure("loading", f"the server at {base_url} is still loading its model", False)
    if status in (401, 403):
        return Failure("refused", f"the server at {base_url} refused the API key", False)
    if status == 404:
        return Failure("refused", f"there is no chat completions API at {base_url}", False)
    if status >= 500:
        return _server_failure(f"the server failed: {message}")
    return Failure("refused", f"the server refused the request: {message}", False)


def _by_body(body: dict[str, Any], fallback: str) -> Failure:
    """An error inside of a stream that had begun with 200."""
    message = _one_line(body.get("message")) or _one_line(fallback)
    if body.get("type") == "exceed_context_size_error":
        return Failure("overflow", message, False)
    return _server_failure(f"the server failed in mid-reply: {message}")


def _server_failure(text: str) -> Failure:
    return Failure("unparsed" if _UNPARSED in text else "server", text, True)


def _one_line(message: Any) -> str:
    """What a server says about itself may be a page of HTML."""
    text = " ".join(str(message or "").split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
