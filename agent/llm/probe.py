"""Trying a tool protocol on a server, once, instead of believing a template or a profile.

The request has the system message of a session, so the server reads what it will need next anyway.
"""

import re
from collections.abc import Sequence

from agent.core.guide import Offer
from agent.core.messages import SystemMessage, UserMessage
from agent.core.model import Model, Reply
from agent.core.tool import Tool
from agent.llm.protocol import ConstrainedProtocol, NativeProtocol, ToolProtocol

ProtocolName = str
_BOUND_TOKENS = 16
_NATIVE_TOKENS = 96
_QUESTION = "Call the tool `glob` with the pattern *.md now."
_BEGINS_A_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*"')


def protocol_named(name: ProtocolName, tools: Sequence[Tool]) -> ToolProtocol:
    return ConstrainedProtocol(tools) if name == "constrained" else NativeProtocol(tools)


async def makes_calls(model: Model, protocol: ToolProtocol, system_text: str) -> bool | None:
    """Whether a call comes back from `model`, which speaks `protocol`. None when the server failed.

    A constrained reply may be cut: that it begins as a call shows that the schema binds it.
    """
    messages = [SystemMessage(protocol.system_text(system_text)), UserMessage(_QUESTION)]
    bound = protocol.name == "constrained"
    tokens = _BOUND_TOKENS if bound else _NATIVE_TOKENS
    offer = Offer(tools=frozenset({"glob"})) if bound else Offer()
    async for item in model.generate(messages, max_tokens=tokens, offer=offer):
        if not isinstance(item, Reply):
            continue
        if item.stop_reason in ("error", "overflow", "cancelled"):
            return None
        return bool(item.message.tool_calls) or (bound and bool(_BEGINS_A_CALL.match(item.message.text)))
    return None
