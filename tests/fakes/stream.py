"""Writes a scripted reply as server-sent events, whole or broken in the way the script asks for."""

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fakes import chat
from tests.fakes.script import Step
from tests.fakes.state import ServerState

PING_SECONDS = 0.05


class ReplyStream:
    """Writes one reply as server-sent events in a chunked body."""

    def __init__(
        self, handler: BaseHTTPRequestHandler, state: ServerState, body: Mapping[str, Any], step: Step
    ) -> None:
        self._handler = handler
        self._body = body
        self._step = step
        self._number = len(state.requests)
        self._state = state

    def send(self, reply: chat.Reply, figures: chat.Figures) -> None:
        self._start()
        for _ in range(self._step.pings):
            self._ping()
        if self._step.chunks:
            for chunk in self._step.chunks:
                self._write(chunk.encode("utf-8") if isinstance(chunk, str) else _event(chunk))
            return self._end()
        if self._step.fault == "garbage":
            self._write(b'data: {"choices": [\xff\xfe\n\ndata: not json\n\n\x00\x01')
            return self._end()
        if self._step.fault == "pings" and not reply.text:
            return self._ping_for_ever()
        if self._body.get("return_progress"):
            for progress in figures.progress:
                self._write(_event(self._envelope({}) | {"prompt_progress": progress}))
        if self._step.fault == "endless":
            return self._repeat_until_limit(figures)
        chunks = list(chat.deltas(reply, self._number, self._step.piece_characters))
        breaks_at = len(chunks) // 2 + 1 if self._step.fault in ("drop", "error_event") else len(chunks)
        begun = time.monotonic()
        for number, delta in enumerate(chunks[:breaks_at]):
            self._wait_for_token(number, begun)
            self._write(_event(self._envelope(delta)))
        if self._step.fault == "pings":
            return self._ping_for_ever()
        if self._step.fault == "drop":
            return self._break_connection()
        if self._step.fault == "error_event":
            message = self._step.message or "Context size has been exceeded."
            self._write(_event({"error": {"code": 500, "message": message, "type": "server_error"}}))
            return self._end()
        return self._finish(reply.finish_reason, figures)

    def _wait_for_token(self, number: int, begun: float) -> None:
        rate = self._step.tokens_per_second
        early = begun + number / rate - time.monotonic() if rate else 0.0
        if early > 0 and self._state.stopping.wait(early):
            raise ConnectionAbortedError("the server was closed")

    def _repeat_until_limit(self, figures: chat.Figures) -> None:
        limit = self._body.get("max_tokens") or self._body.get("max_completion_tokens")
        pieces = chat.tokenize(self._step.text or "and so on ")
        sent = 0
        self._write(_event(self._envelope({"role": "assistant", "content": None})))
        while not self._state.stopping.is_set():
            if limit is not None and sent >= limit:
                return self._finish("length", replace(figures, predicted=sent))
            self._write(_event(self._envelope({"content": pieces[sent % len(pieces)]})))
            sent += 1
        raise ConnectionAbortedError("the server was closed")

    def _ping_for_ever(self) -> None:
        while True:
            self._ping()

    def _ping(self) -> None:
        if self._state.stopping.wait(PING_SECONDS):
            raise ConnectionAbortedError("the server was closed")
        self._write(b":\n\n")

    def _finish(self, reason: str, figures: chat.Figures) -> None:
        last = self._envelope({}, reason)
        if (self._body.get("stream_options") or {}).get("include_usage"):
            self._write(_event(last))
            last = self._envelope({}) | {"choices": [], "usage": figures.usage}
        self._write(_event(last | {"timings": figures.timings}))
        self._write(b"data: [DONE]\n\n")
        self._end()

    def _envelope(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
            "created": 0,
            "id": f"chatcmpl-{self._number}",
            "model": self._state.settings.model,
            "object": "chat.completion.chunk",
            "system_fingerprint": chat.BUILD,
        }

    def _start(self) -> None:
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def _write(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _end(self) -> None:
        self._handler.wfile.write(b"0\r\n\r\n")

    def _break_connection(self) -> None:
        self._handler.close_connection = True
        self._handler.connection.shutdown(socket.SHUT_RDWR)


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
