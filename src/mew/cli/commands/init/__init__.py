"""`mew init`: write a new space.yaml, from a template or from the configuration of an MCP host."""
