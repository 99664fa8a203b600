"""Transports to MCP servers at an address: streamable HTTP, and SSE for old ones.

Loads the HTTP library, so it is imported where such a server is connected to.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from agent.mcp.config import ServerSpec

CONNECT_SECONDS = 20.0
_Streams = tuple[Any, Any]
_OnResponse = Callable[[httpx2.Response], Awaitable[None]]


@asynccontextmanager
async def web_transport(
    spec: ServerSpec,
    *,
    largest_bytes: int,
    auth: httpx2.Auth | None = None,
    answered: Callable[[int], None] = lambda _: None,
) -> AsyncIterator[_Streams]:
    """Yields the streams that `mcp.Client` takes.

    Args:
        spec: with variables replaced; its headers go along with every request.
        largest_bytes: of one answer; a longer one fails.
        auth: adds a token to each request.
        answered: is told the HTTP status of each answer, 401 where a token is missing.
    """

    async def note(response: httpx2.Response) -> None:
        answered(response.status_code)

    async def note_and_bound(response: httpx2.Response) -> None:
        await note(response)
        if isinstance(response.stream, httpx2.AsyncByteStream) and not _is_event_stream(response):
            response.stream = _Bounded(response.stream, largest_bytes)

    if spec.transport == "sse":
        transport = _sse(spec, auth, note)
    else:
        transport = _streamable_http(spec, auth, note_and_bound, largest_bytes)
    async with transport as streams:
        yield streams


@asynccontextmanager
async def _sse(
    spec: ServerSpec, auth: httpx2.Auth | None, on_response: _OnResponse
) -> AsyncIterator[_Streams]:
    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=headers, timeout=timeout, auth=auth, event_hooks={"response": [on_response]}
        )

    async with sse_client(
        spec.url,
        headers=dict(spec.headers),
        timeout=CONNECT_SECONDS,
        auth=auth,
        httpx_client_factory=client,
    ) as streams:
        yield streams[0], streams[1]


@asynccontextmanager
async def _streamable_http(
    spec: ServerSpec, auth: httpx2.Auth | None, on_response: _OnResponse, largest_bytes: int
) -> AsyncIterator[_Streams]:
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=max(spec.start_seconds, spec.call_seconds))
    async with (
        httpx2.AsyncClient(
            headers=dict(spec.headers), timeout=timeout, auth=auth, event_hooks={"response": [on_response]}
        ) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=largest_bytes) as streams,
    ):
        yield streams[0], streams[1]


def _is_event_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


class _Bounded(httpx2.AsyncByteStream):
    """A response's body that fails where it gets too long; the library would read it to its end."""

    def __init__(self, stream: httpx2.AsyncByteStream, largest_bytes: int) -> None:
        self._stream = stream
        self._left = largest_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
