"""What an editor sends as a prompt, as the text that a session takes."""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp import RequestError
from acp.helpers import ContentBlock
from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from agent.core.outside_text import fenced, one_line

_INVALID_PARAMS = -32602


def images_in(blocks: Sequence[ContentBlock]) -> list[bytes]:
    """The images of a prompt, in their order.

    Raises:
        RequestError: one of them is no base64.
    """
    try:
        return [
            base64.b64decode(block.data, validate=True)
            for block in blocks
            if isinstance(block, ImageContentBlock)
        ]
    except (ValueError, binascii.Error):
        raise RequestError(_INVALID_PARAMS, "an image of the prompt is no base64") from None


def prompt_text(blocks: Sequence[ContentBlock], workspace: Path, images: Sequence[str] = ()) -> str:
    """One text. A linked file of the workspace becomes a mention, which the session reads by its rules.

    `images` are the files that keep those of `images_in`; they become mentions, too.

    Raises:
        RequestError: there is no text in it, or something that no model here can take.
    """
    typed: list[str] = []
    attached: list[str] = []
    files = iter(images)
    before: ContentBlock | None = None
    for block in blocks:
        if isinstance(block, TextContentBlock):
            # Around a link the text goes on; two texts in a row are two paragraphs.
            typed.append(f"\n\n{block.text}" if isinstance(before, TextContentBlock) else block.text)
        elif isinstance(block, ResourceContentBlock):
            typed.append(_link(block, workspace))
        elif isinstance(block, EmbeddedResourceContentBlock):
            typed.append(_name(block.resource.uri, workspace))
            attached.append(_embedded(block.resource, workspace))
        elif isinstance(block, ImageContentBlock):
            typed.append(f' @"{next(files)}" ')
        else:
            raise RequestError(_INVALID_PARAMS, "the prompt has a sound, which no model here takes")
        before = block
    text = "".join(typed).strip()
    if not text:
        raise RequestError(_INVALID_PARAMS, "the prompt is empty")
    return "\n\n".join([text, *attached])


def file_of(uri: str) -> Path | None:
    """The file that a URI names, None where it names something else."""
    if uri.startswith("/"):
        return Path(uri)
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path)) if parts.path.startswith("/") else None


def _lines(uri: str) -> tuple[int, int] | None:
    """The lines that editors put behind `#`, as in `#L10:20`, `#L10-L20` and `#L10`; counted from 1."""
    mark = uri.partition("#")[2].replace("-", ":").replace("L", "")
    first, _, last = mark.partition(":")
    if not first.isdecimal():
        return None
    return int(first), int(last) if last.isdecimal() else int(first)


def _inside(path: Path, workspace: Path) -> str | None:
    """The path from the workspace, None for a file outside of it."""
    resolved = path.resolve()
    return resolved.relative_to(workspace).as_posix() if resolved.is_relative_to(workspace) else None


def _link(block: ResourceContentBlock, workspace: Path) -> str:
    path = file_of(block.uri)
    inside = _inside(path, workspace) if path is not None else None
    if inside is None:
        return f"{one_line(block.name, 100)} ({one_line(block.uri, 300)})"
    lines = _lines(block.uri)
    span = f":{lines[0]}-{lines[1]}" if lines else ""
    # A mention has to stand alone, whatever was typed around it.
    return f' @"{inside}"{span} ' if any(char.isspace() for char in inside) else f" @{inside}{span} "


def _name(uri: str, workspace: Path) -> str:
    """How a text that comes along is called in the sentence that mentions it."""
    path = file_of(uri)
    if path is None:
        return one_line(uri, 200)
    lines = _lines(uri)
    span = f", lines {lines[0]}-{lines[1]}" if lines else ""
    return f"{_inside(path, workspace) or path}{span}"


def _embedded(resource: TextResourceContents | BlobResourceContents, workspace: Path) -> str:
    name = _name(resource.uri, workspace)
    if isinstance(resource, BlobResourceContents):
        raise RequestError(_INVALID_PARAMS, f"the model takes text only, and {name} is none")
    return f"{name}:\n{fenced(resource.text)}"
