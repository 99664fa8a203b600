"""Words in text that a server would take for marks of its chat template, or a model for the end of a result.

llama-server renders a conversation to one text and reads marks such as `<|im_start|>` in all of it, also in a
file that was read. Such a file could end its message and begin one of the system's. An invisible character
behind the bracket makes a mark plain text again. The model copies it, so it is
taken out of what the model writes. `RESULT_END` is a mark of our own that is treated alike.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

RESULT_END = "[end of result]"
"""Stands behind the result of a call where the request has no place of its own for results."""

_JOINER = "\u2060"  # word joiner: no width, no line break
_NAMES = (
    "s|bos|eos|pad|unk|sop|eop|think|tool_call|tool_response|tool_result|start_of_turn|end_of_turn|start_of_image"
    "|end_of_image|start_function_call|end_function_call|fim_[a-z]+"
)
_BRACKETED = (
    "INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT|TOOL_CONTENT|ARGS|CALL_ID|THINK|gMASK|IMG"
)
_MARK = re.compile(
    rf"<(?=\|[^|<>\n]{{1,40}}(?:\||>)|/?[a-z_]{{1,20}}\|>|\uff5c[^<>\n]{{1,40}}\uff5c>|/?(?:{_NAMES})>)"
    rf"|\[(?=/?(?:{_BRACKETED})\]|(?i:[\s/]*end\s+of\s+result\s*\]))"
)
_DISARMED = re.compile(rf"([<\[]){_JOINER}")


def disarmed(text: str) -> str:
    """`text` in which no mark of a chat template is one to the server, nor one of ours. It looks the same."""
    if "<" not in text and "[" not in text:
        return text
    return _MARK.sub(lambda found: found[0] + _JOINER, text)


def disarmed_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool that others may have described, with all its names and texts disarmed."""
    return _changed(schema, disarmed)


def rearmed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with the marks as they are in files."""
    return _changed(arguments, lambda text: _DISARMED.sub(r"\1", text) if _JOINER in text else text)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with each text and each name in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(one, change) for one in value]
    if isinstance(value, Mapping):
        return {change(name): _changed(one, change) for name, one in value.items()}
    return value
