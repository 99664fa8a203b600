"""What tools, prompts and resources consist of, as text. What is no text is named, and kept as a file."""

import base64
import binascii
import hashlib
import mimetypes
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agent.core.outside_text import fenced, tidy
from agent.core.whole_file import write_whole
from agent.mcp.text import one_line

LARGEST_CHARACTERS = 400_000
"""More is cut here already; how much of it the model gets is the executor's business."""

MOST_BLOCKS = 1000
MOST_KEPT = 20

Keep = Callable[[bytes, str], str]
"""Keeps bytes of a media type as a file; gives its path, or an empty text where that is not done."""


def nothing_kept(_content: bytes, _media_type: str) -> str:
    """For where nobody could look at a file."""
    return ""


def kept_in(folder: Path) -> Keep:
    """Keeps files in `folder`, at most `MOST_KEPT` with one `Keep`. A full disk only costs the file."""
    kept: set[Path] = set()

    def keep(content: bytes, media_type: str) -> str:
        ending = mimetypes.guess_extension(media_type.partition(";")[0].strip().lower()) or ".bin"
        path = folder / f"mcp-{hashlib.sha256(content).hexdigest()[:12]}{ending}"
        if len(kept) >= MOST_KEPT:
            return ""
        try:
            write_whole(path, content)
        except OSError:
            return ""
        kept.add(path)
        return str(path)

    return keep


def noting_images(keep: Keep, images: list[Path]) -> Keep:
    """As `keep`, and adds the images among what it keeps to `images`, each once."""

    def noting(content: bytes, media_type: str) -> str:
        path = keep(content, media_type)
        if path and media_type.lower().startswith("image/") and Path(path) not in images:
            images.append(Path(path))
        return path

    return noting


def as_text(blocks: Iterable[Any], keep: Keep = nothing_kept) -> str:
    """Content blocks one below the other, without what nobody would see."""
    parts = [described(block, keep) for block in list(blocks)[:MOST_BLOCKS]]
    return tidy("\n".join(filter(None, parts))[:LARGEST_CHARACTERS]).strip()


def described(block: Any, keep: Keep) -> str:
    """One content block."""
    if block.type == "text":
        return block.text
    if block.type in ("image", "audio"):
        return _media(block.type, block.mime_type, block.data, keep)
    if block.type == "resource_link":
        return f"[resource {one_line(block.name, 80)}: {one_line(str(block.uri), 300)}]"
    resource = getattr(block, "resource", None)
    if resource is None:
        return f"[{one_line(str(block.type), 40)}, not shown]"
    return contents(resource, keep)


def contents(resource: Any, keep: Keep) -> str:
    """What is in a resource."""
    uri = one_line(str(resource.uri), 300)
    text = getattr(resource, "text", None)
    if text is not None:
        return f"[resource {uri}]\n{text}"
    return _media(f"resource {uri}", resource.mime_type, getattr(resource, "blob", ""), keep)


def _media(what: str, media_type: str | None, data: str, keep: Keep) -> str:
    kind = one_line(media_type or "", 60)
    named = f"{what} {kind}".rstrip()
    try:
        content = base64.b64decode(data, validate=False)
    except (ValueError, binascii.Error):
        return f"[{named}, which cannot be decoded]"
    path = keep(content, kind)
    return f"[{named}, {len(content)} bytes, {f'kept as {path}' if path else 'not shown'}]"


def as_document(result: Any, keep: Keep) -> str:
    """A server's `ReadResourceResult`: texts one below the other, everything else named."""
    found = result.contents[:MOST_BLOCKS]
    only = found[0] if len(found) == 1 else None
    text = getattr(only, "text", None)
    joined = text if text is not None else "\n".join(contents(item, keep) for item in found)
    return tidy(joined[:LARGEST_CHARACTERS]).strip()


def as_prompt(result: Any) -> str:
    """A server's `GetPromptResult` as one message of the person's; what it has the model say is marked."""
    parts: list[str] = []
    for message in result.messages[:MOST_BLOCKS]:
        text = described(message.content, nothing_kept).strip()
        # A document in it is no words of the person's, who chose the prompt alone.
        text = fenced(text) if text and message.content.type == "resource" else text
        if text:
            parts.append(text if message.role == "user" else f"(You answered:)\n{text}")
    return tidy("\n\n".join(parts)[:LARGEST_CHARACTERS]).strip()
