"""An MCP server becomes a participant of a space (`mew bridge`).

- `bridge`             `run_bridge`: puts the parts together;  `settings`  what to start or call, and the limits
- `transport/`         how a server is reached: stdio of a confined process, or Streamable HTTP
- `handshake`, `link`  one connection to a server, raw JSON in and out;  `lifecycle`  restarts with backoff
- `translator`         forwards requests of the space;  `inflight`  those under way;  `errors`  why one failed
- `notifications`      what the server sends unasked, rate limited;  `subscriptions`, `change_stream`  who receives it
- `server_requests`    what the server asks of its client: elicitation, sampling, roots
- `tool_fingerprints`  its tools as first seen, to mark those that changed
"""
