"""A space serves MCP hosts of both generations, in front of a connected `mew.Client` (`mew mcp`).

    async with mew.connect(url, space="demo", token=token) as me:
        await serve_stdio(me, HostSettings(only="files"))

- `serve`           runs it over `transport/` (stdio or Streamable HTTP);  `settings`
- `server`          every request of a host, answered;  `host_request`  one of them;  `answers`  the results
- `offers/`         what hosts may use: discovery, capabilities, names and URIs, trusted tools
- `calls/`          a call, requested or proposed: registry, wait, questions, results
- `own_tools`       `mew_chat`, `mew_outcome` …;  `history`  the history as a resource
- `notifications`, `subscriptions`, `logs`   what hosts are sent without having asked
"""

from .serve import serve_http, serve_stdio
from .settings import HostSettings

__all__ = ["HostSettings", "serve_http", "serve_stdio"]
