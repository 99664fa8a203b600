"""Streams chat completions from a llama-server (or anything that speaks its API) as model items.

A failure is a final `Reply`, never an exception. `openai` is imported when the first request is made, or
earlier by whoever wants to overlap the import with something else.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.core.cancel import InterruptedRunError, closing, unless_cancelled
from agent.core.events import Notice, Retry
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message
from agent.core.model import ModelItem, Reply
from agent.llm.draft import Draft
from agent.llm.failures import Failure, classify
from agent.llm.habits import ServerHabits
from agent.llm.metrics import MetricsKind, MetricsWatch
from agent.llm.protocol import ToolProtocol
from agent.llm.repetition import goes_in_circles
from agent.llm.slots import slot_beside

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

RETRIES = 2
RETRY_DELAY_SECONDS = 0.5
LOADING_PATIENCE_SECONDS = 600.0
UNPARSED_REPLY = "The server could not read your tool call. Nothing was run. Send the whole call again."
# While it evaluates a prompt llama-server sends progress and comment lines. It is silent while another client
# has the only slot, which can take minutes.
SILENCE_SECONDS = 900.0
_METRICS_SECONDS = 2.0
_CIRCLES_EVERY = 64
_MAY_BE_THE_PROCESS = ("unreachable", "dropped", "loading", "refused", "server", "garbage")
_SENT_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the server is, and how patient to be with it.

    `transport` replaces the network in tests. A server that sends nothing for `silence_seconds` is given
    up. `retry_seconds` pass before a failed request is repeated, twice that before the second time.

    `llama_fields` says whether fields that only llama-server knows are sent, `grammars` whether replies may
    be bound to one; a server that refuses some gets the request again without. `metrics` names an engine
    whose own metrics tell about drafting.
    """

    base_url: str
    api_key: str
    model: str = "local"
    transport: Any = None
    silence_seconds: float = SILENCE_SECONDS
    retry_seconds: float = RETRY_DELAY_SECONDS
    loading_seconds: float = LOADING_PATIENCE_SECONDS
    llama_fields: bool = True
    grammars: bool = True
    metrics: MetricsKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescue:
    """A server that takes the place of one that failed. `cause` is one line on what happened."""

    base_url: str
    api_key: str
    context_tokens: int
    cause: str


Recover = Callable[[Failure], Awaitable[Rescue | None]]
"""Asked when a request failed for a reason that may lie in the server's process; None: just a failure."""


