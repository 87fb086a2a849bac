"""An MCP server with two trivial tools, by the official SDK: over stdio, or over HTTP: mcp_echo.py [PORT]"""

import sys

from mcp.server import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool()
async def echo(text: str) -> str:
    """Say the same."""
    return text


@server.tool(structured_output=False)
async def repeat(text: str, times: int) -> str:
    """Say the same many times: a large result for a short call."""
    return text * times


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="streamable-http", port=int(sys.argv[1]))
    else:
        server.run(transport="stdio")
