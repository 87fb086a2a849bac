"""The wire: one lasting connection, and what it knows of its space.

- `transport`    the port;  `websocket`, `memory`  its two kinds
- `outgoing`, `roster`, `session`  PURE: what is on its way, who is here, what each message means
- `dialling`     coming by a connection;  `connection`  reconnects, resends, dispatches
- `listeners`, `feed`, `filters`, `subscription`, `answers`, `awaiting`  who is told, and who waits
"""
