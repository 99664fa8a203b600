"""Reads here-documents: finds their end independently of the grammar, which is not reliable there."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.permissions.literals import UnreadableError, check_expansions, source_of

if TYPE_CHECKING:
    from tree_sitter import Node

_DELIMITER = re.compile(r"(['\"]?)([A-Za-z_][A-Za-z_0-9]*)\1")


@dataclass
class HereDocument:
    """`text` is what the command reads, or None when it is only known later.

    `expansions` are the syntax nodes that are expanded in the text, `rest` those that follow the start on its
    line.
    """

    text: str | None = None
    expansions: "list[Node]" = field(default_factory=list)
    rest: "list[Node]" = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def read_heredoc(node: "Node", data: bytes) -> HereDocument:
    """Reads a `heredoc_redirect` node of the text `data`."""
    parts = {child.type: child for child in node.children if child.type.startswith(("heredoc_", "<<"))}
    inner = {"heredoc_start", "heredoc_body", "heredoc_end", "<<", "<<-", "file_descriptor"}
    document = HereDocument(rest=[child for child in node.children if child.type not in inner])
    body = parts.get("heredoc_body")
    if body is not None:
        document.expansions = [child for child in body.named_children if child.type != "heredoc_content"]
    try:
        document.text = _read_text(parts, data, document.expansions)
    except UnreadableError as problem:
        document.doubts.append(f"a here-document is not understood: {problem}")
    return document


def _read_text(parts: "dict[str, Node]", data: bytes, expansions: "list[Node]") -> str | None:
    start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
    if start is None or end is None:
        raise UnreadableError("it has no end")
    delimiter = _DELIMITER.fullmatch(source_of(start))
    if delimiter is None:
        raise UnreadableError("its end mark is unusual")
    line_end = data.find(b"\n", start.end_byte)
    rest_of_line = data[start.end_byte : line_end]
    if line_end < 0 or rest_of_line.endswith(b"\\") or b"<<" in rest_of_line or b"#" in rest_of_line:
        raise UnreadableError("the line of its start is unusual")
    indented = "<<-" in parts
    body_start = line_end + 1
    body_end, mark_start, mark_end = _find_end(data, body_start, delimiter.group(2).encode(), indented)
    if (end.start_byte, end.end_byte) != (mark_start, mark_end):
        raise UnreadableError("where it ends is not clear")
    text = data[body_start:body_end].decode("utf-8", "replace")
    if indented:
        text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
    if delimiter.group(1):
        return text
    if re.search(rb"\\\n", data[body_start:body_end]):
        raise UnreadableError("a line of it ends in a backslash")
    check_expansions(data, body_start, body_end, expansions)
    return None if expansions or "\\" in text else text


def _find_end(data: bytes, position: int, mark: bytes, indented: bool) -> tuple[int, int, int]:
    """Where the body ends, and where the end mark starts and ends, as byte positions."""
    while position < len(data):
        newline = data.find(b"\n", position)
        line_end = len(data) if newline < 0 else newline
        line = data[position:line_end]
        stripped = line.lstrip(b"\t") if indented else line
        if stripped == mark:
            return position, line_end - len(mark), line_end
        position = line_end + 1
    raise UnreadableError("it has no end")
