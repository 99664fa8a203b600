"""Small blocking requests to a server that was started here.

They are on the path of every start of the program and of `agent server status`, so they use bare sockets:
even the standard library's HTTP client costs more to import than the answer takes.
"""

import json
import socket
from typing import Any

HOST = "127.0.0.1"
_LONGEST_HEAD = 64 * 1024


def status_of(port: int, path: str, timeout: float = 1.0, host: str = HOST) -> int | None:
    """The HTTP status of a GET without a key, or None when nothing there speaks HTTP.

    Args:
        timeout: seconds for connecting and for the answer, each.
    """
    request = f"GET {path} HTTP/1.1\r\nHost: {_authority(host, port)}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.sendall(request.encode("ascii"))
            line = connection.makefile("rb").readline(200)
    except OSError:
        return None
    return _status_in(line)


def keeps_silent(port: int, path: str, timeout: float, host: str = HOST) -> bool:
    """Whether something there takes a GET and says nothing for `timeout` seconds.

    It may be at work or hang; where nobody listens, or an error is the answer, nobody is served.
    """
    request = f"GET {path} HTTP/1.1\r\nHost: {_authority(host, port)}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.sendall(request.encode("ascii"))
            connection.recv(1)
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def request_json(
    port: int,
    method: str,
    path: str,
    api_key: str,
    body: Any = None,
    timeout: float = 5.0,
    host: str = HOST,
) -> tuple[int, Any]:
    """Status and decoded JSON of one request; None for what is no JSON.

    Raises:
        OSError: no connection, nothing received for `timeout` seconds, or no HTTP.
    """
    payload = b"" if body is None else json.dumps(body).encode("utf-8")
    # HTTP/1.0: the answer comes in one piece and ends with the connection.
    head = [f"{method} {path} HTTP/1.0", f"Host: {_authority(host, port)}", "Connection: close"]
    if api_key:
        head.append(f"Authorization: Bearer {api_key}")
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
    with socket.create_connection((host, port), timeout=timeout) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode("utf-8") + payload)
        with connection.makefile("rb") as answer:
            status, length = _read_head(answer)
            raw = answer.read(length) if length is not None else answer.read()
    if length is not None and len(raw) < length:
        raise OSError("the server closed the connection in the middle of its answer")
    try:
        return status, json.loads(raw)
    except ValueError:
        return status, None


def free_port(host: str = HOST) -> int:
    """A port that was free a moment ago."""
    with socket.create_server((host, 0), family=_family(host)) as probe:
        return probe.getsockname()[1]


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        # As a server does it; otherwise connections that have just ended would count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _read_head(answer: Any) -> tuple[int, int | None]:
    """Status and length of the body, None where it ends with the connection."""
    status = _status_in(answer.readline(_LONGEST_HEAD))
    if status is None:
        raise OSError("the answer is no HTTP")
    length = None
    while (line := answer.readline(_LONGEST_HEAD).strip()) != b"":
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    return status, length


def _status_in(line: bytes) -> int | None:
    parts = line.split()
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/") or not parts[1].isdigit():
        return None
    return int(parts[1])


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
