"""The part of a prompt that stands before the messages: which tools the model is offered.

It is the same to the byte for a whole session. One that is taken up again later may offer others, because an
MCP server was added or has told its tools meanwhile; then the server has to read everything anew.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from agent.core.guide import Offer
from agent.llm.protocol import ToolProtocol

KIND = "prompt_head"
CHANGED_TOOLS = "other tools are offered than before"


def head_of(protocol: ToolProtocol) -> str:
    """A short mark of the tools in a request; where they are described in the system text there are none."""
    tools = protocol.request_fields(Offer()).get("tools", ())
    text = json.dumps(tools, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def head_record(head: str) -> Mapping[str, Any]:
    """The line of a session file that remembers it."""
    return {"type": KIND, "mark": head}


def head_in(records: Iterable[Mapping[str, Any]]) -> str:
    """The last mark in a session file; empty where there is none."""
    marks = [str(record.get("mark", "")) for record in records if record.get("type") == KIND]
    return marks[-1] if marks else ""
