"""An honest MCP server made with the library. Arguments: stdio, streamable-http or sse, and a port."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("honest")


class Person(BaseModel):
    name: str = "Ada"


async def asked() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def long_text() -> str:
    """Gives more text than anybody wants."""
    return "x" * 10_000_000


@server.tool()
def greet(person: Annotated[Person, Resolve(asked)]) -> str:
    """Asks the person, in the way of the revision that was agreed on."""
    return f"Hello {person.name}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Offers one more tool from now on."""
    server.add_tool(add, name="more")
    await ctx.notify_tools_changed()
    return "grown"


@server.prompt()
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review {code}"


@server.resource("memo://today")
def today() -> str:
    return "Buy milk."


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "stdio":
        server.run("stdio")
    elif kind == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
