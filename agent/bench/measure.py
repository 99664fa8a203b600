"""One chat request, and what it tells about speed.

The server's own `timings` (llama.cpp and its forks) are taken where they are there: they know nothing of
the network and of this program. Elsewhere (vLLM, SGLang, LM Studio, Ollama ...) time is taken here, and the
measurement says so. What cannot be known is None; nothing is estimated.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.bench.drafting import DraftCounters, log_size, mean_length_in_log, read_counters
from agent.bench.prompt import BenchPrompt
from agent.bench.reply import ReplyReader, error_text
from agent.core.errors import ServerError
from agent.server.record import Endpoint

if TYPE_CHECKING:
    import httpx

DEFAULT_MAX_TOKENS = 1200
DEFAULT_TEMPERATURE = 0.7
DEFAULT_TIMEOUT_SECONDS = 1800.0
_CONNECT_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = (0.0, 0.05, 0.2, 0.5)
_METRICS_SECONDS = 10.0
_REPORT_EVERY_SECONDS = 0.5

Progress = Callable[[int, float], None]
"""Called with pieces received so far and seconds since the request was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """How a prompt is sent.

    `max_tokens` and `temperature` win over those of the prompt. `sampling` is what else is sent (top_k ...),
    `template_arguments` what the model's chat template is told, `extra` wins over everything.
    `timeout_seconds` is for silence of the server, and for a whole reply that is not streamed. `transport`
    replaces the network in tests.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stream: bool = True
    model: str = "local"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    progress: Progress | None = None
    transport: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of one reply. Seconds and tokens.

    `measured_here` says that the times are those of this program's clock; prompt and decode time are then
    None for a reply that was not streamed. `prompt_tokens` are those that were evaluated, `cached_tokens`
    those that were not. `drafted` and `accepted` are None where the server says nothing about drafting, 0
    where it says that nothing was drafted. `checks` is how often the target checked a draft,
    `mean_accepted_length` is 1 + accepted / checks, with its source (`metrics` or `log`). `raw` is the
    request and every chunk of the reply with its time of arrival.
    """

    prompt_id: str
    category: str
    text: str
    finish_reason: str
    prompt_tokens: int | None
    cached_tokens: int | None
    decoded_tokens: int
    prompt_seconds: float | None
    decode_seconds: float | None
    total_seconds: float
    first_token_seconds: float | None
    measured_here: bool
    drafted: int | None = None
    accepted: int | None = None
    checks: int | None = None
    mean_accepted_length: float | None = None
    mean_length_source: str = ""
    accepted_per_position: tuple[int, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def prompt_rate(self) -> float | None:
        """Prompt tokens evaluated per second."""
        return _rate(self.prompt_tokens, self.prompt_seconds)

    @property
    def decode_rate(self) -> float | None:
        """Tokens written per second. Measured here, the first token counts as part of the prompt's time."""
        tokens = self.decoded_tokens - 1 if self.measured_here else self.decoded_tokens
        return _rate(tokens, self.decode_seconds)

    @property
    def acceptance(self) -> float | None:
        """Accepted ÷ drafted: how well the draft guesses."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def draft_share(self) -> float | None:
        """Accepted ÷ generated: how much of the output was drafted. None where nothing is known of drafts."""
        return (
            self.accepted / self.decoded_tokens if self.decoded_tokens and self.accepted is not None else None
        )


async def measure(endpoint: Endpoint, prompt: BenchPrompt, options: MeasureOptions) -> Measurement:
    """Sends one prompt and waits for the whole reply.

    The prompt cache is switched off (`cache_prompt`), so that the whole prompt is evaluated each time.

    Raises:
        ServerError: no server, a refusal, or a reply that broke off.
    """
    import httpx

    body = request_body(prompt, options)
    plain = endpoint.base_url.startswith("http://")
    headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    async with httpx.AsyncClient(
        base_url=endpoint.base_url,
        headers=headers,
        timeout=httpx.Timeout(options.timeout_seconds, connect=_CONNECT_SECONDS),
        trust_env=not plain,
        verify=not plain,
        transport=options.transport,
    ) as client:
        before, log_before = await _counters(client), log_size(endpoint.log_file)
        reader, total = await _reply(client, body, options)
        drafts = await _drafting(client, reader, before)
    figures = _server_figures(reader) if reader.timings else _own_figures(reader, total)
    checks, length, source = _checks(endpoint, drafts, log_before)
    return Measurement(
        prompt_id=prompt.id,
        category=prompt.category,
        text=reader.output,
        finish_reason=reader.finish_reason,
        total_seconds=total,
        first_token_seconds=reader.first_piece,
        drafted=drafts.drafted if drafts else None,
        accepted=drafts.accepted if drafts else None,
        checks=checks,
        mean_accepted_length=length,
        mean_length_source=source,
        accepted_per_position=drafts.per_position if drafts else (),
        raw={"request": body, "chunks": reader.raw},
        **figures,
    )


def request_body(prompt: BenchPrompt, options: MeasureOptions) -> dict[str, Any]:
    """The JSON of the request."""
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [dict(message) for message in prompt.messages],
        **({"tools": [dict(tool) for tool in prompt.tools]} if prompt.tools else {}),
        **prompt.request,
        **options.sampling,
        **({"chat_template_kwargs": dict(options.template_arguments)} if options.template_arguments else {}),
        "max_tokens": _first(options.max_tokens, prompt.max_tokens, DEFAULT_MAX_TOKENS),
        "temperature": _first(options.temperature, prompt.temperature, DEFAULT_TEMPERATURE),
        **({} if options.seed is None else {"seed": options.seed}),
        "cache_prompt": False,
        "stream": options.stream,
        **({"stream_options": {"include_usage": True}} if options.stream else {}),
    }
    # None takes a field out, for servers that refuse what they do not know.
    return {key: value for key, value in {**body, **options.extra}.items() if value is not None}


async def _reply(
    client: "httpx.AsyncClient", body: Mapping[str, Any], options: MeasureOptions
) -> tuple[ReplyReader, float]:
    """The reply and the seconds from sending the request until its end."""
    import httpx

    start = time.perf_counter()
    reader = ReplyReader(lambda: time.perf_counter() - start)
    where = str(client.base_url).rstrip("/")
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                raise _refusal(where, response.status_code, await response.aread())
            await _read(response, reader, options.progress)
    except httpx.TimeoutException as error:
        raise ServerError(
            f"the server at {where} sent nothing for {options.timeout_seconds:g} s",
            "allow more time with --timeout",
        ) from error
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        reason = str(error) or type(error).__name__
        broke = "broke the connection" if reader.raw else "cannot be reached"
        raise ServerError(f"the server at {where} {broke}: {reason}", "look into its log") from error
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise ServerError(
            f"the server at {where} answered something that is no chat reply: {str(error)[:200]}",
            "check that the address is that of an OpenAI-compatible server",
        ) from error
    if not reader.is_complete:
        raise ServerError(f"the server at {where} ended the stream before the reply was complete")
    return reader, time.perf_counter() - start


async def _read(response: "httpx.Response", reader: ReplyReader, progress: Progress | None) -> None:
    if "event-stream" not in response.headers.get("content-type", ""):
        import json

        return reader.take_whole(json.loads(await response.aread()))
    shown = 0.0
    async for line in response.aiter_lines():
        reader.take_line(line)
        now = reader.clock()
        if progress and now - shown >= _REPORT_EVERY_SECONDS:
            progress(reader.pieces, now)
            shown = now
    return None


def _refusal(where: str, status: int, content: bytes) -> ServerError:
    import json

    try:
        answer = json.loads(content)
        reason = error_text(answer.get("error", answer.get("detail", answer)))
    except (ValueError, AttributeError):
        reason = " ".join(content.decode("utf-8", "replace").split())[:300]
    hint = {
        401: "name the environment variable that holds its key with --api-key-env",
        403: "name the environment variable that holds its key with --api-key-env",
        404: "check the address: it is the one before /v1, and the name of the model (--model)",
    }.get(status, "")
    return ServerError(f"the server at {where} refused the request with HTTP {status}: {reason}", hint)


async def _counters(client: "httpx.AsyncClient") -> DraftCounters | None:
    import httpx

    try:
        response = await client.get("/metrics", timeout=_METRICS_SECONDS)
    except (httpx.HTTPError, OSError):
        return None
    return read_counters(response.text) if response.status_code == 200 else None


def _server_figures(reader: ReplyReader) -> dict[str, Any]:
    timings = reader.timings
    return {
        "prompt_tokens": _count(timings, "prompt_n"),
        "cached_tokens": _count(timings, "cache_n"),
        "decoded_tokens": _count(timings, "predicted_n") or 0,
        "prompt_seconds": _seconds(timings, "prompt_ms"),
        "decode_seconds": _seconds(timings, "predicted_ms"),
        "measured_here": False,
    }


def _own_figures(reader: ReplyReader, total: float) -> dict[str, Any]:
    """Time to the first piece stands for the prompt; from there to the last one is decoding."""
    usage = reader.usage
    details = usage.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, Mapping) else None
    prompt = _count(usage, "prompt_tokens")
    first, last = reader.first_piece, reader.last_piece
    return {
        "prompt_tokens": None if prompt is None else max(0, prompt - (cached or 0)),
        "cached_tokens": cached,
        "decoded_tokens": _count(usage, "completion_tokens") or reader.pieces,
        "prompt_seconds": first,
        "decode_seconds": None if first is None or last is None or last <= first else last - first,
        "measured_here": True,
    }


async def _drafting(
    client: "httpx.AsyncClient", reader: ReplyReader, before: DraftCounters | None
) -> DraftCounters | None:
    """What was drafted for this reply. Counters of the server that disagree with the reply are dropped:
    then somebody else used it at the same time.
    """
    if not reader.timings:
        after = await _counters(client) if before else None
        return after.since(before) if before and after else None
    # llama-server leaves both fields out when nothing was drafted.
    drafted, accepted = (
        _count(reader.timings, "draft_n") or 0,
        _count(reader.timings, "draft_n_accepted") or 0,
    )
    for pause in _LOOK_AGAIN_SECONDS if before else ():
        # It counts a reply after it has sent the last piece of it.
        await asyncio.sleep(pause)
        after = await _counters(client)
        counted = after.since(before) if before and after else None
        if counted and (counted.drafted, counted.accepted) == (drafted, accepted):
            return counted
    return DraftCounters(0, drafted, accepted)


def _checks(
    endpoint: Endpoint, drafts: DraftCounters | None, log_before: int
) -> tuple[int | None, float | None, str]:
    """How often a draft was checked, the mean length that follows from it, and where that is from."""
    if not drafts or not drafts.drafted:
        return None, None, ""
    if drafts.mean_length is not None:
        return drafts.drafts, drafts.mean_length, "metrics"
    length = mean_length_in_log(endpoint.log_file, log_before, drafts.drafted, drafts.accepted)
    if length is None:
        return None, None, ""
    return round(drafts.accepted / (length - 1)) if length > 1 else None, length, "log"


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _rate(tokens: int | None, seconds: float | None) -> float | None:
    return tokens / seconds if tokens and tokens > 0 and seconds and seconds > 0 else None


def _count(record: Mapping[str, Any], key: str) -> int | None:
    number = _number(record, key)
    return None if number is None else int(number)


def _seconds(record: Mapping[str, Any], key: str) -> float | None:
    number = _number(record, key)
    return None if number is None else number / 1000


def _number(record: Mapping[str, Any], key: str) -> float | None:
    import math

    value = record.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return max(float(value), 0.0)
