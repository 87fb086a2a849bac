"""Out of the space: an MCP server in front of a connected `mew.Client`, for hosts of both generations (`mew mcp`).

    async with mew.connect(url, space="demo", token=token) as me:
        await serve_stdio(me, Settings(only="files"))

- `serving`                    runs it, over `stdio` or `web`;  `secret`  what hosts need to come in;  `settings`
- `server`                     each request of a host, answered;  `host_request`  one of them;  `answers`  what is said
- `offers`, `permits`, `trust` what hosts may use;  `inquiry`, `listings`  where that is known from
- `names`, `uris`, `showing`   what hosts call it, and are shown of it;  `params`  what passes on the way
- `calling`, `calls`           a call, made or proposed, and all of them;  `notes`, `questions`  what happens meanwhile
- `waiting`, `outcomes`        how long a host waits, and every end it can be told;  `presence`  who may be gone before
- `own`, `own_shapes`, `own_results`, `history`, `instructions`   what is ours: tools, the history, a few words
- `changes`, `hosts`, `subscriptions`, `logs`   what hosts are told without having asked
"""

from .serve import serve_http, serve_stdio
from .settings import Settings

__all__ = ["Settings", "serve_http", "serve_stdio"]
