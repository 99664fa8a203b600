"""The connection to a model server: where it is, how patient to be with it, and whether it still lives."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent.llm.metrics import MetricsKind

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

RETRY_DELAY_SECONDS = 0.5
LOADING_PATIENCE_SECONDS = 600.0
# While it evaluates a prompt llama-server sends progress and comment lines. It is silent while another client
# has the only slot, and other engines are for as long as they read. A prompt of 262,144 tokens takes 3.6
# hours at 20 tok/s, so this is for a server that hangs and answers for its health all the same.
SILENCE_SECONDS = 4 * 3600.0
# Two questions to `/health` that nobody answers come to 8 + 7 + 1 + 7 seconds at most.
STALL_SECONDS = 8.0
HEALTH_SECONDS = 7.0
_ASK_AGAIN_SECONDS = 1.0
_UNANSWERED = 2
_CONNECT_SECONDS = 10.0
# llama-server closes a connection after five idle seconds (cpp-httplib's default), and httpx2 keeps one as
# long: a request could meet that end.
KEPT_SECONDS = 2.0
_SENT_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
)
# What httpx2 looks up when it connects.
_BACKEND = "anyio._backends._asyncio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the server is, and how patient to be with it.

    `transport` replaces the network in tests. A server that sends nothing for `silence_seconds` is given
    up; one that sends nothing for `stall_seconds` and twice leaves `/health` unanswered for
    `health_seconds` is dead. `retry_seconds` pass before a failed request is repeated, twice that before
    the second time. A connection that was idle for `kept_seconds` is not used again.

    `llama_fields` says whether fields that only llama-server knows are sent, `grammars` whether replies may
    be bound to one; a server that refuses some gets the request again without. `metrics` names an engine
    whose own metrics tell about drafting. `template_arguments` go along with each request, for servers that
    give them to the model's chat template.
    """

    base_url: str
    api_key: str
    model: str = "local"
    transport: Any = None
    silence_seconds: float = SILENCE_SECONDS
    stall_seconds: float = STALL_SECONDS
    health_seconds: float = HEALTH_SECONDS
    retry_seconds: float = RETRY_DELAY_SECONDS
    kept_seconds: float = KEPT_SECONDS
    loading_seconds: float = LOADING_PATIENCE_SECONDS
    llama_fields: bool = True
    grammars: bool = True
    metrics: MetricsKind | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)

    def address(self, path: str) -> str:
        """Where a page of the server is that is not among those under `/v1`."""
        return f"{self.base_url.rstrip('/')}{path}"


@dataclass(slots=True)
class Pulse:
    """When the server last sent a byte, comments that keep a stream open included (monotonic seconds)."""

    last: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        self.last = time.monotonic()


async def dies(client: "AsyncOpenAI", connection: Connection, pulse: Pulse) -> None:
    """Returns when the server is dead: silent, and its `/health` twice without an answer of any kind."""
    unanswered = 0
    while unanswered < _UNANSWERED:
        quiet = time.monotonic() - pulse.last
        if quiet < connection.stall_seconds:
            unanswered = 0
            await asyncio.sleep(connection.stall_seconds - quiet)
        elif await _answers(client, connection):
            unanswered = 0
            await asyncio.sleep(connection.stall_seconds)
        else:
            unanswered += 1
            await asyncio.sleep(min(_ASK_AGAIN_SECONDS, connection.stall_seconds))


async def _answers(client: "AsyncOpenAI", connection: Connection) -> bool:
    from openai import APIStatusError

    options: Any = {"timeout": connection.health_seconds}
    try:
        await client.get(connection.address("/health"), cast_to=str, options=options)
    except APIStatusError:
        return True  # an error is an answer too, and some engines have no such page
    except failures():
        return False
    return True


def open_client(connection: Connection, pulse: Pulse | None = None) -> "AsyncOpenAI":
    """An OpenAI client that never retries by itself and never goes through a proxy on this machine.

    For plain http no certificates are loaded, which would take longer than all other set-up. What the
    client adds by itself, such as an organization or headers from the environment and the kind of this
    machine, is not the server's business and is left out. `pulse` notes what comes in.
    """
    import httpx2
    from openai import AsyncOpenAI

    key = connection.api_key or "none"

    async def keep_what_is_needed(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _SENT_HEADERS]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key}"

    async def take_the_pulse(response: httpx2.Response) -> None:
        if pulse is not None:
            pulse.beat()
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _felt(response.stream, pulse)

    plain = connection.base_url.startswith("http://")
    timeout = httpx2.Timeout(connection.silence_seconds, connect=_CONNECT_SECONDS)
    http = httpx2.AsyncClient(
        timeout=timeout,
        limits=httpx2.Limits(keepalive_expiry=connection.kept_seconds),
        verify=not plain,
        trust_env=not plain,
        event_hooks={"request": [keep_what_is_needed], "response": [take_the_pulse]},
        transport=connection.transport,
    )
    client = AsyncOpenAI(
        base_url=connection.address("/v1"),
        api_key=key,
        max_retries=0,
        timeout=timeout,
        http_client=http,
    )
    # Else it looks before its first request, with a program of its own, for what would only be left out here.
    client._platform = "Unknown"
    return client


def _felt(stream: "httpx2.AsyncByteStream", pulse: Pulse) -> "httpx2.AsyncByteStream":
    """The same bytes; each arrival is noted. Comments of a stream are seen nowhere above this."""
    import httpx2

    class Felt(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in stream:
                pulse.beat()
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Felt()


def load() -> None:
    """Imports all that the first request needs, for whoever has something else to wait for meanwhile."""
    for name in ("openai", "httpcore2", _BACKEND):
        with suppress(ImportError):  # whatever is missing is told by the request that needs it
            import_module(name)


def failures() -> tuple[type[BaseException], ...]:
    """All that a request can end with, other than success."""
    import httpx2
    from openai import OpenAIError

    # Nothing checks what a server sends, so a reply of a strange shape shows up where it is read.
    strange = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
    return (OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, *strange)
