"""The HTTP door (§5.3)."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from .guard import Denied, Guard
from .node import Node

__all__ = ["HttpDoor", "problems"]


@web.middleware
async def problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except Denied as denied:
        return web.json_response({"error": denied.code, "detail": str(denied)}, status=denied.status)


class HttpDoor:
    def __init__(self, guard: Guard, node: Node) -> None:
        self._guard = guard
        self._node = node

    def add_routes(self, router: web.UrlDispatcher) -> None:
        pass
