"""MCP both ways: any MCP server joins a space, any MCP host works through one.

- `into/`   an MCP server becomes a participant: `mew bridge`
- `out/`    a space becomes an MCP server for a host: `mew mcp`
- `wrapping/` both around one server, with a gateway in between: `mew wrap`
- `hosts/`  the configuration of MCP hosts: `mew mcp install`
"""
