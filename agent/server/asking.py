"""One small question to a server that somebody else runs, here or elsewhere."""

import json
from typing import Any
from urllib.parse import urlsplit

from agent.core.errors import ServerError

PATIENCE_SECONDS = 10.0
_MOST_BYTES = 8 * 1024 * 1024


def ask(
    base_url: str, path: str, api_key: str = "", *, body: Any = None, timeout: float = PATIENCE_SECONDS
) -> tuple[int, Any]:
    """Status and decoded JSON of a GET, or of a POST where there is a `body`. No JSON counts as None.

    Args:
        base_url: without `/v1`; may have a path of its own.
        timeout: seconds for connecting and for the answer, each.

    Raises:
        ServerError: nothing answers there.
    """
    import http.client

    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    payload = None
    if body is not None:
        payload = json.dumps(body).encode("utf-8")
        headers["Content-Type"] = "application/json"
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        try:
            method = "GET" if payload is None else "POST"
            connection.request(method, f"{parts.path.rstrip('/')}{path}", body=payload, headers=headers)
            response = connection.getresponse()
            status, raw = response.status, response.read(_MOST_BYTES)
        finally:
            connection.close()
    except UnicodeError as error:  # an empty or overlong part between two dots
        raise _no_answer(base_url, f"{parts.hostname} is no name of a host") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise _no_answer(base_url, reason) from error
    try:
        return status, json.loads(raw)
    except (ValueError, RecursionError):
        return status, None


def _no_answer(base_url: str, reason: str) -> ServerError:
    return ServerError(
        f"no server answers at {base_url}: {reason}",
        "check that it runs, and server.url or the profile's url",
    )