class ChatModel:
    """A `core.model.Model` over HTTP. One instance per session: it numbers the replies."""

    def __init__(
        self,
        connection: Connection,
        protocol: ToolProtocol,
        *,
        context_tokens: int,
        sampling: Mapping[str, Any],
        cancel: asyncio.Event,
        replies_before: int = 0,
        other_protocol: ToolProtocol | None = None,
        recover: Recover | None = None,
    ) -> None:
        """`replies_before` is the highest number among the replies of a conversation that goes on.

        `recover` may bring another server when this one fails; the same request goes on with that.

        `other_protocol` is for a server that refuses the way of calling tools that `protocol` has.
        """
        self._connection = connection
        self._recover = recover
        self._habits = ServerHabits(
            protocol,
            other_protocol,
            llama_fields=connection.llama_fields,
            grammars=connection.grammars,
        )
        kind = connection.metrics
        self._metrics = MetricsWatch(kind, self._read_metrics) if kind else None
        self._context_tokens = context_tokens
        self._sampling = dict(sampling)
        self._cancel = cancel
        self._client: AsyncOpenAI | None = None
        self._replies = replies_before
        self._used_tokens = 0

    @property
    def used_tokens(self) -> int:
        """Tokens that the conversation took up after the last reply."""
        return self._used_tokens

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    @property
    def protocol(self) -> ToolProtocol:
        """The way in which tools are called, also after the server has refused another one."""
        return self._habits.protocol

    def change_sampling(self, **values: Any) -> None:
        self._sampling.update(values)

    def sibling(self, protocol: ToolProtocol, *, cancel: asyncio.Event, slot: int | None) -> "ChatModel":
        """A model behind the same server for another conversation, in `slot` if one is named.

        It has a connection of its own to close, and does not bring the server back when it fails.
        """
        pinned = {} if slot is None else {"id_slot": slot}
        return ChatModel(
            self._connection,
            protocol,
            context_tokens=self._context_tokens,
            sampling={**self._sampling, **pinned},
            cancel=cancel,
        )

    async def slot_beside(self) -> int | None:
        """A slot for another conversation, see `agent.llm.slots`; None leaves it to the server."""
        if not self._connection.llama_fields:
            return None
        url = f"{self._connection.base_url.rstrip('/')}/slots"
        try:
            said = await self._open().get(url, cast_to=object, options={"timeout": _METRICS_SECONDS})
        except _failures():
            return None
        return slot_beside(said, self._used_tokens)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        """Streams one reply; the same request is repeated at most twice when the server fails.

        What a failed stream had said by then is void, a `Retry` says so. While the server loads its model
        the request is repeated for as long as the connection allows.
        """
        self._replies += 1
        request = self._request(messages, max_tokens, offer)
        loading_until = time.monotonic() + self._connection.loading_seconds
        waited, attempt = False, 0
        while True:
            failure: Failure | None = None
            async with closing(self._attempt(request)) as items:
                async for item in items:
                    if isinstance(item, Failure):
                        failure = item
                    else:
                        yield item
            if failure is None:
                return
            rescue = await self._rescued(failure)
            if rescue is not None:
                yield Retry(cause=rescue.cause, attempt=1)
                waited, attempt = False, 0
                continue
            lesson = self._habits.learn(failure)
            if lesson:
                yield Notice(text=lesson, level="warning")
                request = self._request(messages, max_tokens, offer)
            elif failure.kind == "loading" and time.monotonic() < loading_until:
                if not waited:
                    yield Retry(cause=failure.text, attempt=1)
                waited = True
                await self._pause(2 * self._connection.retry_seconds)
            elif failure.retry and attempt < RETRIES and not self._cancel.is_set():
                attempt += 1
                yield Retry(cause=failure.text, attempt=attempt)
                await self._pause(self._connection.retry_seconds * attempt)
            else:
                yield _failed(failure)
                return

    async def _rescued(self, failure: Failure) -> Rescue | None:
        """Goes over to another server if there is one to take the place of a failed one."""
        if self._recover is None or failure.kind not in _MAY_BE_THE_PROCESS:
            return None
        try:
            rescue = await unless_cancelled(self._recover(failure), self._cancel)
        except InterruptedRunError:
            return None
        if rescue is None:
            return None
        await self.close()
        self._client = None
        self._connection = replace(self._connection, base_url=rescue.base_url, api_key=rescue.api_key)
        self._context_tokens = rescue.context_tokens
        return rescue

    async def _pause(self, seconds: float) -> None:
        """Sleeps, unless it is cancelled first."""
        try:
            await asyncio.wait_for(self._cancel.wait(), seconds)
        except TimeoutError:
            return

    def _request(self, messages: Sequence[Message], max_tokens: int, offer: Offer) -> dict[str, Any]:
        sampling = dict(self._sampling)
        if offer.temperature is not None:
            sampling["temperature"] = offer.temperature
        return self._habits.request(
            messages, model=self._connection.model, max_tokens=max_tokens, offer=offer, sampling=sampling
        )

    async def _attempt(self, request: dict[str, Any]) -> AsyncIterator[ModelItem | Failure]:
        """One request. The stream is pumped by a task of its own, so that a cancel closes it at once."""
        draft = Draft()
        if self._cancel.is_set():
            yield self._cancelled(draft, time.monotonic())
            return
        queue: asyncio.Queue[ModelItem | Failure | None] = asyncio.Queue()
        pump = asyncio.ensure_future(self._pump(request, draft, queue))
        pump.add_done_callback(lambda _: queue.put_nowait(None))
        watch = asyncio.ensure_future(self._cancel.wait())
        watch.add_done_callback(lambda _: pump.cancel())
        started = time.monotonic()
        try:
            while (item := await queue.get()) is not None:
                yield item
            if pump.cancelled():
                yield self._cancelled(draft, started)
            else:
                pump.result()
        finally:
            watch.cancel()
            pump.cancel()
            await asyncio.gather(pump, watch, return_exceptions=True)

    async def _pump(
        self, request: dict[str, Any], draft: Draft, queue: "asyncio.Queue[ModelItem | Failure | None]"
    ) -> None:
        started = time.monotonic()
        circles = False
        if self._metrics:
            await self._metrics.begin()
            started = time.monotonic()
        try:
            async with await self._stream(request) as stream:
                async for chunk in stream:
                    for item in draft.take(chunk, self._habits.protocol):
                        queue.put_nowait(item)
                    if draft.pieces % _CIRCLES_EVERY == 1 and goes_in_circles(draft.latest):
                        circles = True
                        break
        except _failures() as error:
            queue.put_nowait(classify(error, self._connection.base_url, streaming=bool(draft.pieces)))
            return
        if circles:
            queue.put_nowait(self._circling(draft, started))
        elif not draft.finish:
            queue.put_nowait(Failure("dropped", "the server closed the stream before the reply ended", True))
        else:
            queue.put_nowait(await self._reply(draft, started))

    async def _reply(self, draft: Draft, started: float) -> Reply:
        self._habits.answered()
        cut = draft.finish == "length"
        pieces = [draft.calls[index] for index in sorted(draft.calls)]
        message, problem = self._habits.protocol.read_reply(
            draft.content, "".join(draft.reasoning), pieces, cut=cut, number=self._replies
        )
        reason = "length" if cut else "tool_calls" if message.tool_calls else "stop"
        figures = draft.figures(started)
        if self._metrics:
            figures = await self._metrics.completed(figures)
        self._used_tokens = figures.context_tokens - (figures.decoded_tokens if problem else 0)
        return Reply(message=message, stop_reason=reason, stats=figures, problem=problem)

    def _circling(self, draft: Draft, started: float) -> Reply:
        return Reply(
            message=AssistantMessage(draft.content),
            stop_reason="repetition",
            stats=draft.figures(started),
            problem="Your reply repeated itself without end. Nothing was run. Try another way.",
        )

    def _cancelled(self, draft: Draft, started: float) -> Reply:
        message = AssistantMessage(draft.content, "".join(draft.reasoning))
        return Reply(message=message, stop_reason="cancelled", stats=draft.figures(started))

    async def _stream(self, request: dict[str, Any]) -> "AsyncStream[object]":
        """The chunks of the reply, as plain JSON.

        `client.chat.completions` would load some more modules before the first request, look through the
        whole conversation before each, and build a typed object for every chunk.
        """
        from openai import AsyncStream

        return await self._open().post(
            "/chat/completions", cast_to=object, body=request, stream=True, stream_cls=AsyncStream[object]
        )

    async def _read_metrics(self) -> str | None:
        """The text of the server's `/metrics`, None where there is none."""
        url = f"{self._connection.base_url.rstrip('/')}/metrics"
        try:
            return await self._open().get(url, cast_to=str, options={"timeout": _METRICS_SECONDS})
        except _failures():
            return None

    def _open(self) -> "AsyncOpenAI":
        if self._client is None:
            self._client = open_client(self._connection)
        return self._client


