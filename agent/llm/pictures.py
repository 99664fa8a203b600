"""Images in a request: parts of a message's content, as the chat completions API takes them."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.core.control_tokens import disarmed
from agent.core.messages import Picture
from agent.core.outside_text import shown_name

Content = str | list[dict[str, Any]]


def with_pictures(text: str, pictures: Sequence[Picture]) -> Content:
    """The text alone, or the images and then the text. A file that is gone is told in words.

    The bytes are the same in every request, so the server's prompt cache holds.
    """
    parts: list[dict[str, Any]] = []
    lost: list[str] = []
    for picture in pictures:
        try:
            data = base64.b64encode(Path(picture.file).read_bytes()).decode("ascii")
        except OSError:
            lost.append(f"(The image {disarmed(shown_name(picture.name))} is no longer there.)")
            continue
        parts.append({"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{data}"}})
    whole = "\n".join([*lost, text])
    return [*parts, {"type": "text", "text": whole}] if parts else whole


def joined(one: Content, other: Content) -> Content:
    """The contents of two neighbouring messages as one."""
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    return [*_parts(one), *_parts(other)]


def _parts(content: Content) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
