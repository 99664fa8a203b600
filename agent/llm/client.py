"""Streams chat completions from a llama-server (or anything that speaks its API) as model items.

A failure is a final `Reply`, never an exception. `openai` is imported when the first request is made, or
earlier by whoever wants to overlap the import with something else.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.core import trimming
from agent.core.cancel import InterruptedRunError, closing, unless_cancelled
from agent.core.events import Notice, Retry
from agent.core.guide import Offer
from agent.core.messages import Message
from agent.core.model import ModelItem, Reply
from agent.llm.broken_off import cancelled, circling, failed, too_long
from agent.llm.connection import Connection, Pulse, dies, failures, open_client
from agent.llm.draft import Draft
from agent.llm.failures import Failure, classify
from agent.llm.habits import ServerHabits
from agent.llm.metrics import MetricsWatch
from agent.llm.protocol import ToolProtocol
from agent.llm.reads import FullerReads
from agent.llm.repetition import goes_in_circles
from agent.llm.slots import slot_beside
from agent.llm.toolcalls import told_apart
from agent.llm.window import LEAST_REPLY_TOKENS, Window

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

RETRIES = 2
_METRICS_SECONDS = 2.0
_COUNT_SECONDS = 10.0
_CIRCLES_EVERY = 64
# A piece is a token or more, or a character where something in between cuts them up. A server that sends more
# than so many for each token that was asked for, and some, keeps to no limit.
_MOST_PIECES = 8
_MORE_PIECES = 256
_MAY_BE_THE_PROCESS = ("unreachable", "silent", "dropped", "loading", "refused", "server", "garbage")


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
            template_arguments=connection.template_arguments,
        )
        kind = connection.metrics
        self._metrics = MetricsWatch(kind, self._read_metrics) if kind else None
        self._window = Window(context_tokens)
        self._pulse = Pulse()
        self._sampling = dict(sampling)
        self._cancel = cancel
        self._client: AsyncOpenAI | None = None
        self._replies = replies_before

    @property
    def used_tokens(self) -> int:
        """Tokens that the conversation took up after the last reply."""
        return self._window.used

    @property
    def context_tokens(self) -> int:
        return self._window.tokens

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
            context_tokens=self._window.tokens,
            sampling={**self._sampling, **pinned},
            cancel=cancel,
        )

    async def slot_beside(self) -> int | None:
        """A slot for another conversation, see `agent.llm.slots`; None leaves it to the server."""
        if not self._connection.llama_fields:
            return None
        url = self._connection.address("/slots")
        try:
            said = await self._open().get(url, cast_to=object, options={"timeout": _METRICS_SECONDS})
        except failures():
            return None
        return slot_beside(said, self._window.used)

    async def count_tokens(self, text: str) -> int | None:
        """Tokens of `text` as llama-server counts them, None where it does not."""
        told = await self._ask("/tokenize", {"content": text})
        tokens = told.get("tokens") if isinstance(told, Mapping) else None
        return len(tokens) if isinstance(tokens, list) else None

    async def count_request(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt of these messages and all tools; an estimate where the server does not count."""
        request = self._habits.request(
            messages, model=self._connection.model, max_tokens=1, offer=Offer(), sampling={}
        )
        return await self._window.count(request, self._ask)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, offer: Offer
    ) -> AsyncIterator[ModelItem]:
        """Streams one reply; the same request is repeated at most twice when the server fails.

        The last time it is to be read anew, because a server may fail on what it has kept of the prompt. What
        a failed stream had said by then is void, a `Retry` says so. While the server loads its model
        the request is repeated for as long as the connection allows. Prompt and reply never take more than
        the window: the reply is bounded to what is left, and without room for one nothing is sent.
        """
        self._replies += 1
        request = await self._fitted(messages, max_tokens, offer)
        loading_until = time.monotonic() + self._connection.loading_seconds
        waited, attempt = False, 0
        while request is not None:
            failure: Failure | None = None
            async with closing(self._attempt(request, messages)) as items:
                async for item in items:
                    if isinstance(item, Failure):
                        failure = item
                    else:
                        yield item
            if failure is None:
                return
            rescue = await self._rescued(replace(failure, is_lasting=attempt == RETRIES))
            if rescue is not None:
                yield Retry(cause=rescue.cause, attempt=1)
                request = await self._fitted(messages, max_tokens, offer)
                waited, attempt = False, 0
                continue
            lesson = self._habits.learn(failure)
            if lesson:
                yield Notice(text=lesson, level="warning")
                request = await self._fitted(messages, max_tokens, offer)
            elif failure.kind == "loading" and time.monotonic() < loading_until:
                if not waited:
                    yield Retry(cause=failure.text, attempt=1)
                waited = True
                await self._pause(2 * self._connection.retry_seconds)
            elif failure.retry and attempt < RETRIES and not self._cancel.is_set():
                attempt += 1
                if attempt == RETRIES and failure.kind == "server" and "cache_prompt" in request:
                    request = {**request, "cache_prompt": False}
                yield Retry(cause=failure.text, attempt=attempt)
                await self._pause(self._connection.retry_seconds * attempt)
            else:
                self._window.learn(failure.window)
                yield failed(failure)
                return
        yield too_long(self._window.tokens, self._window.asked)

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
        self._window = Window(rescue.context_tokens)
        return rescue

    async def _pause(self, seconds: float) -> None:
        """Sleeps, unless it is cancelled first."""
        try:
            await asyncio.wait_for(self._cancel.wait(), seconds)
        except TimeoutError:
            return

    async def _fitted(
        self, messages: Sequence[Message], max_tokens: int, offer: Offer
    ) -> dict[str, Any] | None:
        """The request, its reply bounded to what the window has left; None where that is too little."""
        sampling = dict(self._sampling)
        if offer.temperature is not None:
            sampling["temperature"] = offer.temperature

        def request(most: int) -> dict[str, Any]:
            return self._habits.request(
                messages, model=self._connection.model, max_tokens=most, offer=offer, sampling=sampling
            )

        made = request(max_tokens)
        room = await self._window.room(made, messages, self._ask)
        if room is None or room >= max_tokens:
            return made
        return request(room) if room >= min(max_tokens, LEAST_REPLY_TOKENS) else None

    async def _ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """What llama-server says to a question about a prompt; None where it fails, and of other engines."""
        if not self._connection.llama_fields or self._cancel.is_set():
            return None
        url = self._connection.address(path)
        try:
            asked = self._open().post(
                url, cast_to=object, body=dict(body), options={"timeout": _COUNT_SECONDS}
            )
            return await unless_cancelled(asked, self._cancel)
        except (InterruptedRunError, *failures()):
            return None

    async def _attempt(
        self, request: dict[str, Any], messages: Sequence[Message]
    ) -> AsyncIterator[ModelItem | Failure]:
        """One request. The stream is pumped by a task of its own, so that a cancel closes it at once."""
        draft = Draft()
        if self._cancel.is_set():
            yield cancelled(draft, time.monotonic())
            return
        queue: asyncio.Queue[ModelItem | Failure | None] = asyncio.Queue()
        pump = asyncio.ensure_future(self._pump(request, messages, draft, queue))
        pump.add_done_callback(lambda _: queue.put_nowait(None))
        watch = asyncio.ensure_future(self._cancel.wait())
        watch.add_done_callback(lambda _: pump.cancel())
        self._pulse.beat()
        death = asyncio.ensure_future(dies(self._open(), self._connection, self._pulse))
        death.add_done_callback(lambda _: pump.cancel())
        started = time.monotonic()
        try:
            while (item := await queue.get()) is not None:
                yield item
            if not pump.cancelled():
                pump.result()
            elif death.done() and not self._cancel.is_set():
                yield Failure("silent", f"{self._named} went silent and does not answer /health", False)
            else:
                yield cancelled(draft, started)
        finally:
            for task in (watch, death, pump):
                task.cancel()
            await asyncio.gather(pump, watch, death, return_exceptions=True)

    @property
    def _named(self) -> str:
        return f"the server at {self._connection.base_url}"

    async def _pump(
        self,
        request: dict[str, Any],
        messages: Sequence[Message],
        draft: Draft,
        queue: "asyncio.Queue[ModelItem | Failure | None]",
    ) -> None:
        started = time.monotonic()
        circles = False
        tokens = request.get("max_tokens") or request.get("max_completion_tokens") or 0
        most = _MOST_PIECES * tokens + _MORE_PIECES
        if self._metrics:
            await self._metrics.begin()
            started = time.monotonic()
        try:
            async with await self._stream(request) as stream:
                reads = FullerReads()
                async for chunk in stream:
                    for item in draft.take(chunk, self._habits.protocol):
                        queue.put_nowait(item)
                    if draft.pieces % _CIRCLES_EVERY == 1 and goes_in_circles(draft.latest):
                        circles = True
                        break
                    if draft.pieces >= most:
                        draft.finish = "length"
                        break
                    await reads.rest()
        except failures() as error:
            queue.put_nowait(classify(error, self._connection.base_url, streaming=bool(draft.pieces)))
            return
        if circles:
            queue.put_nowait(circling(draft, started))
        elif not draft.finish:
            queue.put_nowait(Failure("dropped", "the server closed the stream before the reply ended", True))
        else:
            queue.put_nowait(await self._reply(messages, draft, started))

    async def _reply(self, messages: Sequence[Message], draft: Draft, started: float) -> Reply:
        self._habits.answered()
        cut = draft.finish == "length"
        pieces = [draft.calls[index] for index in sorted(draft.calls)]
        message, problem = self._habits.protocol.read_reply(
            draft.content, draft.thoughts, pieces, cut=cut, number=self._replies
        )
        message = told_apart(message, messages, f"call-{self._replies}-")
        reason = "length" if cut else "tool_calls" if message.tool_calls else "stop"
        figures = draft.figures(started)
        if self._metrics:
            figures = await self._metrics.completed(figures)
        if figures.counted and trimming.could_have(messages, figures.context_tokens):
            stays = [] if problem else [message]
            used = figures.context_tokens - (figures.decoded_tokens if problem else 0)
            self._window.replied([*messages, *stays], used)
        is_empty = bool(problem) and not (cut or pieces or draft.content.strip())
        return Reply(message=message, stop_reason=reason, stats=figures, problem=problem, is_empty=is_empty)

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
        url = self._connection.address("/metrics")
        try:
            return await self._open().get(url, cast_to=str, options={"timeout": _METRICS_SECONDS})
        except failures():
            return None

    def _open(self) -> "AsyncOpenAI":
        if self._client is None:
            self._client = open_client(self._connection, self._pulse)
        return self._client
