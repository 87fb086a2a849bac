"""The server: all sockets, clocks, fresh ids and secrets."""
