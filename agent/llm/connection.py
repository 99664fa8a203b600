"""The connection to a model server: where it is, how patient to be with it, and whether it still lives."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.llm.api import ApiError, ServerApi
from agent.llm.metrics import MetricsKind

RETRY_DELAY_SECONDS = 0.5
LOADING_PATIENCE_SECONDS = 600.0
# While it evaluates a prompt llama-server sends progress and comment lines. It is silent while another client
# has the only slot, which can take minutes.
SILENCE_SECONDS = 900.0
# Two questions to `/health` that nobody answers come to 8 + 7 + 1 + 7 seconds at most.
STALL_SECONDS = 8.0
HEALTH_SECONDS = 7.0
_ASK_AGAIN_SECONDS = 1.0
_UNANSWERED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the server is, and how patient to be with it.

    `transport` replaces the network in tests. A server that sends nothing for `silence_seconds` is given
    up; one that sends nothing for `stall_seconds` and twice leaves `/health` unanswered for
    `health_seconds` is dead. `retry_seconds` pass before a failed request is repeated, twice that before
    the second time.

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
    loading_seconds: float = LOADING_PATIENCE_SECONDS
    llama_fields: bool = True
    grammars: bool = True
    metrics: MetricsKind | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Pulse:
    """When the server last sent a byte, comments that keep a stream open included (monotonic seconds)."""

    last: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        self.last = time.monotonic()


async def dies(client: ServerApi, connection: Connection, pulse: Pulse) -> None:
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


async def _answers(client: ServerApi, connection: Connection) -> bool:
    try:
        await client.get("/health", seconds=connection.health_seconds)
    except ApiError:
        return True  # an error is an answer too, and some engines have no such page
    except failures():
        return False
    return True


def open_client(connection: Connection, pulse: Pulse | None = None) -> ServerApi:
    """A client for the server. `pulse` notes what comes in."""
    return ServerApi(
        connection.base_url,
        connection.api_key,
        silence_seconds=connection.silence_seconds,
        transport=connection.transport,
        beat=pulse.beat if pulse is not None else lambda: None,
    )


def failures() -> tuple[type[BaseException], ...]:
    """All that a request can end with, other than success."""
    import httpx2

    # Nothing checks what a server sends, so a reply of a strange shape shows up where it is read.
    strange = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
    return (ApiError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, *strange)
