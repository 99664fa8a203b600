"""A client for suites that test clients of MCP: it uses our own connection as a session does.

    npx @modelcontextprotocol/conformance client --scenario tools_call \
        --command "python -m tests.mcp.conformance_client"

The suite puts the address of its server behind the command. Every tool that the server lists is called once,
with the smallest arguments that its schema allows; a question is accepted as it stands, with its defaults.
Needs the suite (npm), so it is no test of ours.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent.core.errors import AgentError
from agent.core.questions import Question, Reply
from agent.mcp.config import parse_server
from agent.mcp.connection import Surroundings
from agent.mcp.pool import Pool

_SMALLEST: dict[str, Any] = {
    "string": "x",
    "integer": 5,
    "number": 5,
    "boolean": True,
    "array": [],
    "object": {},
}


async def accept(question: Question) -> Reply:
    print(f"asked: {question.text}", file=sys.stderr)
    return Reply("accept")


async def main(url: str) -> int:
    spec = parse_server("suite", {"url": url, "call_seconds": 25}, "the suite")
    with tempfile.TemporaryDirectory() as folder:
        around = Surroundings(
            workspace=Path(folder), environment=dict(os.environ), variables=os.environ, ask=accept
        )
        pool = Pool([spec], around, state=Path(folder), report=lambda text: print(text, file=sys.stderr))
        try:
            return await _use(pool)
        finally:
            await pool.close()


async def _use(pool: Pool) -> int:
    listing = await pool.list_tools(["suite"])
    for error in listing.failures.values():
        print(error, file=sys.stderr)
        return 1
    for tool in listing.tools["suite"]:
        try:
            result = await pool.call("suite", tool.name, _arguments(tool.schema), lambda _: None)
        except AgentError as error:
            print(f"{tool.name}: {error}", file=sys.stderr)
            return 1
        print(f"{tool.name}: {result.content}", file=sys.stderr)
    return 0


def _arguments(schema: Any) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {
        name: _SMALLEST.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", ())
    }


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
