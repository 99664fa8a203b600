"""Asking a scripted server over the loopback interface, and reading what came of it."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from agent.core.events import Retry
from agent.core.guide import Offer
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.core.model import ModelItem, Reply
from agent.llm.client import ChatModel, Connection
from agent.llm.protocol import ConstrainedProtocol, NativeProtocol, ToolProtocol
from tests.core.rig import FakeTool
from tests.fakes.scripted_server import ScriptedServer

QUESTION: list[Message] = [SystemMessage("Be brief."), UserMessage("What is in a.py?")]


class PathParams(BaseModel):
    path: str
    limit: int | None = None


def tools() -> list[FakeTool]:
    made = [FakeTool("read"), FakeTool("edit", access="write"), FakeTool("finish", access="finish")]
    for tool in made:
        tool.params = PathParams
    return made


def native() -> NativeProtocol:
    return NativeProtocol(tools())


def constrained() -> ConstrainedProtocol:
    return ConstrainedProtocol(tools())


class Client:
    """A model connected to one server, and the event that cancels it."""

    def __init__(
        self,
        server: ScriptedServer | str,
        protocol: ToolProtocol | None = None,
        sampling: dict[str, Any] | None = None,
        context_tokens: int = 4096,
        **connection: Any,
    ) -> None:
        url = server if isinstance(server, str) else server.url
        options = {"api_key": "", "retry_seconds": 0.0, **connection}
        self.cancel = asyncio.Event()
        self.model = ChatModel(
            Connection(base_url=url, **options),
            protocol or native(),
            context_tokens=context_tokens,
            sampling=sampling or {},
            cancel=self.cancel,
        )

    async def items(self, messages: Sequence[Message] = QUESTION, max_tokens: int = 500) -> list[ModelItem]:
        """Everything that one request gives; its last item is the reply and the only one."""
        stream = self.model.generate(messages, max_tokens=max_tokens, offer=Offer())
        items = [item async for item in stream]
        assert [isinstance(item, Reply) for item in items] == [False] * (len(items) - 1) + [True]
        return items

    async def ask(self, messages: Sequence[Message] = QUESTION, max_tokens: int = 500) -> Reply:
        return reply_in(await self.items(messages, max_tokens))


def reply_in(items: Sequence[ModelItem]) -> Reply:
    assert isinstance(items[-1], Reply)
    return items[-1]


def retries(items: Sequence[ModelItem]) -> list[Retry]:
    return [item for item in items if isinstance(item, Retry)]


def failed(reply: Reply, words: str) -> bool:
    """Whether the reply is nothing but an error of one line that says so."""
    assert reply.message == AssistantMessage("")
    assert "\n" not in reply.error
    return reply.stop_reason == "error" and words in reply.error
