"""Messages as lines of JSON on two file descriptors. Bad input is answered, and never ends the connection."""

import asyncio
import contextlib
import json
import os
import queue
import threading
from collections.abc import Mapping
from typing import Any

from agent.core.outside_text import one_line

LONGEST_LINE_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1 << 16
_LAST_WORDS_SECONDS = 2.0
# The first request asks the model server what it can do; on a busy machine our own parts load for seconds.
_LAST_ANSWERS_SECONDS = 20.0

_NO_JSON = -32700
_NO_REQUEST = -32600

Sent = tuple[bytes, "asyncio.Future[None]"]


class StdioTransport:
    """The transport of `acp.connection.Connection`. Make and use it inside of a running event loop.

    Threads read and write, because asyncio cannot read from files and would make the editor's own end of
    the pipes non-blocking. Whoever sends waits until the editor's pipe has taken the message.
    """

    def __init__(self, source: int, sink: int) -> None:
        """`source` and `sink` are open file descriptors that nobody else uses."""
        self._source = source
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._outgoing: queue.SimpleQueue[Sent | None] = queue.SimpleQueue()
        self._is_broken = False
        self._unanswered: set[Any] = set()
        self._nothing_open = asyncio.Event()
        self._nothing_open.set()
        self._reader = threading.Thread(target=self._read, name="acp-reader", daemon=True)
        self._writer = threading.Thread(target=self._write, name="acp-writer", daemon=True)
        self._reader.start()
        self._writer.start()

    def end(self) -> None:
        """Makes `receive` report the end, as if the editor had closed its side."""
        self._lines.put_nowait(None)

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the editor has closed its side or is gone."""
        while (line := await self._lines.get()) is not None:
            if not line.strip():
                continue
            try:
                return self._noted(_message(line))
            except _BadLineError as bad:
                error = {"code": bad.code, "message": str(bad)}
                await self.send({"jsonrpc": "2.0", "id": None, "error": error})
        return None

    async def send(self, message: Mapping[str, Any]) -> None:
        """Queues at once and waits until it is written. What an editor that is gone should get is dropped."""
        if "method" not in message:
            self._unanswered.discard(message.get("id"))
            if not self._unanswered:
                self._nothing_open.set()
        if self._is_broken:
            return
        told = _told_plainly(message)
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=str)
        written: asyncio.Future[None] = self._loop.create_future()
        # Half of a surrogate pair, as names of files may have, is no UTF-8 and would end strict readers.
        self._outgoing.put((text.encode("utf-8", "replace") + b"\n", written))
        await written

    async def settled(self) -> None:
        """Waits until every request is answered: somebody may have sent all of them and closed their side."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._nothing_open.wait(), _LAST_ANSWERS_SECONDS)

    async def close(self) -> None:
        """Writes what is queued; an editor that does not read is waited for a short time only."""
        self._outgoing.put(None)
        await asyncio.to_thread(self._writer.join, _LAST_WORDS_SECONDS)

    def _noted(self, message: dict[str, Any]) -> dict[str, Any]:
        if "method" in message and "id" in message:
            self._unanswered.add(message["id"])
            self._nothing_open.clear()
        return message

    def _read(self) -> None:
        pending = bytearray()
        is_too_long = False
        while piece := self._next_piece():
            # Earlier bytes have no line end in them: looking at them again would cost more and more.
            begin = len(pending)
            pending += piece
            while (end := pending.find(b"\n", begin)) >= 0:
                self._hand_over(_TOO_LONG if is_too_long else bytes(pending[:end]))
                del pending[: end + 1]
                begin, is_too_long = 0, False
            if len(pending) > LONGEST_LINE_BYTES:
                pending.clear()
                is_too_long = True
        if pending and not is_too_long:
            self._hand_over(bytes(pending))
        self._hand_over(None)

    def _next_piece(self) -> bytes:
        try:
            return os.read(self._source, _PIECE_BYTES)
        except OSError:
            return b""

    def _hand_over(self, line: bytes | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for more
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    def _write(self) -> None:
        while (item := self._outgoing.get()) is not None:
            data, written = item
            if not self._is_broken and not self._written(data):
                self._is_broken = True
                self._hand_over(None)
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, written)

    def _written(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._sink, view) :]
        except OSError:
            return False
        return True


_TOO_LONG = b"\0too long"


class _BadLineError(Exception):
    """A line that is no message; `code` is the one of JSON-RPC."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _message(line: bytes) -> dict[str, Any]:
    if line is _TOO_LONG:
        raise _BadLineError(_NO_REQUEST, f"the message is longer than {LONGEST_LINE_BYTES:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _BadLineError(_NO_JSON, f"a line is no JSON: {one_line(str(error), 120)}") from None
    if not isinstance(message, dict):
        raise _BadLineError(_NO_REQUEST, "a message has to be one JSON object on a line of its own")
    if not isinstance(message.get("id"), str | int | float | None):
        raise _BadLineError(_NO_REQUEST, "the id of a message has to be a number or a text")
    if not isinstance(message.get("method"), str | None):
        raise _BadLineError(_NO_REQUEST, "the method of a message has to be a text")
    return message


def _settle(written: "asyncio.Future[None]") -> None:
    if not written.done():
        written.set_result(None)


def _told_plainly(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """An error with the whole story in its one line: editors show the line, few show the data."""
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if not isinstance(error, dict) or not isinstance(data, dict):
        return message
    text = str(error.get("message", ""))
    if isinstance(data.get("errors"), list) and data["errors"]:
        wrong = data["errors"][0]
        place = ".".join(str(part) for part in wrong.get("loc", ()))
        text = f"{text}: {place}: {one_line(str(wrong.get('msg', '')), 200)}"
        return {**message, "error": {"code": error.get("code"), "message": text}}
    if "method" in data:
        text = f"{text}: {one_line(str(data['method']), 80)}"
    elif "details" in data:
        text = f"{text}: {one_line(str(data['details']), 300)}"
    return {**message, "error": {**error, "message": text}}
