"""A model hub on the loopback interface that serves one file, with faults on demand."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FakeHub:
    """`cut_after`: the first so many bytes of an answer are sent, then the connection is closed.

    `pause_after`: beyond so many bytes of the file it sends nothing before `go_on`, also to whoever asks
    again; at most half a minute.
    `tag` is what it names as the file's sha256 when it is asked about it, empty = another kind of tag.
    """

    content: bytes = b""
    status: int = 200
    tag: str = ""
    cut_after: int | None = None
    pause_after: int | None = None
    go_on: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


@contextmanager
def running_hub(hub: FakeHub) -> Iterator[FakeHub]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            hub.requests.append((f"HEAD {self.path}", None))
            self.send_response(hub.status if hub.status != 200 else 302)
            self.send_header("Location", "https://storage.invalid/file")
            self.send_header("X-Repo-Commit", "c0ffee")
            self.send_header("X-Linked-Size", str(len(hub.content)))
            self.send_header("X-Linked-Etag", f'"{hub.tag or "5d41402a"}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            hub.requests.append((self.path, wanted))
            if hub.status != 200:
                self.send_response(hub.status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start, _, last = (wanted or "bytes=0-").removeprefix("bytes=").partition("-")
            body = hub.content[int(start) : int(last) + 1 if last else None]
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut, hub.cut_after = hub.cut_after, None
            body = body if cut is None else body[:cut]
            with suppress(ConnectionError):  # whoever asked may have left meanwhile
                if hub.pause_after is not None and not hub.go_on.is_set():
                    at_once = max(0, hub.pause_after - int(start))
                    self.wfile.write(body[:at_once])
                    hub.go_on.wait(30)
                    body = body[at_once:]
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
