"""Words in text that a server would take for marks of its chat template.

llama-server renders a conversation to one text and reads marks such as `<|im_start|>` in all of it, also in a
file that was read. Such a file could end its message and begin one of the system's. An invisible character
behind the bracket makes a mark plain text again. The model copies it, so it is
taken out of what the model writes.
"""

import re
from collections.abc import Mapping
from typing import Any

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
    rf"|\[(?=/?(?:{_BRACKETED})\])"
)
_DISARMED = re.compile(rf"([<\[]){_JOINER}")


def disarmed(text: str) -> str:
    """`text` in which no mark of a chat template is one to the server. It looks the same."""
    if "<" not in text and "[" not in text:
        return text
    return _MARK.sub(lambda found: found[0] + _JOINER, text)


def rearmed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with the marks as they are in files."""
    return {name: _rearmed(value) for name, value in arguments.items()}


def _rearmed(value: Any) -> Any:
    if isinstance(value, str):
        return _DISARMED.sub(r"\1", value) if _JOINER in value else value
    if isinstance(value, list):
        return [_rearmed(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _rearmed(one) for name, one in value.items()}
    return value
