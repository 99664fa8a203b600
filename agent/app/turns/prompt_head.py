"""The part of a prompt before all that was said: the system text, and which tools the model is offered.

It is the same to the byte for a whole session. One that is taken up again later may offer others, because
an MCP server was added or has told its tools meanwhile, or because of another profile or version; then the
server has to read everything anew, and the cause is named. With the same tools the earlier system text stays,
however it is worded now.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent import __version__
from agent.core.messages import Message, SystemMessage
from agent.llm.protocol import ToolProtocol

KIND = "prompt_head"
CHANGED_TOOLS = "other tools are offered than before"
CHANGED_TEXT = "the system text is another one than before"
_OF_MCP = "__"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptHead:
    """`tools` has a mark of what the model is told about each, in their order.

    `protocol` is how they are called.
    """

    protocol: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)
    profile: str = ""
    version: str = ""

    def tells_the_same(self, other: "PromptHead") -> bool:
        """Whether the model reads the same about its tools, in the same order."""
        return self.protocol == other.protocol and list(self.tools.items()) == list(other.tools.items())


def head_of(protocol: ToolProtocol, profile: str) -> PromptHead:
    """The head of a session with that way of calling tools."""
    told = protocol.described()
    marks = {name: _mark(text) for name, text in told.items()}
    return PromptHead(protocol=protocol.name, tools=marks, profile=profile, version=__version__)


def head_record(head: PromptHead) -> Mapping[str, Any]:
    """The line of a session file that remembers it."""
    return {
        "type": KIND,
        "protocol": head.protocol,
        "tools": dict(head.tools),
        "profile": head.profile,
        "version": head.version,
    }


def head_in(records: Iterable[Mapping[str, Any]]) -> PromptHead | None:
    """The last one in a session file; None where there is none that can be read."""
    found = None
    for record in records:
        tools = record.get("tools")
        if record.get("type") == KIND and isinstance(tools, dict):
            found = PromptHead(
                protocol=str(record.get("protocol", "")),
                tools={str(name): str(mark) for name, mark in tools.items()},
                profile=str(record.get("profile", "")),
                version=str(record.get("version", "")),
            )
    return found


def why_changed(before: PromptHead, now: PromptHead) -> str:
    """One line on what makes the prompt begin in another way than before; empty if nothing does."""
    if before.tells_the_same(now):
        return ""
    if before.protocol != now.protocol:
        return f"tools are called in another way ({now.protocol}, before {before.protocol})"
    changed = [
        *(f"+{name}" for name in now.tools if name not in before.tools),
        *(f"-{name}" for name in before.tools if name not in now.tools),
        *(name for name, mark in now.tools.items() if before.tools.get(name, mark) != mark),
    ]
    what = _listed(changed) if changed else "in another order"
    if changed and all(_OF_MCP in name for name in changed):
        return f"{CHANGED_TOOLS} by MCP servers: {what}"
    if before.profile != now.profile:
        return f"{CHANGED_TOOLS} with the profile {now.profile} (before {before.profile}): {what}"
    if before.version != now.version:
        return f"{CHANGED_TOOLS} by version {now.version} (before {before.version}): {what}"
    return f"{CHANGED_TOOLS}: {what}"


def system_to_keep(
    messages: Sequence[Message], before: PromptHead | None, now: PromptHead
) -> SystemMessage | None:
    """The system message of an earlier conversation, None where it says something else of the tools."""
    first = messages[0] if messages else None
    if before is None or not before.tells_the_same(now):
        return None
    return first if isinstance(first, SystemMessage) else None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
