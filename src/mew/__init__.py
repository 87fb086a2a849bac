"""MEW Protocol v0.4: people, AI agents and MCP servers in one visible workspace."""
