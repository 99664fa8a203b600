"""Images that a person attaches: which files they are, whether the model sees them, where they are kept."""

import errno
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.core.messages import Message, Picture, UserMessage
from agent.core.outside_text import shown_name
from agent.core.regular_file import read_regular
from agent.core.whole_file import write_whole
from agent.server.record import Endpoint

MOST_BYTES = 10 * 1024 * 1024
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")
BLIND = "its server says that the model cannot see images"
_PROPS_SECONDS = 5.0
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png", ".png"),
    (b"\xff\xd8\xff", "image/jpeg", ".jpg"),
    (b"GIF87a", "image/gif", ".gif"),
    (b"GIF89a", "image/gif", ".gif"),
    (b"BM", "image/bmp", ".bmp"),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an image is not attached, as the end of a sentence."""

    why: str


def looks_like_picture(path: Path) -> bool:
    """Whether the name is that of an image."""
    return path.suffix.lower() in SUFFIXES


def keep_picture(path: Path, name: str, folder: Path) -> Picture | Refused:
    """Copies an image into `folder`, where later requests and a resumed session find the same bytes.

    Reads and writes files, so call it in a thread.
    """
    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return Refused(f"it is larger than {MOST_BYTES // 2**20} MiB")
        return Refused(f"it cannot be read: {error.strerror or error}")
    return keep_content(content, name, folder)


def keep_content(content: bytes, name: str, folder: Path) -> Picture | Refused:
    """Keeps an image as `keep_picture` does, from its bytes. Writes a file, so call it in a thread."""
    if len(content) > MOST_BYTES:
        return Refused(f"it is larger than {MOST_BYTES // 2**20} MiB")
    found = next(((kind, end) for start, kind, end in _BEGINNINGS if content.startswith(start)), None)
    if found is None:
        return Refused("it is no PNG, JPEG, GIF or BMP, which is what model servers read")
    media_type, suffix = found
    target = folder / f"{hashlib.sha256(content).hexdigest()[:24]}{suffix}"
    try:
        if not target.exists():
            write_whole(target, content)
    except OSError as error:
        return Refused(f"it cannot be kept in {folder}: {error.strerror or error}")
    return Picture(str(target), name, media_type)


def sees(endpoint: Endpoint) -> bool:
    """Whether the model behind a server takes images, by what `/props` says (`modalities.vision`).

    A server that says nothing counts as one that does not. Waits for an answer, so call it in a thread.
    """
    return sees_at(endpoint.base_url, endpoint.api_key)


def sees_at(base_url: str, api_key: str) -> bool:
    """As `sees`, for a server of which nothing but address and key is known."""
    import httpx

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    plain = base_url.startswith("http://")
    try:
        with httpx.Client(timeout=_PROPS_SECONDS, trust_env=not plain, verify=not plain) as client:
            answer = client.get(f"{base_url}/props", headers=headers)
        props: Any = answer.json() if answer.status_code == 200 else {}
    except (httpx.HTTPError, OSError, ValueError):
        return False
    modalities = props.get("modalities") if isinstance(props, dict) else None
    return isinstance(modalities, dict) and modalities.get("vision") is True


def has_pictures(messages: Sequence[Message]) -> bool:
    return any(isinstance(one, UserMessage) and one.pictures for one in messages)


def without_pictures(messages: Sequence[Message]) -> list[Message]:
    """The conversation for a model that cannot see: each image is told in words."""
    return [_told(one) if isinstance(one, UserMessage) and one.pictures else one for one in messages]


def _told(message: UserMessage) -> UserMessage:
    names = ", ".join(shown_name(picture.name) for picture in message.pictures)
    return replace(message, text=f"(Images that you cannot see: {names})\n{message.text}", pictures=())
