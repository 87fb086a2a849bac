"""The SDK: somebody in a space. Knows the protocol, not the server.

From the wire up:

- `transport`    the port;  `websocket`, `memory`  its two kinds
- `outgoing`, `roster`, `session`  PURE: what is on its way, who is here, what each message means
- `feed`         bounded iterations;  `connection`  reconnects, resends, dispatches
- `client`       Client: what an application uses
"""
