"""A server that somebody else runs: is it there, and how much context does a conversation get."""

import json
from typing import Any
from urllib.parse import urlsplit

from agent.core.errors import ServerError
from agent.server.probe import Offer, offer_in

_SECONDS = 10.0


class StillLoadingError(ServerError):
    """The server is there and loads its model; the same question may be asked again in a moment."""

    def __init__(self, base_url: str) -> None:
        super().__init__(f"the server at {base_url} is still loading its model", "try again in a moment")


def describe(base_url: str, api_key: str = "") -> Offer:
    """What the server at `base_url` (without `/v1`) offers. `context_tokens` is 0 when it does not say.

    Raises:
        StillLoadingError: it is loading its model.
        ServerError: nothing answers there, or it wants another key.
    """
    health, _ = _get(base_url, "/health", api_key)
    status, answer = _get(base_url, "/props", api_key) if health != 503 else (503, None)
    if status == 503:
        raise StillLoadingError(base_url)
    if status in (401, 403):
        raise ServerError(
            f"the server at {base_url} does not accept the key (HTTP {status})",
            "name the environment variable that holds its key in server.api_key_env",
        )
    if isinstance(answer, dict) and answer.get("role") == "router":
        raise ServerError(
            f"the server at {base_url} is a router without a model of its own",
            "start it with a model, or give the address of one of its servers",
        )
    offer = offer_in(answer) if status == 200 else None
    if offer is None and health >= 500:
        raise ServerError(f"the server at {base_url} answers with HTTP {health}", "look into its log")
    return offer or Offer(0, 1)


def _get(base_url: str, path: str, api_key: str) -> tuple[int, Any]:
    import http.client

    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
        try:
            connection.request("GET", f"{parts.path.rstrip('/')}{path}", headers=headers)
            response = connection.getresponse()
            status, raw = response.status, response.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ServerError(
            f"no server answers at {base_url}: {reason}",
            "check that it runs, and server.url or the profile's url",
        ) from error
    try:
        return status, json.loads(raw)
    except ValueError:
        return status, None
