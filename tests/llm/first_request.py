"""The first request of a session without its task: system text, all built-in tools, nothing else."""

from typing import Any

from agent.app.turns.conversation import system_prompt
from agent.core.guide import Offer
from agent.core.messages import SystemMessage, UserMessage
from agent.llm.protocol import ConstrainedProtocol, NativeProtocol, to_wire
from tools import built_in_tools
from tools.outline import OutlineTool
from tools.task import TaskTool

PROTOCOLS = {"native": NativeProtocol, "constrained": ConstrainedProtocol}
MOST_TOKENS = 1200


def first_request(protocol_name: str, *, subagents: bool = False, outline: bool = False) -> dict[str, Any]:
    """What is sent for the shortest task there can be."""
    tools = built_in_tools(several_edits=protocol_name == "native")
    more = (*((OutlineTool(),) if outline else ()), *((TaskTool(),) if subagents else ()))
    tools = (*tools[:-1], *more, *tools[-1:])
    protocol = PROTOCOLS[protocol_name](tools)
    messages = [SystemMessage(protocol.system_text(system_prompt())), UserMessage("")]
    return {"messages": to_wire(messages), **protocol.request_fields(Offer())}
