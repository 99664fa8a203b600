"""Servers at an address that behave badly: each is told in a line, in time, and nothing hangs."""

from collections.abc import Iterator

import pytest

from agent.core.errors import AgentError
from agent.mcp.config import parse_server
from tests.fakes.hostile_web_mcp import hostile_web_mcp
from tests.mcp.conftest import PoolOf


@pytest.fixture
def address() -> Iterator[str]:
    with hostile_web_mcp() as found:
        yield found


@pytest.mark.parametrize(
    ("habit", "reason"),
    [
        ("silent", "did not answer within 1 seconds"),
        ("garbage", "Failed to parse"),
        ("page", "Unexpected content type"),
    ],
)
@pytest.mark.timeout(90)
async def test_address_that_speaks_no_mcp_fails_with_the_reason(
    pool_of: PoolOf, address: str, habit: str, reason: str
):
    start_seconds = 1 if habit == "silent" else 60
    spec = parse_server("one", {"url": f"{address}/{habit}", "start_seconds": start_seconds}, "a test")
    listing = await pool_of(spec).list_tools(["one"])
    said = listing.failures["one"].message
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("habit", "reason"),
    [
        ("call-silent", "did not answer within 1 seconds"),
        ("call-ends", "did not answer|refuses|ended"),
        ("call-flood", "did not answer within 1 seconds"),
        ("call-endless", "exceeded the 8388608 byte limit|did not answer"),
        ("call-garbage", "Failed to parse"),
    ],
)
@pytest.mark.timeout(90)
async def test_call_of_a_bad_server_ends_and_says_why(pool_of: PoolOf, address: str, habit: str, reason: str):
    call_seconds = 30 if habit in ("call-garbage", "call-endless") else 1
    table = {"url": f"{address}/{habit}", "start_seconds": 60, "call_seconds": call_seconds}
    pool = pool_of(parse_server("one", table, "a test"))
    await pool.list_tools(["one"])
    with pytest.raises(AgentError, match=reason):
        await pool.call("one", "go", {}, lambda _: None)
