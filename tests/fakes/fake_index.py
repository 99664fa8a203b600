"""A package index on this machine: a page for each project, files that can be had in part, and faults."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class FakeIndex:
    """Serves the files of a folder. `ranges` are the Range headers that came, `asked` the paths.

    `cut_after`: a file ends after so many bytes, once. `status`: what everything is answered with.
    """

    def __init__(self, shelf: Path) -> None:
        self.shelf = shelf
        self.asked: list[str] = []
        self.ranges: list[str | None] = []
        self.cut_after: int | None = None
        self.status: int | None = None
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.answer(self)

            def log_message(self, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/simple"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if self.status is not None:
            return _send(request, self.status, b"")
        if request.path == "/simple/pack/":
            links = [
                f'<a href="../../files/{path.name}#sha256=0">{path.name}</a>' for path in self.shelf.iterdir()
            ]
            page = f"<!DOCTYPE html><html><body>{'<br/>'.join(links)}</body></html>"
            return _send(request, 200, page.encode("utf-8"))
        file = self.shelf / request.path.rpartition("/")[2]
        if not request.path.startswith("/files/") or not file.is_file():
            return _send(request, 404, b"")
        return self._send_file(request, file.read_bytes())

    def _send_file(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        wanted = request.headers.get("Range")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        body, whole = content[start:], len(content) - start
        if self.cut_after is not None:
            body, self.cut_after = body[: self.cut_after], None
        _send(request, 206 if wanted else 200, body, whole)


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, length: int | None = None) -> None:
    request.send_response(status)
    request.send_header("Content-Length", str(len(body) if length is None else length))
    request.end_headers()
    request.wfile.write(body)
    request.close_connection = True


@contextmanager
def fake_index(shelf: Path) -> Iterator[FakeIndex]:
    index = FakeIndex(shelf)
    try:
        yield index
    finally:
        index.close()
