"""One lasting connection, and what it knows of its space.

- `transport`    the port, and its in-process twin;  `websocket`  the real one
- `session`, `outgoing`  PURE: what each message means, who is here, what is in flight
- `dialler`      connect and reconnect with backoff;  `connection`  resend, dispatch
- `feed`, `reply`  who is told of what arrives, and who waits for an answer
"""
