"""Stands between the agent and a real server, and has the model say what a script says.

Only what binds a reply is replaced, by something that allows nothing but the scripted one. For a call that is
a schema, which is no part of the prompt, so what the server's cache can give back is as it would be without
the proxy. For a plain text it is a grammar, and servers take none beside `tools`: those are left out.
"""

import http.client
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.fakes.state import CHAT_PATHS

Call = tuple[str, Mapping[str, Any]]
"""The name of a tool and its arguments."""

Answers = Callable[[Mapping[str, Any]], Call | str]
"""Says what the reply to the body of a chat is."""

NO_MORE = "the script has no other reply"
_PATIENCE_SECONDS = 600.0
_DATA = b"data: "
_BINDING_FIELDS = ("response_format", "grammar", "tools", "tool_choice")


class ForcingProxy:
    """Serves on the loopback address while it is entered.

    `steps` are the scripted replies in order, each a call or a plain text, and there is no answer to a chat
    after the last of them; or what answers each chat. `requests` are the bodies of the chats as they came
    from the agent, `timings` the server's own figures, one per chat that was answered to its end, and `left`
    the numbers of the chats, counted from 0, whose client did not wait for the end. `is_held` is set while a
    reply waits, see `hold`.
    """

    def __init__(
        self,
        port: int,
        api_key: str,
        steps: Sequence[Call | str] | Answers,
        handler: "type[Handler] | None" = None,
    ) -> None:
        """`handler` answers in another way."""
        self.requests: list[Mapping[str, Any]] = []
        self.left: list[int] = []
        self.upstream_port = port
        self.api_key = api_key
        self.steps = steps
        self.is_held = threading.Event()
        self._held_after = 0
        self._may_go = threading.Event()
        self._timings: dict[int, Mapping[str, Any]] = {}
        self._http = _Server(("127.0.0.1", 0), handler or Handler)
        self._http.proxy = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def timings(self) -> list[Mapping[str, Any]]:
        return [self._timings[number] for number in sorted(self._timings)]

    def note(self, number: int, line: bytes) -> None:
        """Keeps the figures in a line of the reply to that chat, if there are any."""
        if line.startswith(_DATA) and b'"timings"' in line:
            # Some servers send the figures with every chunk; the last ones of a request count.
            self.keep(number, json.loads(line[len(_DATA) :])["timings"])

    def keep(self, number: int, timings: Mapping[str, Any]) -> None:
        """Keeps the figures of that chat."""
        self._timings[number] = timings

    def __enter__(self) -> "ForcingProxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def hold(self, pieces: int) -> None:
        """Lets no more than so many pieces of a reply's stream through, until `let_go` is called."""
        self.is_held.clear()
        self._may_go.clear()
        self._held_after = pieces

    def let_go(self) -> None:
        """Lets a held reply go on, and holds no other."""
        self._held_after = 0
        self._may_go.set()

    def wait_if_held(self, pieces: int) -> None:
        if 0 < self._held_after < pieces:
            self.is_held.set()
            self._may_go.wait(_PATIENCE_SECONDS)

    def next_step(self, body: Mapping[str, Any]) -> Call | str | None:
        """Notes the chat, and says what the reply to it is; None when there is no other."""
        if callable(self.steps):
            step = self.steps(body)
        elif len(self.requests) == len(self.steps):
            return None
        else:
            step = self.steps[len(self.requests)]
        self.requests.append(body)
        return step

    def forced(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """The request with the next scripted reply as the only possible one; None when there is no other."""
        step = self.next_step(body)
        if step is None:
            return None
        if isinstance(step, str):
            rest = {name: value for name, value in body.items() if name not in _BINDING_FIELDS}
            return {**rest, "grammar": f"root ::= {json.dumps(step)}"}
        name, arguments = step
        fields = {"tool": name, **arguments}
        schema = {
            "type": "object",
            "properties": {key: {"const": value} for key, value in fields.items()},
            "required": list(fields),
            "additionalProperties": False,
        }
        form = {"type": "json_schema", "json_schema": {"name": "forced", "strict": True, "schema": schema}}
        rest = {name: value for name, value in body.items() if name != "grammar"}
        return {**rest, "response_format": form}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: ForcingProxy


class Handler(BaseHTTPRequestHandler):
    """Answers one connection of the agent's."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self.answer_get()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path not in CHAT_PATHS:
            self._forward(body)
        else:
            self.answer_chat(body)

    def answer_get(self) -> None:
        """Gives what the server says."""
        self._forward(None)

    def answer_chat(self, body: dict[str, Any]) -> None:
        """Has the server give the next reply of the script."""
        forced = self.server.proxy.forced(body)
        if forced is None:
            self.send_error(400, NO_MORE)
            return
        number = len(self.server.proxy.requests) - 1
        try:
            self._forward(forced, chat=number)
        except ConnectionError:
            self.server.proxy.left.append(number)
            self.close_connection = True

    def _forward(self, body: Any, *, chat: int | None = None) -> None:
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
            pieces = 0
            for line in answer:
                if chat is not None:
                    pieces += b'"delta"' in line
                    proxy.wait_if_held(pieces)
                    proxy.note(chat, line)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            upstream.close()
