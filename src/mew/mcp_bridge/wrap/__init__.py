"""`mew wrap`: gateway, space, bridge and host side around one MCP server, in one process.

- `settings`      what to wrap, what is allowed, and where it runs
- `server_name`   what a server is called, derived from its command
- `state_folder`  where its space is kept, locked for one run
- `space_file`    the space.yaml in it
- `wrap`          all of it, running
"""
