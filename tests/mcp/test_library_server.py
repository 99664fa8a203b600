"""Against servers that others would write: the library's own, in each transport."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import AgentError
from agent.core.questions import Question, Reply
from agent.mcp.adapter import as_result
from agent.mcp.config import ServerSpec, parse_server
from agent.mcp.contents import as_document, as_prompt, nothing_kept
from tests.mcp.conftest import PoolOf, until

SERVER = Path(__file__).parents[1] / "fakes" / "mcp_library_server.py"
PATHS = {"streamable-http": "mcp", "sse": "sse"}
PORT_TRIALS = 5
Serve = Callable[[str], Coroutine[Any, Any, ServerSpec]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def answers(port: int) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
        return True
    return False


async def is_up(process: asyncio.subprocess.Process, port: int) -> bool:
    """Waits until it serves; false once it has ended."""
    for _ in range(600):
        if process.returncode is not None:
            return False
        if await answers(port):
            return True
        await asyncio.sleep(0.1)
    return False


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a server for a transport, and gives how it is reached."""
    processes: list[asyncio.subprocess.Process] = []

    async def start(kind: str) -> ServerSpec:
        if kind == "stdio":
            return parse_server("one", {"command": sys.executable, "args": [str(SERVER), kind]}, "a test")
        # It cannot choose its port itself, and what was free a moment ago may be another test's by now.
        for _ in range(PORT_TRIALS):
            port = free_port()
            processes.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, str(SERVER), kind, str(port)), stderr=asyncio.subprocess.DEVNULL
                )
            )
            if await is_up(processes[-1], port):
                break
        table = {"url": f"http://127.0.0.1:{port}/{PATHS[kind]}", "type": "sse" if kind == "sse" else "http"}
        return parse_server("one", table, "a test")

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", ["stdio", "streamable-http", "sse"])
async def test_tools_are_listed_and_called_in_every_transport(serve: Serve, pool_of: PoolOf, kind: str):
    pool = pool_of(await serve(kind))
    listing = await pool.list_tools(["one"])
    assert [tool.name for tool in listing.tools["one"]] == ["add", "long_text", "greet", "grow"]
    result = await pool.call("one", "add", {"a": 1, "b": 2}, lambda _: None)
    assert as_result("one", result).model_text == "[data from the MCP server one]\n3"
    assert as_prompt(await pool.get_prompt("one", "review", {"code": "x = 1"})) == "Review x = 1"
    assert as_document(await pool.read_resource("one", "memo://today"), nothing_kept) == "Buy milk."


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_question_within_a_call_is_answered_in_the_newest_revision(serve: Serve, pool_of: PoolOf):
    async def ask(question: Question) -> Reply:
        return Reply("accept", {"name": f"whoever was asked {question.text!r}"})

    pool = pool_of(await serve("stdio"), ask=ask)
    result = await pool.call("one", "greet", {}, lambda _: None)
    assert result.content[0].text == "Hello whoever was asked 'Who are you?'"


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("kind", ["stdio", "streamable-http"])
async def test_change_of_the_list_is_heard_in_the_newest_revision(serve: Serve, pool_of: PoolOf, kind: str):
    pool = pool_of(await serve(kind))
    await pool.call("one", "grow", {}, lambda _: None)
    await until(lambda: pool.has_changed("one"))
    listing = await pool.list_tools(["one"])
    assert "more" in [tool.name for tool in listing.tools["one"]]


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_answer_over_http_has_a_greatest_length(serve: Serve, pool_of: PoolOf):
    pool = pool_of(await serve("streamable-http"))
    with pytest.raises(AgentError):
        await pool.call("one", "long_text", {}, lambda _: None)
    await pool.call("one", "add", {"a": 1, "b": 2}, lambda _: None)


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_address_of_an_old_server_works_without_saying_so(serve: Serve, pool_of: PoolOf):
    pool = pool_of(replace(await serve("sse"), transport="http"))
    result = await pool.call("one", "add", {"a": 1, "b": 2}, lambda _: None)
    assert as_result("one", result).model_text == "[data from the MCP server one]\n3"


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_address_that_is_none_of_an_mcp_server_is_told_by_its_first_answer(
    serve: Serve, pool_of: PoolOf
):
    spec = await serve("streamable-http")
    listing = await pool_of(replace(spec, url=f"{spec.url}/nowhere")).list_tools(["one"])
    assert "not usable: Not Found" in listing.failures["one"].message


async def test_address_where_nobody_answers_is_told_at_once(pool_of: PoolOf):
    spec = parse_server("one", {"url": f"http://127.0.0.1:{free_port()}/mcp"}, "a test")
    listing = await pool_of(spec).list_tools(["one"])
    assert "not usable" in listing.failures["one"].message
