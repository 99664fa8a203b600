"""From what went wrong with a request to what is done about it."""

from dataclasses import dataclass
from typing import Any, Literal

FailureKind = Literal["overflow", "loading", "refused", "unreachable", "dropped", "server", "garbage"]


@dataclass(frozen=True, slots=True)
class Failure:
    """`retry` says whether the same request may be sent again."""

    kind: FailureKind
    text: str
    retry: bool


def classify(error: BaseException, base_url: str, streaming: bool) -> Failure:
    """Sorts an exception of the HTTP stack or the OpenAI client.

    `streaming` says whether part of the reply had arrived; half a reply is never acted on.
    """
    import openai

    if isinstance(error, openai.APIStatusError):
        return _by_status(error.status_code, _body(error.body), base_url)
    if isinstance(error, openai.APITimeoutError):
        return Failure("unreachable", f"the server at {base_url} went silent", False)
    if isinstance(error, openai.APIConnectionError):
        return Failure("unreachable", f"the server at {base_url} does not answer", True)
    if isinstance(error, openai.APIError):
        return _by_body(_body(error.body), str(error))
    if isinstance(error, ValueError):
        return Failure("garbage", f"the server at {base_url} sent something that is no reply", True)
    where = "in the middle of a reply" if streaming else "before it replied"
    return Failure("dropped", f"the connection to {base_url} was lost {where}", True)


def _body(body: Any) -> dict[str, Any]:
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            return inner
    return {}


def _by_status(status: int, body: dict[str, Any], base_url: str) -> Failure:
    message = str(body.get("message", "")) or f"HTTP {status}"
    if body.get("type") == "exceed_context_size_error":
        return Failure("overflow", message, False)
    if status == 503:
        return Failure("loading", f"the server at {base_url} is still loading its model", False)
    if status in (401, 403):
        return Failure("refused", f"the server at {base_url} refused the API key", False)
    if status == 404:
        return Failure("refused", f"there is no chat completions API at {base_url}", False)
    if status >= 500:
        return Failure("server", f"the server failed: {message}", True)
    return Failure("refused", f"the server refused the request: {message}", False)


def _by_body(body: dict[str, Any], fallback: str) -> Failure:
    """An error inside of a stream that had begun with 200."""
    message = str(body.get("message", "")) or fallback
    if body.get("type") == "exceed_context_size_error":
        return Failure("overflow", message, False)
    return Failure("server", f"the server failed in mid-reply: {message}", True)
