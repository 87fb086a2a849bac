"""The WebSocket door (§5.2): from the handshake to the last frame of a connection.

- `door`        lets connections in;  `compat`  what clients of the TypeScript implementation do differently
- `wire`        one upgraded connection: bytes in, messages on
- `connection`  the same, as a room sees it
- `frames`      RFC 6455, PURE
"""
