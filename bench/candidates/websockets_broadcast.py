"""The `websockets` library, with its `broadcast`, on uvloop: websockets_broadcast.py PORT

The frames are not decoded, so that what came as UTF-8 leaves as it came: what its documentation advises for speed.
"""

import asyncio
import sys
from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

import uvloop
from websockets.asyncio.server import ServerConnection, broadcast, serve

spaces: dict[str, set[ServerConnection]] = defaultdict(set)


async def serve_one(connection: ServerConnection) -> None:
    assert connection.request is not None, "handlers run after the handshake"
    members = spaces[parse_qs(urlsplit(connection.request.path).query)["space"][0]]
    members.add(connection)
    try:
        while True:
            broadcast(members, await connection.recv(decode=False), text=True)
    finally:
        members.discard(connection)


async def main(port: int) -> None:
    # no pings within a run: the load counts every byte
    async with serve(serve_one, "127.0.0.1", port, compression=None, ping_interval=None, backlog=1024):
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
