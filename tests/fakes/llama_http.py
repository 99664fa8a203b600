"""The routes of the fake llama-server."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fakes.llama_state import State, tokens_in

_OPEN = ("/health", "/v1/health")
_COMPLETIONS = ("/completion", "/completions", "/v1/completions")
_CHAT = ("/chat/completions", "/v1/chat/completions")
_IDENTITY = {"id": "chatcmpl-fake", "model": "fake", "system_fingerprint": "b11434-0a1b2c3"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    500: "server_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class LlamaHttp(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], state: State) -> None:
        super().__init__(address, _Handler)
        self.state = state


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LlamaHttp

    @property
    def state(self) -> State:
        return self.server.state

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in _OPEN:
            self._health()
        elif self._may_pass():
            pages = {
                "/props": self._props,
                "/slots": self._slots,
                "/models": self._models,
                "/v1/models": self._models,
                "/metrics": self._metrics,
            }
            pages.get(path, self._not_found)()

    def do_POST(self) -> None:
        body = self._body()
        if not self._may_pass():
            return
        path = self.path.partition("?")[0]
        if body is None:
            self._refuse(400, "[json.exception.parse_error.101] parse error at line 1, column 1")
        elif path == "/tokenize":
            self.answer(200, {"tokens": list(range(tokens_in(str(body.get("content", "")))))})
        elif path == "/apply-template":
            self.answer(200, {"prompt": _prompt_of(body)})
        elif path == "/v1/chat/completions/input_tokens":
            self.answer(200, {"object": "response.input_tokens", "input_tokens": tokens_in(_prompt_of(body))})
        elif path in _COMPLETIONS + _CHAT:
            self._generate(body, chat=path in _CHAT)
        else:
            self._not_found()

    def _health(self) -> None:
        sick = self.state.switches.sick_if
        if sick and Path(sick).exists():
            self._refuse(500, "something is wrong")
        elif self.state.ready:
            self.answer(200, {"status": "ok"})
        else:
            self._refuse(503, "Loading model")

    def _may_pass(self) -> bool:
        """Whether the request is looked at. While it loads, nobody needs a key to hear just that."""
        if not self.state.ready:
            self._refuse(503, "Loading model")
            return False
        given = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get(
            "X-Api-Key", ""
        )
        if self.state.keys and given not in self.state.keys:
            self._refuse(401, "Invalid API Key")
            return False
        return True

    def _props(self) -> None:
        state = self.state
        if state.router:
            empty = {"params": None, "n_ctx": 0}
            self.answer(200, {"role": "router", "max_instances": 4, "default_generation_settings": empty})
            return
        caps = {"supports_tools": True, "supports_tool_calls": True, "supports_system_role": True}
        settings = {"n_ctx": state.context, "params": {"speculative.types": "none"}}
        answer = {
            "default_generation_settings": settings,
            "total_slots": state.slots,
            "model_alias": state.alias,
            "model_path": state.model,
            "modalities": {"vision": False, "video": False, "audio": False},
            "endpoint_slots": "--no-slots" not in state.given,
            "endpoint_metrics": "--metrics" in state.given,
            "chat_template": "{{ messages }}",
            "chat_template_caps": caps,
            "build_info": "b11434-0a1b2c3",
            "is_sleeping": False,
        }
        self.answer(200, answer)

    def _slots(self) -> None:
        state = self.state
        if "--no-slots" in state.given:
            self._refuse(501, "This server does not support slots endpoint. Start it with `--slots`")
            return
        working = state.streams + state.waiting_requests + state.switches.busy
        asked = state.given.get("--spec-type", "none")
        slots = [
            {
                "id": number,
                "n_ctx": state.context,
                "speculative": state.speculative,
                "is_processing": number < working,
                "params": {"speculative.types": asked},
            }
            for number in range(state.slots)
        ]
        self.answer(200, slots)

    def _models(self) -> None:
        state = self.state
        meta = {"n_ctx_train": state.switches.trained_context, "n_ctx": state.context}
        if state.switches.dialect == "bee-0.3":
            del meta["n_ctx"]
        model = {"id": state.alias, "object": "model", "owned_by": "llamacpp", "meta": meta}
        self.answer(200, {"object": "list", "data": [] if state.router else [model]})

    def _metrics(self) -> None:
        if "--metrics" not in self.state.given:
            self._refuse(501, "This server does not support metrics endpoint. Start it with `--metrics`")
            return
        totals = self.state.totals
        lines = [
            f"llamacpp:prompt_tokens_total {totals['prompt']}",
            f"llamacpp:tokens_predicted_total {totals['predicted']}",
            f"llamacpp:requests_processing {self.state.streams + self.state.waiting_requests}",
        ]
        if self.state.speculative and self.state.switches.dialect in ("llama.cpp", "bee-0.4"):
            lines.append(f"llamacpp:spec_decode_num_draft_tokens_total {totals['drafted']}")
            lines.append(f"llamacpp:spec_decode_num_accepted_tokens_total {totals['accepted']}")
        self._send(200, "text/plain; version=0.0.4", "\n".join([*lines, ""]).encode("utf-8"))

    def _generate(self, body: dict[str, Any], *, chat: bool) -> None:
        state = self.state
        if state.router:
            self._refuse(400, "model name is missing from the request")
            return
        if chat and "messages" not in body:
            self._refuse(400, "'messages' is required")
            return
        prompt = _prompt_of(body) if chat else str(body.get("prompt", ""))
        if tokens_in(prompt) >= state.context:
            self._overflow(tokens_in(prompt))
            return
        if chat and state.faulty and state.switches.chat_error:
            self._refuse(500, state.switches.chat_error)
            return
        state.abort_if_told()
        room = state.context - tokens_in(prompt)
        limits = [
            body[name] for name in ("max_tokens", "max_completion_tokens", "n_predict") if body.get(name)
        ]
        most = min([room, *(limit for limit in limits if isinstance(limit, int) and limit > 0)])
        reply = _Reply(self, body, chat, prompt, most)
        reply.stream() if body.get("stream") else reply.whole()

    def _overflow(self, tokens: int) -> None:
        context = self.state.context
        room = f"exceeds the available context size ({context} tokens)"
        text = f"request ({tokens} tokens) {room}, try increasing it"
        about = {"code": 400, "message": text, "type": "exceed_context_size_error"}
        self.answer(400, {"error": about | {"n_prompt_tokens": tokens, "n_ctx": context}})

    def _not_found(self) -> None:
        self._refuse(404, "File Not Found")

    def _body(self) -> dict[str, Any] | None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return None
        if self.state.switches.requests:
            with Path(self.state.switches.requests).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"path": self.path, "body": body}) + "\n")
        return body if isinstance(body, dict) else None

    def _refuse(self, status: int, message: str) -> None:
        error = {"code": status, "message": message, "type": _ERRORS[status]}
        self.answer(status, {"error": error})

    def answer(self, status: int, body: object) -> None:
        self._send(status, "application/json; charset=utf-8", json.dumps(body).encode("utf-8"))

    def _send(self, status: int, kind: str, raw: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: object) -> None:
        return


class _Reply:
    """One answer to a request for tokens."""

    def __init__(self, handler: _Handler, body: dict[str, Any], chat: bool, prompt: str, most: int) -> None:
        self._handler = handler
        self._state = handler.state
        self._chat = chat
        self._body = body
        self._most = most
        self._kept, self._evaluated = handler.state.read_prompt(prompt)

    def whole(self) -> None:
        state = self._state
        state.waiting_requests += 1
        try:
            pieces = []
            for piece in state.pieces(self._most):
                time.sleep(state.switches.piece_seconds)
                pieces.append(piece)
                state.die_if_told(len(pieces))
        finally:
            state.waiting_requests -= 1
        figures = self._figures(len(pieces))
        text = "".join(pieces)
        if not self._chat:
            self._handler.answer(200, {"content": text, "stop": True, "model": state.alias} | figures)
            return
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": self._reason(len(pieces))}
        answer = {
            **_IDENTITY,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage(len(pieces)),
        }
        self._handler.answer(200, answer | figures)

    def stream(self) -> None:
        handler, state = self._handler, self._state
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        state.streams += 1
        count = 0
        try:
            if self._chat:
                self._event(self._chunk({"role": "assistant", "content": None}))
            for piece in state.pieces(self._most):
                time.sleep(state.switches.piece_seconds)
                count += 1
                self._event(
                    self._chunk({"content": piece}) if self._chat else {"content": piece, "stop": False}
                )
                state.die_if_told(count)
            self._close(count)
        except OSError:
            return  # the client is gone
        finally:
            state.streams -= 1

    def _close(self, count: int) -> None:
        figures = self._figures(count)
        if not self._chat:
            self._event({"content": "", "stop": True} | figures)
            return
        options = self._body.get("stream_options") or {}
        last = self._chunk({}, self._reason(count))
        if options.get("include_usage"):
            self._event(last)
            last = self._chunk({}) | {"choices": [], "usage": self._usage(count)}
        self._event(last | figures)
        self._handler.wfile.write(b"data: [DONE]\n\n")

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**_IDENTITY, "object": "chat.completion.chunk", "choices": [choice]}

    def _event(self, data: object) -> None:
        self._handler.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self._handler.wfile.flush()

    def _reason(self, count: int) -> str:
        return "length" if count >= self._most else "stop"

    def _usage(self, count: int) -> dict[str, Any]:
        prompt = self._kept + self._evaluated
        details = {"cached_tokens": self._kept}
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        return usage | {"prompt_tokens_details": details}

    def _figures(self, count: int) -> dict[str, Any]:
        if self._state.switches.no_timings:
            return {}
        return {"timings": self._state.timings(self._kept, self._evaluated, count)}


def _prompt_of(body: dict[str, Any]) -> str:
    parts = [json.dumps(body["tools"])] if body.get("tools") else []
    return "\n".join(
        [*parts, *(f"{one.get('role')}: {one.get('content')}" for one in body.get("messages", []))]
    )
