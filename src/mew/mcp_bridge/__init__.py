"""MCP both ways: any MCP server joins a space, any MCP host works through one.

- `server/`       an MCP server becomes a participant: `mew bridge`
- `host/`         a space becomes an MCP server for a host: `mew mcp`
- `wrap/`         both around one server, with a gateway in between: `mew wrap`
- `host_profiles`  how long known hosts wait, and what they can do
- `host_config/`  the configuration files of MCP hosts: `mew mcp install`
"""
