"""The address on this machine to which a browser comes back after a person has signed in."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agent.core.errors import AgentError
from agent.mcp.text import one_line

_PATH = "/callback"
_LARGEST_REQUEST = 16 * 1024
_REQUEST_SECONDS = 10.0
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>agent</title>"
    "<p style='font-family:sans-serif;margin:3em'>{text} You can close this window.</p>"
)


class Callback:
    """Listens on the loopback address only. Use as an asynchronous context manager, for one sign-in."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is how long `result` waits for the person."""
        self._seconds = seconds
        self._server: asyncio.Server | None = None
        self._query: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self.address = ""

    async def __aenter__(self) -> "Callback":
        try:
            self._server = await asyncio.start_server(self._visited, "127.0.0.1", 0, limit=_LARGEST_REQUEST)
        except OSError as error:
            raise AgentError(
                f"no port on 127.0.0.1 can be opened for the sign-in: {error.strerror}"
            ) from error
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}{_PATH}"
        return self

    async def __aexit__(self, *_: Any) -> None:
        if self._server is not None:
            self._server.close()
        self._query.cancel()

    def take(self, address: str) -> bool:
        """Takes the address that a browser ended at, where it could not come here itself."""
        parts = urlsplit(address.strip())
        return parts.path == _PATH and self._take(parts.query)

    async def result(self) -> Any:
        """The library's `AuthorizationCodeResult`.

        Raises:
            AgentError: nobody signed in in time, or the server said no.
        """
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            query = await asyncio.wait_for(asyncio.shield(self._query), self._seconds)
        except TimeoutError:
            raise AgentError(f"nobody signed in within {self._seconds:g} seconds") from None
        if "error" in query or "code" not in query:
            why = query.get("error_description") or query.get("error") or "it gave no code"
            raise AgentError(f"the sign-in was refused: {one_line(why, 200)}")
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    def _take(self, text: str) -> bool:
        query = {name: values[0] for name, values in parse_qs(text[:_LARGEST_REQUEST]).items()}
        if self._query.done() or not {"code", "error"} & set(query):
            return False
        self._query.set_result(query)
        return True

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._answer(head)
                page = _PAGE.format(text=text).encode("utf-8")
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n".encode("ascii")
                    + page
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever that was; the browser will come again
        finally:
            writer.close()

    def _answer(self, head: bytes) -> tuple[str, str]:
        words = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
        if len(words) != 3 or words[0] != "GET":
            return "405 Method Not Allowed", "This is not a page."
        parts = urlsplit(words[1])
        if parts.path != _PATH:
            return "404 Not Found", "There is nothing here."
        if not self._take(parts.query):
            return "400 Bad Request", "This sign-in is over, or was not this one."
        is_refused = "error" in parse_qs(parts.query)
        return "200 OK", "The sign-in was refused." if is_refused else "The sign-in went through."
