"""`mew init`: a space to begin with.

- `init`        the command;  `writing`  puts files down, and never over others
- `templates`   what there is to begin with;  `importing`  a space from the MCP servers that a host has
"""
