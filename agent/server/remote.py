"""A first look at a server that somebody else runs."""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from agent.core.errors import ServerError
from agent.server.probe import Offer

_SECONDS = 10.0


def describe(base_url: str, api_key: str) -> Offer:
    """Reads `/props`. A server that has no such page is none of llama.cpp's: its window stays unknown (0).

    Raises:
        ServerError: nothing answers there, or the key is refused.
    """
    try:
        status, body = _get(base_url, "/props", api_key)
    except (OSError, http.client.HTTPException, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ServerError(
            f"no server answers at {base_url}: {reason}", "start it, or correct server.url"
        ) from None
    if status in (401, 403):
        raise ServerError(
            f"the server at {base_url} refuses the API key",
            "name the variable that holds it in server.api_key_env",
        )
    return _offer(body) if status == 200 else Offer(0, 1)


def _offer(body: bytes) -> Offer:
    try:
        props: Any = json.loads(body)
        settings = props.get("default_generation_settings") or {}
        return Offer(int(settings.get("n_ctx") or 0), int(props.get("total_slots") or 1))
    except (ValueError, AttributeError, TypeError):
        return Offer(0, 1)


def _get(base_url: str, path: str, api_key: str) -> tuple[int, bytes]:
    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        connection.request("GET", f"{parts.path.rstrip('/')}{path}", headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
