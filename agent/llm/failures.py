"""From what went wrong with a request to what is done about it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

FailureKind = Literal[
    "overflow",
    "loading",
    "refused",
    "unacceptable",  # something about the request itself; another form of it may be accepted
    "unreachable",
    "silent",  # nothing comes, and nobody answers for its health either
    "dropped",
    "server",
    "unparsed",  # the server could not read what the model had generated
    "garbage",
]
# llama-server's words when its parser for tool calls fails on the output of the model.
_UNPARSED = "model produced output that does not match"
_LONGEST_MESSAGE = 300
# How engines other than llama-server say that a prompt does not fit, all of them with HTTP 400.
_TOO_LONG = re.compile(
    r"maximum context length"  # vLLM, and what follows the words of OpenAI
    r"|longer than the model's context length"  # SGLang
    r"|exceeds the (?:model's maximum|available) context"
    r"|context(?: length|_length)? ?(?:is )?(?:overflow|exceeded)"
    r"|context the overflows|greater than the context length",  # LM Studio
    re.IGNORECASE,
)
_WINDOW_IN_WORDS = re.compile(
    r"(?:maximum context length (?:is|of)|model's context length \(|available context size \()"
    r"\s*(?P<size>\d[\d,]*)",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(r"\bmodel\b.*(?:not found|not exist|not loaded|unknown)", re.IGNORECASE)
_ABOUT_THE_REQUEST = (400, 405, 415, 422)
# What a proxy says that gave up waiting: 524 is Cloudflare's.
_WAITED_TOO_LONG = (408, 504, 524)
_LOADING = re.compile(r"\bload", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """`retry` says whether the same request may be sent again. `said` is what the server said, in full.

    `window` and `prompt` are the sizes of context and prompt in tokens, where an overflow says them.
    `is_lasting` is set once every repetition has failed too.
    """

    kind: FailureKind
    text: str
    retry: bool
    said: str = ""
    window: int = 0
    prompt: int = 0
    is_lasting: bool = False


def classify(error: BaseException, base_url: str, *, streaming: bool) -> Failure:
    """Sorts an exception of the HTTP stack or the OpenAI client.

    `streaming` says whether part of the reply had arrived; half a reply is never acted on.
    """
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        return _by_status(error.status_code, error.body, base_url)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        # It may well be evaluating the prompt, which a second request would only delay.
        return Failure("unreachable", f"the server at {base_url} went silent", False)
    if isinstance(error, openai.APIConnectionError) and not streaming and _never_connected(error):
        return Failure("unreachable", f"the server at {base_url} does not answer", True)
    lost = (openai.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
    if isinstance(error, lost):
        where = "in the middle of a reply" if streaming else "before it replied"
        return Failure("dropped", f"the connection to {base_url} was lost {where}", True)
    if isinstance(error, openai.APIError) and error.body is not None:
        return _by_body(_body(error.body), error.body if isinstance(error.body, str) else str(error))
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


def _said(body: Any) -> str:
    """The server's own words: an error object, the list of FastAPI's validation, or plain text."""
    record = _body(body)
    words = record.get("message") or record.get("detail") or record.get("error")
    if words is None and isinstance(body, str):
        words = body
    return words if isinstance(words, str) else json.dumps(words) if words else ""


def _by_status(status: int, raw: Any, base_url: str) -> Failure:
    body, said = _body(raw), _said(raw)
    message = _one_line(said) or f"HTTP {status}"
    if _is_overflow(body, said):
        return _overflow(body, message, said)
    if status in _WAITED_TOO_LONG:
        # The server may still be evaluating the prompt, which a second request would only delay.
        gave_up = f"what is between here and the server at {base_url} waited no longer (HTTP {status})"
        return Failure("unreachable", f"{gave_up}: allow requests more time there", False)
    if status in (429, 503) and body.get("code") != "insufficient_quota":
        is_loading = status == 503 and (not said or _LOADING.search(said))
        why = "is still loading its model" if is_loading else f"takes no request now: {message}"
        return Failure("loading", f"the server at {base_url} {why}", False)
    if status in (401, 403):
        return Failure("refused", f"the server at {base_url} refused the API key", False)
    if status == 404 and _UNKNOWN_MODEL.search(said):
        return Failure("refused", f"the server does not serve that model: {message}", False)
    if status == 404:
        return Failure("refused", f"there is no chat completions API at {base_url}", False)
    if status >= 500:
        return _server_failure(f"the server failed: {message}", said)
    kind = "unacceptable" if status in _ABOUT_THE_REQUEST else "refused"
    return Failure(kind, f"the server refused the request: {message}", False, said)


def _is_overflow(body: Mapping[str, Any], said: str) -> bool:
    known = ("exceed_context_size_error", "context_length_exceeded")
    return body.get("type") in known or body.get("code") in known or bool(_TOO_LONG.search(said))


def _overflow(body: Mapping[str, Any], message: str, said: str) -> Failure:
    """llama-server tells the sizes in fields, others tell that of the window in their words."""
    window, prompt = (
        size if isinstance(size, int) and size > 0 else 0
        for size in (body.get("n_ctx"), body.get("n_prompt_tokens"))
    )
    found = None if window else _WINDOW_IN_WORDS.search(said)
    window = int(found["size"].replace(",", "")) if found else window
    return Failure("overflow", message, False, window=window, prompt=prompt)


def _by_body(body: dict[str, Any], fallback: str) -> Failure:
    """An error inside of a stream that had begun with 200."""
    message = _one_line(body.get("message")) or _one_line(fallback)
    if _is_overflow(body, message):
        return _overflow(body, message, message)
    return _server_failure(f"the server failed in mid-reply: {message}", message)


def _server_failure(text: str, said: str) -> Failure:
    return Failure("unparsed" if _UNPARSED in text else "server", text, True, said)


def _one_line(message: Any) -> str:
    """What a server says about itself may be a page of HTML."""
    text = " ".join(str(message or "").split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
