"""`mew wrap`: gateway, space, bridge and host side around one MCP server, in one process.

- `settings`  what to wrap, what is allowed, and where it came to be
- `naming`    what a server is called, told from its command
- `places`    the folder of its space among the user's own state, and which run now
- `taking`    a folder for this run alone
- `spaces`    the space.yaml in it
- `wrap`      all of it, running
"""
