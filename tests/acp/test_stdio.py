"""The lines of the protocol on two file descriptors."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator

import pytest

from agent.acp.stdio import StdioTransport


class Pipes:
    """A transport, and the editor's ends of its pipes."""

    def __init__(self) -> None:
        self.source, self.to_agent = os.pipe()
        self.from_agent, self.sink = os.pipe()
        self.transport = StdioTransport(self.source, self.sink)

    async def answer(self) -> dict[str, object]:
        return json.loads(await asyncio.to_thread(os.read, self.from_agent, 1 << 20))

    def close(self) -> None:
        for descriptor in (self.source, self.to_agent, self.from_agent, self.sink):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
async def pipes() -> AsyncIterator[Pipes]:
    both = Pipes()
    yield both
    with contextlib.suppress(OSError):
        os.close(both.to_agent)
    await both.transport.close()
    both.close()


async def test_a_message_may_come_in_pieces_and_several_at_once(pipes: Pipes):
    for piece in (
        b'{"id": 1, "met',
        b'hod": "a"}\n\n{"id": 2, "method": "b"}\n{"id"',
        b': 3, "method": "c"}\n',
    ):
        os.write(pipes.to_agent, piece)
    assert [(await pipes.transport.receive() or {})["method"] for _ in range(3)] == ["a", "b", "c"]


async def test_a_last_line_without_an_end_counts_and_then_it_is_over(pipes: Pipes):
    os.write(pipes.to_agent, b'{"id": 1, "method": "a"}')
    os.close(pipes.to_agent)
    assert await pipes.transport.receive() == {"id": 1, "method": "a"}
    assert await pipes.transport.receive() is None


async def test_half_a_surrogate_pair_is_sent_as_valid_utf_8(pipes: Pipes):
    await pipes.transport.send({"text": "a\udcffb", "more": "ä\u2028"})
    assert await pipes.answer() == {"text": "a?b", "more": "ä\u2028"}


async def test_an_editor_that_is_gone_ends_the_reading_and_swallows_what_is_sent(pipes: Pipes):
    os.close(pipes.from_agent)
    await pipes.transport.send({"text": "x"})
    assert await pipes.transport.receive() is None
    await pipes.transport.send({"text": "y"})


async def test_errors_tell_the_whole_story_in_their_message(pipes: Pipes):
    data = {"errors": [{"loc": ["cwd"], "msg": "Field required", "ctx": {"error": ValueError("x")}}]}
    await pipes.transport.send(
        {"id": 1, "error": {"code": -32602, "message": "Invalid params", "data": data}}
    )
    assert await pipes.answer() == {
        "id": 1,
        "error": {"code": -32602, "message": "Invalid params: cwd: Field required"},
    }
