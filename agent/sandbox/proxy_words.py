"""What a proxy reads of a request, and what it says: heads of HTTP/1.1, nothing of bodies."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_FOR_THE_NEXT_HOP = {
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "upgrade",
    "host",
}
_REASONS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable"}


class BadRequestError(Exception):
    """The request is none that a proxy could serve."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request wants to go. `head` is what the host gets, empty for a tunnel."""

    host: str
    port: int
    head: bytes = b""

    @property
    def is_tunnel(self) -> bool:
        return not self.head

    @property
    def shown(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_target(head: bytes) -> Target:
    """Reads the head of a request, the empty line at its end included.

    Raises:
        BadRequestError: it is neither CONNECT nor about an http:// address, or no head at all.
    """
    lines = head[:-4].decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or b"\0" in head:
        raise BadRequestError("this is a proxy for HTTP/1.1")
    if any(mark in line for line in lines for mark in "\r\n"):
        raise BadRequestError("the head has lines that do not end as they should")
    method, address, _ = words
    if method == "CONNECT":
        return Target(*_host_and_port(f"//{address}", None))
    if not address.lower().startswith("http://"):
        raise BadRequestError("this is a proxy, for CONNECT and for http:// addresses")
    host, port = _host_and_port(address, 80)
    return Target(host, port, _request(method, address, host, port, lines[1:]))


def answer(status: int, line: str) -> bytes:
    """A whole answer. The line is in the reason too, as many programs show nothing else of it."""
    plain = line.encode("ascii", "replace").decode("ascii")
    body = f"agent-sandbox: {plain}\n"
    return (
        f"HTTP/1.1 {status} {_REASONS[status]} (agent-sandbox: {plain})\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    ).encode("ascii")


def closing_head(head: bytes) -> bytes:
    """The head of an answer, with the word that the connection ends with it."""
    lines = head[:-4].split(b"\r\n")
    kept = [
        line
        for line in lines[1:]
        if line.split(b":", 1)[0].strip().lower() not in (b"connection", b"proxy-connection", b"keep-alive")
    ]
    return b"\r\n".join([lines[0], *kept, b"Connection: close", b"", b""])


def _request(method: str, address: str, host: str, port: int, fields: list[str]) -> bytes:
    """For the host itself: its form of the address, and its name as it was judged, not as it was claimed."""
    parts = urlsplit(address)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    named = {
        name.strip().lower()
        for field in fields
        if field.lower().startswith("connection:")
        for name in field.split(":", 1)[1].split(",")
    }
    dropped = (_FOR_THE_NEXT_HOP | named) - {"transfer-encoding", "content-length"}
    kept = [field for field in fields if field.split(":", 1)[0].strip().lower() not in dropped]
    shown = f"[{host}]" if ":" in host else host
    name = shown if port == 80 else f"{shown}:{port}"
    lines = [f"{method} {path} HTTP/1.1", f"Host: {name}", *kept, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _host_and_port(address: str, default: int | None) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or default
    except ValueError:
        host, port = None, None
    if not host or port is None:
        raise BadRequestError("the address has no host or no port")
    return host, port
