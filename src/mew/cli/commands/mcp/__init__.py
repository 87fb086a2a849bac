"""MCP both ways: `mew bridge`, `mew mcp`, `mew mcp install` and `mew wrap`."""
