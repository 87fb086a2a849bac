"""python-socketio on asyncio, aiohttp and uvloop: a room for each space: python_socketio.py PORT

Each event is emitted again to its room, its sender included; the library encodes a broadcast once. WebSocket only,
and no ping within a run: the load counts every byte.
"""

import sys
from typing import Any
from urllib.parse import parse_qs

import socketio  # type: ignore[import-untyped]
import uvloop
from aiohttp import web

HOUR_S = 3600

server = socketio.AsyncServer(
    async_mode="aiohttp",
    transports=["websocket"],
    ping_interval=HOUR_S,
    ping_timeout=HOUR_S,
    async_handlers=False,  # no task for each event, and events of one sender stay in order
    monitor_clients=False,
)
space_of: dict[str, str] = {}


@server.event  # type: ignore[untyped-decorator]  # the library has no types
async def connect(sid: str, environ: dict[str, Any]) -> None:
    space_of[sid] = parse_qs(environ["QUERY_STRING"])["space"][0]
    await server.enter_room(sid, space_of[sid])


@server.on("e")  # type: ignore[untyped-decorator]
async def passed_on(sid: str, envelope: Any) -> None:
    await server.emit("e", envelope, room=space_of[sid])


async def application() -> web.Application:
    app = web.Application()
    server.attach(app)
    return app


if __name__ == "__main__":
    loop = uvloop.new_event_loop()
    web.run_app(application(), host="127.0.0.1", port=int(sys.argv[1]), loop=loop, print=None, backlog=1024)
