"""MCP from both sides, without a connection but for `requests`.

- `schema`, `hints`, `docstring`  PURE: what a Python function takes, as JSON Schema
- `tools`, `toolbox`  tools, resources and prompts made from functions;  `uri`  templates
- `server`, `call`, `running`  answers methods;  `results`  values to content and back
- `requests`     asks others;  `validation`  JSON Schema of others, safely
"""
