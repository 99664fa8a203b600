"""How many tokens a text has: as the server's own tokenizer says, else estimated."""

import json
from collections.abc import Sequence
from urllib.parse import urlsplit

CHARACTERS_PER_TOKEN = 3.6
"""About right for code and English with the tokenizers of today's open models; an estimate says so."""

_SECONDS = 10.0


def estimate(text: str) -> int:
    """Tokens of `text` by its length."""
    return round(len(text) / CHARACTERS_PER_TOKEN)


def count_tokens(base_url: str, api_key: str, texts: Sequence[str]) -> list[int] | None:
    """Tokens of each text by llama-server's `POST /tokenize`; None where the server has no such thing.

    Blocks, so call it in a thread.
    """
    import http.client

    parts = urlsplit(base_url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
    headers = {"Content-Type": "application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    counts: list[int] = []
    try:
        for text in texts:
            body = json.dumps({"content": text}).encode("utf-8", "replace")
            connection.request("POST", f"{parts.path.rstrip('/')}/tokenize", body, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200:
                return None
            counts.append(len(answer["tokens"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()
    return counts
