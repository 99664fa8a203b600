"""Pools of fake servers, ended with the test."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core.questions import Asker
from agent.mcp.config import ServerSpec, parse_server
from agent.mcp.connection import Surroundings
from agent.mcp.pool import Pool

SERVER = Path(__file__).parents[1] / "fakes" / "mcp_server.py"

PoolOf = Callable[..., Pool]


def fake_server(name: str, *habits: str, **more: Any) -> ServerSpec:
    """A server of `tests.fakes.mcp_server`; named arguments are keys of its configuration."""
    return parse_server(
        name, {"command": sys.executable, "args": ["-S", str(SERVER), *habits], **more}, "a test"
    )


def is_alive(number: int) -> bool:
    """Whether a process still runs; one that only waits to be collected does not."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def until(holds: Callable[[], bool]) -> None:
    """Waits, a minute at most, for what comes from another process."""
    for _ in range(6000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("that never came")


@pytest.fixture
async def pool_of(tmp_path: Path) -> AsyncIterator[PoolOf]:
    """Makes a pool of specs: `pool_of(fake_server("one"), report=lines.append)`."""
    pools: list[Pool] = []

    def make(*specs: ServerSpec, ask: Asker | None = None, **more: Any) -> Pool:
        around = Surroundings(
            workspace=tmp_path, environment=dict(os.environ), variables=dict(os.environ), ask=ask
        )
        pools.append(Pool(specs, around, state=tmp_path / "state", **more))
        return pools[-1]

    yield make
    for pool in pools:
        await pool.close()
