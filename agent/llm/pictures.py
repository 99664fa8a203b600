"""Images in a request: parts of a message's content, as the chat completions API takes them."""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.core.control_tokens import disarmed
from agent.core.messages import Picture
from agent.core.outside_text import shown_name
from agent.llm.failures import Failure

Content = str | list[dict[str, Any]]
Record = Mapping[str, Any]
# llama-server: "Failed to load image or audio file", "failed to process mtmd chunk", "image input is not
# supported"; others: "Invalid image data", "could not process image".
_REFUSED = re.compile(
    r"(?:load|decode|process|read|invalid|unsupported)\b.{0,40}\b(?:image|mtmd|media|bitmap)"
    r"|\b(?:image|media|bitmap)\b.{0,60}(?:fail|invalid|not support|unsupported|cannot|could not)",
    re.IGNORECASE,
)
_TOLD = {"type": "text", "text": "(An image that the server could not read.)"}


class EncodedPictures:
    """The images of a conversation as they are sent, each read once. One that is gone meanwhile stays."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}

    def url(self, picture: Picture) -> str:
        """The bytes as a `data:` address. Raises OSError where the file cannot be read."""
        if picture.file not in self._urls:
            data = base64.b64encode(Path(picture.file).read_bytes()).decode("ascii")
            self._urls[picture.file] = f"data:{picture.media_type};base64,{data}"
        return self._urls[picture.file]


class PictureHabits:
    """Leaves out images that a server has refused: a broken one would end every later request, too."""

    def __init__(self) -> None:
        self._refused: frozenset[str] = frozenset()
        self._newest: frozenset[str] = frozenset()

    def learn(self, failure: Failure) -> str:
        """One line for people on what changes from now on; empty where the failure is about no image.

        Which image is meant no server says, so those of the newest message go first.
        """
        if not self._newest or not _REFUSED.search(failure.said):
            return ""
        self._refused |= self._newest
        self._newest = frozenset()
        return "the server cannot read an image of the last message that has some, so it gets them in words"

    def arranged(self, wire: Sequence[Record]) -> list[Record]:
        """The messages of a request without the images that were refused."""
        records = [self._without(record) for record in wire] if self._refused else list(wire)
        shown = (frozenset(_urls(record)) for record in reversed(records))
        self._newest = next(filter(None, shown), frozenset())
        return records

    def _without(self, record: Record) -> Record:
        if self._refused.isdisjoint(_urls(record)):
            return record
        parts = [_TOLD if _url(part) in self._refused else part for part in record["content"]]
        return {**record, "content": parts}


def _urls(record: Record) -> Iterator[str]:
    content = record.get("content")
    return filter(None, map(_url, content)) if isinstance(content, list) else iter(())


def _url(part: Mapping[str, Any]) -> str:
    return part["image_url"]["url"] if part.get("type") == "image_url" else ""


def with_pictures(text: str, pictures: Sequence[Picture], encoded: EncodedPictures) -> Content:
    """The text alone, or the images and then the text. A file that is gone is told in words.

    The bytes are the same in every request, so the server's prompt cache holds.
    """
    parts: list[dict[str, Any]] = []
    lost: list[str] = []
    for picture in pictures:
        try:
            url = encoded.url(picture)
        except OSError:
            lost.append(f"(The image {disarmed(shown_name(picture.name))} is no longer there.)")
            continue
        parts.append({"type": "image_url", "image_url": {"url": url}})
    whole = "\n".join([*lost, text])
    return [*parts, {"type": "text", "text": whole}] if parts else whole


def joined(one: Content, other: Content) -> Content:
    """The contents of two neighbouring messages as one."""
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    return [*_parts(one), *_parts(other)]


def _parts(content: Content) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
