"""Out of the space: an MCP server in front of a connected `mew.Client`, for hosts of both generations (`mew mcp`).

    async with mew.connect(url, space="demo", token=token) as me:
        await serve_stdio(me, Settings(only="files"))

The map: `serving` runs it, over stdio or HTTP. `host` answers the host's requests, with what `offers` knows the
participants to offer; `calling` makes a call or proposes it, `waiting` says how long the host waits for it.
"""

from .serving import serve_http, serve_stdio
from .settings import Settings

__all__ = ["Settings", "serve_http", "serve_stdio"]
