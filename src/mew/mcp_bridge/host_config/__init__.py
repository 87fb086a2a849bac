"""The configuration of MCP hosts: where each keeps it, and how a server is put in and taken out of its text.

- `hosts`    which hosts there are, and where their files lie
- `jsonc`    members of a JSON text set and removed, everything else left as it is
- `toml_text` the same of a TOML text
- `servers`  what a host is told about a server, and how one is wrapped and unwrapped
"""
