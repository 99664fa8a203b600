"""The grammar of blocks, as the engine itself takes it."""

import asyncio
from collections.abc import Iterator

import pytest

from agent.core.guide import Offer
from agent.core.messages import Message, SystemMessage, UserMessage
from agent.core.model import Reply
from agent.llm.client import ChatModel, Connection
from agent.llm.probe import makes_calls
from agent.llm.protocol import ConstrainedProtocol, NativeProtocol, ToolProtocol
from agent.server.record import Endpoint
from tests.real.rig import serving
from tools import built_in_tools

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
SYSTEM = "You write files."
REPLY_TOKENS = 64


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with serving("embedded-small", tmp_path_factory.mktemp("blocks")) as endpoint:
        yield endpoint


def model(endpoint: Endpoint, protocol: ToolProtocol) -> ChatModel:
    return ChatModel(
        Connection(base_url=endpoint.base_url, api_key=endpoint.api_key),
        protocol,
        context_tokens=endpoint.context_tokens,
        sampling={"temperature": 0, "repeat_penalty": 1.3},
        cancel=asyncio.Event(),
    )


async def reply_to(endpoint: Endpoint, offer: Offer) -> Reply:
    messages: list[Message] = [SystemMessage(SYSTEM), UserMessage("Write hello.py. It prints hello.")]
    one = model(endpoint, ConstrainedProtocol(built_in_tools()))
    replies = [item async for item in one.generate(messages, max_tokens=REPLY_TOKENS, offer=offer)]
    await one.close()
    assert isinstance(replies[-1], Reply)
    return replies[-1]


async def test_a_reply_is_bound_to_the_offered_file(endpoint: Endpoint) -> None:
    reply = await reply_to(endpoint, Offer(tools=frozenset({"write"}), blocks=("hello.py",)))
    assert reply.message.text.startswith('{"tool": "write", "path": "hello.py"}\n```python\n')


async def test_a_reply_is_bound_to_the_only_tool_that_is_left(endpoint: Endpoint) -> None:
    reply = await reply_to(endpoint, Offer(tools=frozenset({"finish"})))
    assert "".join(reply.message.text.split()).startswith('{"tool":"finish"')


async def test_the_trial_finds_that_constrained_calls_work_with_any_model(endpoint: Endpoint) -> None:
    protocol = ConstrainedProtocol(built_in_tools())
    one = model(endpoint, protocol)
    assert await makes_calls(one, protocol, SYSTEM) is True
    await one.close()


async def test_the_trial_finds_that_native_calls_do_not_work_without_a_template_for_them(
    endpoint: Endpoint,
) -> None:
    protocol = NativeProtocol(built_in_tools())
    one = model(endpoint, protocol)
    assert await makes_calls(one, protocol, SYSTEM) is False
    await one.close()
