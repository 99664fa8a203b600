"""Stands between the agent and a real server, and has the model say what a script says.

Only the schema that binds a reply is replaced, by one that allows nothing but the scripted call. A schema is
no part of the prompt, so what the server's cache can give back is as it would be without the proxy.
"""

import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.fakes.state import CHAT_PATHS

_PATIENCE_SECONDS = 600.0
_DATA = b"data: "


class ForcingProxy:
    """Serves on the loopback address while it is entered.

    `calls` are the scripted calls: the name of a tool and its arguments. `timings` are the server's own, one
    per chat request.
    """

    def __init__(self, port: int, api_key: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self.timings: list[Mapping[str, Any]] = []
        self.upstream_port = port
        self.api_key = api_key
        self.calls = calls
        self.asked = 0
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.proxy = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "ForcingProxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def forced(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with the next scripted call as the only possible reply."""
        name, arguments = self.calls[self.asked]
        self.asked += 1
        fields = {"tool": name, **arguments}
        schema = {
            "type": "object",
            "properties": {key: {"const": value} for key, value in fields.items()},
            "required": list(fields),
            "additionalProperties": False,
        }
        form = {"type": "json_schema", "json_schema": {"name": "forced", "strict": True, "schema": schema}}
        return {**body, "response_format": form}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: ForcingProxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._forward(None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._forward(self.server.proxy.forced(body) if self.path in CHAT_PATHS else body)

    def _forward(self, body: Any) -> None:
        proxy = self.server.proxy
        headers = {"Authorization": f"Bearer {proxy.api_key}", "Content-Type": "application/json"}
        upstream = http.client.HTTPConnection("127.0.0.1", proxy.upstream_port, timeout=_PATIENCE_SECONDS)
        try:
            upstream.request(self.command, self.path, None if body is None else json.dumps(body), headers)
            answer = upstream.getresponse()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in answer:
                self._note(line)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            upstream.close()

    def _note(self, line: bytes) -> None:
        if line.startswith(_DATA) and b'"timings"' in line:
            timings = json.loads(line[len(_DATA) :]).get("timings")
            # Some servers send the figures with every chunk; the last ones of a request count.
            del self.server.proxy.timings[self.server.proxy.asked - 1 :]
            self.server.proxy.timings.append(timings)
