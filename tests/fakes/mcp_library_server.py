"""An honest MCP server made with the library. Arguments: stdio, streamable-http or sse, and a port."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("honest")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def long_text() -> str:
    """Gives more text than anybody wants."""
    return "x" * 10_000_000


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "stdio":
        server.run("stdio")
    elif kind == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
