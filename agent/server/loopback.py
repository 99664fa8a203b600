"""Small blocking requests to a server on this machine.

The health check is on the path of every start of the program, so it uses a bare socket: even the
standard library's HTTP client costs more to import than the answer takes.
"""

import json
import socket
from typing import Any

HOST = "127.0.0.1"


def status_of(port: int, path: str, timeout: float = 1.0) -> int | None:
    """The HTTP status of a GET without a key, or None when nothing there speaks HTTP.

    Args:
        timeout: seconds for connecting and for the answer, each.
    """
    request = f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((HOST, port), timeout=timeout) as connection:
            connection.sendall(request.encode("ascii"))
            line = connection.makefile("rb").readline(200)
    except OSError:
        return None
    parts = line.split()
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/") or not parts[1].isdigit():
        return None
    return int(parts[1])


def request_json(
    port: int, method: str, path: str, api_key: str, body: Any = None, timeout: float = 5.0
) -> tuple[int, Any]:
    """Status and decoded JSON of one request.

    Raises:
        OSError: no connection, no answer in `timeout` seconds, or no HTTP (`http.client` errors included).
    """
    import http.client

    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    headers = {"Authorization": f"Bearer {api_key}", "Connection": "close"}
    payload = None
    if body is not None:
        payload = json.dumps(body).encode("utf-8")
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body=payload, headers=headers)
        response = connection.getresponse()
        raw = response.read()
    except http.client.HTTPException as error:
        raise OSError(f"no proper HTTP answer: {error!r}") from error
    finally:
        connection.close()
    try:
        return response.status, json.loads(raw)
    except ValueError:
        return response.status, None


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As a server does it; otherwise connections that have just ended would count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
