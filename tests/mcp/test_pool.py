"""Against real processes that behave well or badly; see `tests.fakes.mcp_server`."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import AgentError
from agent.mcp.adapter import as_result, offered_tools
from agent.mcp.config import parse_server
from agent.mcp.log import LARGEST_BYTES, ServerLog, log_of
from tests.mcp.conftest import PoolOf, fake_server, is_alive, until
from tests.patience import limits

HELLO = {"text": "hello"}


def silent(_: str) -> None:
    pass


async def called(pool: Any, tool: str, server: str = "one") -> str:
    result = await pool.call(server, tool, HELLO, silent)
    return as_result(server, result).model_text.partition("\n")[2]


async def test_nothing_is_started_before_it_is_needed(pool_of: PoolOf):
    pool = pool_of(fake_server("one"))
    assert not pool.is_running("one")
    assert await called(pool, "echo") == "echo: hello"
    assert pool.is_running("one")


async def test_bad_servers_fail_alone_and_say_why(pool_of: PoolOf):
    pool = pool_of(
        fake_server("good"),
        fake_server("dies", "dies-at-start"),
        fake_server("noise", "only-noise"),
        fake_server("quiet", "silent", start_seconds=0.5),
        parse_server("none", {"command": "no-such-program-anywhere"}, "a test"),
        parse_server("key", {"command": "x", "args": ["${NOT_SET_ANYWHERE}"]}, "a test"),
    )
    listing = await pool.list_tools([spec.name for spec in pool.specs])
    assert list(listing.tools) == ["good"]
    reasons = {name: error.message for name, error in listing.failures.items()}
    assert "exited with status 3" in reasons["dies"]
    assert "no messages" in reasons["noise"]
    assert "did not answer within 0.5 seconds" in reasons["quiet"]
    assert "exited with status 127" in reasons["none"]
    assert "NOT_SET_ANYWHERE is not set" in reasons["key"]


async def test_servers_are_connected_to_at_the_same_time(pool_of: PoolOf, tmp_path: Path):
    here, there = str(tmp_path / "one"), str(tmp_path / "two")
    pool = pool_of(
        fake_server("one", f"meets={there}", env={"STARTED": here}),
        fake_server("two", f"meets={here}", env={"STARTED": there}),
    )
    listing = await pool.list_tools(["one", "two"])
    assert list(listing.tools) == ["one", "two"]


async def test_what_a_server_says_on_standard_error_is_in_its_log(pool_of: PoolOf, tmp_path: Path):
    await pool_of(fake_server("one", "dies-at-start")).list_tools(["one"])
    assert log_of(tmp_path / "state", "one").last_lines(5) == ["the disk is on fire"]


def test_log_does_not_grow_for_ever(tmp_path: Path):
    log = ServerLog(tmp_path / "one.log")
    for _ in range(5):
        log.write(b"x" * (LARGEST_BYTES // 2 + 1))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2 * LARGEST_BYTES


def test_log_has_a_time_at_the_beginning_of_each_line_and_nowhere_else(tmp_path: Path):
    log = ServerLog(tmp_path / "one.log", clock=lambda: 0.0)
    for chunk in (b"a\nb", b"c\n", b"", b"d\n"):
        log.write(chunk)
    assert log.last_lines(5) == ["a", "bc", "d"]
    dated = log.last_lines(5, times=True)
    assert {line[:4] for line in dated} <= {"1970", "1969"}
    assert [line.split(" ", 2)[2] for line in dated] == ["a", "bc", "d"]


def test_log_tells_what_came_after_a_moment(tmp_path: Path):
    log = ServerLog(tmp_path / "one.log")
    log.write(b"before\n")
    moment = log.end()
    assert log.last_lines(5, since=moment) == []
    log.write(b"after\n")
    assert log.last_lines(5, since=moment) == ["after"]


@pytest.mark.parametrize(("habit", "most"), [("endless-list", 1000), ("same-cursor", 1000), ("fat-list", 6)])
async def test_list_without_end_is_cut(pool_of: PoolOf, habit: str, most: int):
    lines: list[str] = []
    listing = await pool_of(fake_server("one", habit), report=lines.append).list_tools(["one"])
    assert 1 <= len(listing.tools["one"]) <= most
    assert all(len(tool.description) <= 4000 for tool in listing.tools["one"])
    assert "has no end" in lines[0]


async def test_lines_that_are_no_messages_are_skipped(pool_of: PoolOf):
    assert await called(pool_of(fake_server("one", "noise")), "echo") == "echo: hello"


async def test_results_of_every_kind_become_text(pool_of: PoolOf):
    pool = pool_of(fake_server("one", "acts"))
    mixed = await called(pool, "mixed")
    assert mixed.splitlines() == [
        "be[31mfore",
        "[image image/png, 5 bytes, not shown]",
        "[resource file:///notes.txt]",
        "a note",
        "[resource more: file:///more.txt]",
    ]
    assert await called(pool, "structured") == '{"degrees": 21}'
    assert len(await called(pool, "huge")) <= 400_000


async def test_failure_of_a_tool_is_a_result(pool_of: PoolOf):
    result = await pool_of(fake_server("one", "acts")).call("one", "fail", {}, silent)
    assert as_result("one", result).is_error


async def test_progress_is_passed_on(pool_of: PoolOf):
    seen: list[str] = []
    await pool_of(fake_server("one", "acts")).call("one", "progress", {}, seen.append)
    assert [line.strip() for line in seen] == ["1/3 step 1", "2/3 step 2", "3/3 step 3"]


async def test_call_that_is_never_answered_is_given_up_and_the_next_one_works(pool_of: PoolOf):
    for seconds in limits(0.3):
        answer = ""
        pool = pool_of(fake_server("one", "acts", call_seconds=seconds))
        with pytest.raises(AgentError, match=f"did not answer within {seconds:g} seconds"):
            await called(pool, "hang")
        with suppress(AgentError):  # a machine that is held up may need too long for this one, too
            answer = await called(pool, "echo")
            break
    assert answer == "echo: hello"


async def test_cancelled_call_leaves_the_connection_usable(pool_of: PoolOf):
    pool = pool_of(fake_server("one", "acts"))
    await called(pool, "echo")
    hanging = asyncio.ensure_future(called(pool, "hang"))
    await asyncio.wait({hanging}, timeout=0.05)
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    assert await called(pool, "echo") == "echo: hello"


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("crash", "status 7"),
        ("endless-line", "8 MB"),
        ("flood", "notifications"),
        ("not-a-result", "no result"),
    ],
)
async def test_server_that_misbehaves_in_a_call_ends_the_call(pool_of: PoolOf, tool: str, reason: str):
    with pytest.raises(AgentError, match=reason):
        await called(pool_of(fake_server("one", "acts")), tool)


async def test_server_that_ended_is_started_again_once_and_no_call_is_made_twice(pool_of: PoolOf):
    lines: list[str] = []
    pool = pool_of(fake_server("one", "acts"), report=lines.append)
    for _ in range(2):
        with pytest.raises(AgentError, match="Whether the call had an effect is not known"):
            await called(pool, "crash")
    with pytest.raises(AgentError, match="not started a third time"):
        await called(pool, "echo")
    assert len(lines) == 1


async def test_server_sees_the_variables_that_its_configuration_names(pool_of: PoolOf):
    names = await called(pool_of(fake_server("one", "acts", env={"MINE": "${HOME}"})), "environment")
    assert '"MINE"' in names


async def test_changed_list_is_asked_for_again_when_somebody_looks(pool_of: PoolOf):
    pool = pool_of(fake_server("one", "changed"))
    await called(pool, "echo")
    await until(lambda: pool.has_changed("one"))
    assert [tool.name for tool in pool.remembered("one") or ()] == ["echo"]
    listing = await pool.list_tools(["one"])
    assert [tool.name for tool in listing.tools["one"]] == ["other"]
    assert not pool.has_changed("one")


async def test_hostile_tools_are_left_out_by_name_and_the_others_stay(pool_of: PoolOf):
    spec = fake_server("bad", "hostile-tools")
    lines: list[str] = []
    pool = pool_of(spec, report=lines.append)
    listing = await pool.list_tools(["bad"])
    tools, problems = offered_tools(spec, listing.tools["bad"])
    assert [tool.name for tool in tools][:6] == [
        "bad__good",
        "bad__a_b",
        "bad__lookahead",
        "bad__shell",
        "bad__reads",
        tools[5].name,
    ]
    assert len(tools[5].name) == 64
    assert tools[6].name == "bad__now"
    said = ["the MCP server bad: the tool 'later' is left out: it can only be run as a task"]
    assert lines == said
    await pool.reconnect("bad")
    assert lines == said
    assert len(problems) == 7
    assert all(line.isprintable() for line in problems)
    assert all(tool.description.isprintable() and len(tool.description) <= 160 for tool in tools)
    assert [tool.name for tool in tools if tool.access == "read"] == ["bad__reads"]


async def gone(numbers: list[int]) -> bool:
    for _ in range(3000):
        if not any(is_alive(number) for number in numbers):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_stubborn_server_and_its_helper_are_gone_with_the_pool(pool_of: PoolOf, tmp_path: Path):
    pids = tmp_path / "pids"
    pool = pool_of(fake_server("one", "child", "no-exit", env={"PIDS": str(pids)}))
    await called(pool, "echo")
    numbers = [int(number) for number in pids.read_text(encoding="utf-8").split()]
    assert all(is_alive(number) for number in numbers)
    await pool.close()
    assert not any(is_alive(number) for number in numbers)


KILLED = """
import asyncio, os, sys
from pathlib import Path
from agent.mcp.connection import Surroundings
from agent.mcp.pool import Pool
from tests.mcp.conftest import fake_server

async def main():
    around = Surroundings(workspace=Path(sys.argv[1]), environment=dict(os.environ), variables={})
    pool = Pool([fake_server("one", "child", "no-exit")], around, state=Path(sys.argv[1]))
    await pool.list_tools(["one"])
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_nothing_is_left_after_kill_9(tmp_path: Path):
    pids = tmp_path / "pids"
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, str(tmp_path)),
        cwd=root,
        env={**os.environ, "PIDS": str(pids), "PYTHONPATH": str(root)},
    )
    assert await process.wait() == -signal.SIGKILL
    assert await gone([int(number) for number in pids.read_text(encoding="utf-8").split()])
