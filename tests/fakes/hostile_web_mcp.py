"""A server at an address that speaks MCP badly. Its path says how.

    silent        never answers
    garbage       answers with what is no JSON
    page          answers as a web page
    call-silent   never answers a call
    call-ends     closes the connection in the middle of a call
    call-flood    sends notifications without end for a call
    call-endless  sends one event without end
    call-garbage  sends events that are no messages

One that never answers, or never ends, does so until `over` is set.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
_LISTED = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
_FLOOD = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
_PIECES = {
    "call-flood": b"data: " + json.dumps(_FLOOD).encode() + b"\n\n",
    "call-endless": b"x" * 65536,
    "call-garbage": b"data: {nope\n\n",
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    over: threading.Event

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._answer(405, "text/plain", b"")

    def do_DELETE(self) -> None:
        self._answer(405, "text/plain", b"")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with suppress(ConnectionError):
            self._react(self.path.strip("/"), message)

    def _react(self, habit: str, message: dict[str, Any]) -> None:
        if habit == "silent":
            self.over.wait()
        elif habit == "garbage":
            self._answer(200, "application/json", b"{not json")
        elif habit == "page":
            self._answer(200, "text/html", b"<p>Hello")
        elif "id" not in message:
            self._answer(202, "text/plain", b"")
        elif message["method"] == "tools/call":
            self._called(habit)
        else:
            known = {"initialize": _INITIALIZED, "tools/list": _LISTED}.get(message["method"])
            said = {"result": known} if known else {"error": {"code": -32601, "message": "no such method"}}
            self._answer(
                200, "application/json", json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode()
            )

    def _called(self, habit: str) -> None:
        if habit == "call-silent":
            self.over.wait()
        if habit not in _PIECES:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if habit == "call-endless":
            self.wfile.write(b"data: ")
        while not self.over.is_set():
            self.wfile.write(_PIECES[habit])

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def hostile_web_mcp() -> Iterator[str]:
    """Serves on a free port of this machine; gives the address before the path."""
    over = threading.Event()
    handler = type("Handler", (_Handler,), {"over": over})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()
            thread.join()
