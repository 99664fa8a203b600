"""Against a server of other people's, as it comes from PyPI: `mcp-server-time`."""

import json
import sys

import pytest

from agent.mcp.adapter import as_result, offered_tools
from agent.mcp.config import parse_server
from tests.mcp.conftest import PoolOf


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_published_server_is_listed_called_and_refuses_in_words(pool_of: PoolOf):
    args = ["-m", "mcp_server_time", "--local-timezone", "UTC"]
    spec = parse_server("time", {"command": sys.executable, "args": args, "start_seconds": 240}, "a test")
    pool = pool_of(spec)
    listing = await pool.list_tools(["time"])
    assert not listing.failures
    tools, problems = offered_tools(spec, listing.tools["time"])
    assert [tool.name for tool in tools] == ["time__get_current_time", "time__convert_time"]
    assert problems == []
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    result = as_result("time", await pool.call("time", "convert_time", arguments, lambda _: None))
    head, _, text = result.model_text.partition("\n")
    assert head == "[data from the MCP server time]"
    assert json.loads(text)["time_difference"] == "+9.0h"
    wrong = await pool.call("time", "get_current_time", {"timezone": "Nowhere"}, lambda _: None)
    assert as_result("time", wrong).is_error
