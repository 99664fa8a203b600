"""The few requests that a chat needs, over HTTP: questions, and a completion as a stream of JSON.

A library for the whole API of OpenAI takes five times as long to load, for typed objects that nobody wants.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent.llm.events import EventReader, is_end

if TYPE_CHECKING:
    import httpx2

CHAT_PATH = "/v1/chat/completions"
# What httpx2 looks up when it connects.
_BACKEND = "anyio._backends._asyncio"
_CONNECT_SECONDS = 10.0
_DRAIN_SECONDS = 0.1
# llama-server closes a connection after five idle seconds (cpp-httplib's default), and httpx2 keeps one as
# long: a request could meet that end.
_KEPT_SECONDS = 2.0


class ApiError(Exception):
    """The server answered, but not with what was asked for. `body` is what it said of that, JSON parsed."""

    def __init__(self, message: str, body: Any) -> None:
        super().__init__(message)
        self.body = body


class StatusError(ApiError):
    """An answer with another status than success."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"HTTP {status}", body)
        self.status = status


class BrokenStreamError(ApiError):
    """An error in the middle of a stream that had begun well."""


class ServerApi:
    """A client of one server that never retries by itself, and never goes through a proxy on this machine.

    For plain http no certificates are loaded, which would take longer than all other set-up. Whatever goes
    wrong on the way is an exception of httpx2's; what the server says instead of an answer is an ApiError.

    Args:
        base_url: without a path.
        silence_seconds: so long may pass without a byte.
        transport: replaces the network in tests.
        beat: called whenever something comes in, comments that keep a stream open included.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        silence_seconds: float,
        transport: Any = None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        import httpx2

        plain = base_url.startswith("http://")
        self._base_url = base_url.rstrip("/")
        self._beat = beat
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {api_key or 'none'}", "Accept": "application/json"},
            timeout=httpx2.Timeout(silence_seconds, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(keepalive_expiry=_KEPT_SECONDS),
            verify=not plain,
            trust_env=not plain,
            transport=transport,
        )

    async def get(self, path: str, *, seconds: float) -> Any:
        """What the server says at `path`: JSON parsed, anything else as text. Raises StatusError.

        Args:
            seconds: of waiting at each step of the way: for a connection, and for each piece of the answer.
        """
        return self._answer(await self._http.get(self._base_url + path, timeout=seconds))

    async def post(self, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        """The answer to a question with a body; see `get`."""
        return self._answer(await self._http.post(self._base_url + path, json=dict(body), timeout=seconds))

    def _answer(self, response: "httpx2.Response") -> Any:
        self._beat()
        if not response.is_success:
            raise StatusError(response.status_code, _read(response.text))
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        return response.json() if kind.endswith("json") else response.text

    @asynccontextmanager
    async def chat(self, body: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[Any]]:
        """The chunks of a completion, as plain JSON. Leaving it early ends the connection, and the reply.

        Raises StatusError before the first chunk, BrokenStreamError instead of a chunk, and ValueError for
        one that is no JSON.
        """
        async with self._http.stream("POST", self._base_url + CHAT_PATH, json=dict(body)) as response:
            self._beat()
            if not response.is_success:
                await response.aread()
                raise StatusError(response.status_code, _read(response.text))
            async with aclosing(self._chunks(response)) as chunks:
                yield chunks

    async def _chunks(self, response: "httpx2.Response") -> AsyncGenerator[Any, None]:
        reader = EventReader()
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                self._beat()
                for data in reader.feed(piece):
                    if is_end(data):
                        await _drain(pieces)
                        return
                    yield _chunk(data)

    async def close(self) -> None:
        await self._http.aclose()


def load() -> None:
    """Imports all that the first request needs, for whoever has something else to wait for meanwhile."""
    for name in ("httpx2", "httpcore2", _BACKEND):
        with suppress(ImportError):  # whatever is missing is told by the request that needs it
            import_module(name)


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Reads what follows the end, so that the connection can be used again; what goes wrong is no matter."""
    import httpx2

    with suppress(httpx2.HTTPError, TimeoutError, OSError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in pieces:
                pass


def _chunk(data: str) -> Any:
    chunk = json.loads(data)
    if isinstance(chunk, Mapping) and chunk.get("error"):
        raise BrokenStreamError(_message(chunk["error"]), chunk["error"])
    return chunk


def _read(text: str) -> Any:
    """What a refusal says, out of its `error` if it has one."""
    text = text.strip()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return said.get("error", said) if isinstance(said, dict) else said


def _message(error: Any) -> str:
    said = error.get("message") if isinstance(error, Mapping) else None
    return said if isinstance(said, str) and said else "an error occurred in the stream"
