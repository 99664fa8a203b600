"""The HTTP side of the scripted server: routes, errors, and the connections it has to break at the end."""

import json
import select
import socket
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes import chat
from tests.fakes.pages import PAGES, QUESTIONS, whole_reply
from tests.fakes.script import Step
from tests.fakes.state import CHAT_PATHS, RecordedRequest, ServerState
from tests.fakes.stream import ReplyStream

_BAD_OUTPUT = "The model produced output that does not match the expected peg-native format"


class HttpServer(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, address: tuple[str, int], state: ServerState) -> None:
        self.state = state
        self.connections: set[socket.socket] = set()
        self.stop_socket, self._stop_sender = socket.socketpair()
        super().__init__(address, _Handler)

    def stop(self) -> None:
        """Breaks what is still open and waits for every thread; `serve_forever` returns."""
        self.state.stopping.set()
        self._stop_sender.close()
        self.shutdown()
        self._break_connections()
        self.server_close()
        self.stop_socket.close()

    def _break_connections(self) -> None:
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is not worth a traceback; anything else is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpServer
    request_record: RecordedRequest

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)
        if self.server.state.stopping.is_set():
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode("utf-8", "replace")
        self._serve(body)

    def _serve(self, body: Any) -> None:
        state = self.server.state
        path = self.path.split("?")[0]
        self.request_record = RecordedRequest(
            self.command, path, dict(self.headers.items()), body, time.monotonic()
        )
        state.note_request(self.request_record)
        try:
            self._route(path, body)
            self.request_record.replied_at = time.monotonic()
        except OSError:
            self.request_record.aborted = True
            self.close_connection = True
        finally:
            state.note_end(self.request_record)

    def _route(self, path: str, body: Any) -> None:
        state = self.server.state
        if state.is_dead(path):
            return self.wait_for_client_to_leave()
        if path in state.settings.missing:
            return self.send_error_object(404, "not_found_error", "File Not Found")
        if state.is_loading(health_check=path in ("/health", "/v1/health")):
            return self.send_error_object(503, "unavailable_error", "Loading model")
        if path in ("/health", "/v1/health"):
            return self.send_object({"status": "ok"})
        if not self._is_authorized():
            return self.send_error_object(401, "authentication_error", "Invalid API Key")
        if self.command == "GET" and path in PAGES:
            return self.send_object(PAGES[path](state.settings))
        if self.command == "POST" and not isinstance(body, dict):
            return self.send_error_object(400, "invalid_request_error", "the body is no JSON object")
        if self.command == "POST" and path in QUESTIONS:
            return self.send_object(QUESTIONS[path](body))
        if self.command == "POST" and path in CHAT_PATHS:
            return self._answer_chat(body)
        return self.send_error_object(404, "not_found_error", "File Not Found")

    def _is_authorized(self) -> bool:
        key = self.server.state.settings.api_key
        given = (self.headers.get("Authorization", "").removeprefix("Bearer "), self.headers.get("X-Api-Key"))
        return not key or key in given

    def _answer_chat(self, body: dict[str, Any]) -> None:
        state = self.server.state
        if problem := chat.request_problem(body, strict=state.settings.strict):
            return self.send_error_object(*problem)
        prompt = chat.tokenize(chat.render_prompt(body))
        self.request_record.prompt_tokens = len(prompt)
        if len(prompt) >= state.settings.n_ctx:
            return self.send_overflow(len(prompt), state.settings.n_ctx)
        fills_the_cache_only = body.get("max_tokens") == 0
        step = Step() if fills_the_cache_only else state.next_step(body)
        if step is None:
            return self.send_error_object(500, "server_error", "the script has no more steps")
        return self._follow(step, body, prompt)

    def _follow(self, step: Step, body: dict[str, Any], prompt: list[str]) -> None:
        if step.fault == "http_500":
            return self.send_error_object(step.status, "server_error", step.message or _BAD_OUTPUT)
        if step.fault == "loading":
            return self.send_error_object(503, "unavailable_error", "Loading model")
        if step.fault == "overflow":
            return self.send_overflow(len(prompt), step.n_ctx or len(prompt))
        if step.fault == "silence":
            return self.wait_for_client_to_leave()
        return self._generate(body, step, prompt)

    def _generate(self, body: dict[str, Any], step: Step, prompt: list[str]) -> None:
        state = self.server.state
        try:
            reply = chat.reply_to(body, step)
        except ValueError as error:
            self.send_error_object(500, "server_error", f"the script does not fit: {error}")
            return
        cached = state.take_slot(body, prompt)
        self.request_record.cached_tokens = cached
        predicted = len(chat.tokenize(reply.rendered))
        figures = chat.Figures(cached, len(prompt) - cached, predicted, step.drafted, step.accepted)
        if body.get("stream"):
            ReplyStream(self, state, body, step).send(reply, figures)
        else:
            self.send_object(whole_reply(state.settings.model, reply, figures, len(state.requests)))
        state.fill_slot(prompt, reply.rendered)

    def send_object(self, value: Mapping[str, Any] | list[Any], status: int = 200) -> None:
        payload = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def send_error_object(self, status: int, kind: str, message: str, **more: int) -> None:
        self.send_object({"error": {"code": status, "message": message, "type": kind, **more}}, status)

    def send_overflow(self, tokens: int, n_ctx: int) -> None:
        sizes = f"request ({tokens} tokens) exceeds the available context size ({n_ctx} tokens)"
        self.send_error_object(
            400,
            "exceed_context_size_error",
            f"{sizes}, try increasing it",
            n_prompt_tokens=tokens,
            n_ctx=n_ctx,
        )

    def wait_for_client_to_leave(self) -> None:
        select.select([self.connection, self.server.stop_socket], [], [])
        raise ConnectionAbortedError("the client or the server was closed")
