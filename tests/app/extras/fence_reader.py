"""Reads a request as a careful model would: which words are data, and which are the person's."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_RESULT = re.compile(r"Result of \w+:")
_END = "[end of result]"
_FENCE = re.compile(r"`{3,}")


def commanding(messages: Sequence[Mapping[str, Any]]) -> str:
    """All of the person's messages that is not marked as data; results in a place of their own are data."""
    return "\n".join(_outside(_text_of(one["content"])) for one in messages if one["role"] == "user")


def everything(messages: Sequence[Mapping[str, Any]]) -> str:
    """The whole of the messages but the system's."""
    return "\n".join(_text_of(one["content"]) for one in messages if one["role"] in ("user", "tool"))


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _outside(text: str) -> str:
    """What is left without results and fences. One that is never closed marks nothing."""
    kept: list[str] = []
    held: list[str] = []
    closing = ""
    for line in text.split("\n"):
        if closing:
            held.append(line)
            if line == closing:
                held, closing = [], ""
        elif _RESULT.fullmatch(line):
            closing = _END
        elif _FENCE.fullmatch(line):
            closing = line
        else:
            kept.append(line)
    return "\n".join([*kept, *held])
