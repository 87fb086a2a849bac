"""Tools, resources and prompts made from functions, and the MCP server that offers them.

- `hints`, `schema`  PURE: type hints and signatures as JSON Schema
- `functions`        tools, resources and prompts, and the toolbox of them;  `server`  answers MCP methods from it
"""
