"""MCP from both sides.

- `schema`, `hints`, `docstring`  PURE: what a Python function takes, as JSON Schema
- `tools`, `toolbox`  tools, resources and prompts made from functions;  `uri`  templates
- `server`, `params`, `call`, `running`  answers methods;  `answerer`  the port of who does;  `generation`  PURE: of MCP
- `results`      values to content and back;  `validation`  JSON Schema of others, safely
- `requests`     asks others;  `parcel`  results too large for an envelope;  `questions`, `question`  what others ask us
"""