def open_client(connection: Connection) -> "AsyncOpenAI":
    """An OpenAI client that never retries by itself and never goes through a proxy on this machine.

    For plain http no certificates are loaded, which would take longer than all other set-up. What the
    client adds by itself, such as an organization or headers from the environment and the kind of this
    machine, is not the server's business and is left out.
    """
    import httpx2
    from openai import AsyncOpenAI

    key = connection.api_key or "none"

    async def keep_what_is_needed(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _SENT_HEADERS]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key}"

    plain = connection.base_url.startswith("http://")
    timeout = httpx2.Timeout(connection.silence_seconds, connect=10.0)
    options: dict[str, Any] = {"transport": connection.transport} if connection.transport else {}
    http = httpx2.AsyncClient(
        timeout=timeout,
        verify=not plain,
        trust_env=not plain,
        event_hooks={"request": [keep_what_is_needed]},
        **options,
    )
    return AsyncOpenAI(
        base_url=f"{connection.base_url.rstrip('/')}/v1",
        api_key=key,
        max_retries=0,
        timeout=timeout,
        http_client=http,
    )


def _failures() -> tuple[type[BaseException], ...]:
    import httpx2
    import openai

    # Nothing checks what a server sends, so a reply of a strange shape shows up where it is read.
    strange = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
    return (openai.OpenAIError, httpx2.HTTPError, OSError, *strange)


def _failed(failure: Failure) -> Reply:
    if failure.kind == "unparsed":
        return Reply(message=AssistantMessage(""), stop_reason="stop", problem=UNPARSED_REPLY)
    reason = "overflow" if failure.kind == "overflow" else "error"
    return Reply(message=AssistantMessage(""), stop_reason=reason, error=failure.text)
