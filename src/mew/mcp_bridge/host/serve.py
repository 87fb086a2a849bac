"""Runs the MCP server of a space: for one host over stdio, or for several over HTTP."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mew.client.client import Client
from mew.mcp_bridge.host.transport.http import listen_on, serve_app
from mew.mcp_bridge.host.transport.stdio import standard_streams

from .server import hosting
from .settings import HostSettings

__all__ = ["serve_http", "serve_stdio"]


async def serve_stdio(client: Client, settings: HostSettings) -> None:
    """Serve one host over stdin and stdout until it closes them. `client` is connected, and stays so.

    Raises:
        Disconnected: the connection to the space ended for good.
    """
    async with hosting(client, settings) as server, standard_streams() as (incoming, outgoing):
        serving = server.run(incoming, outgoing, server.create_initialization_options())
        await _while_connected(client, serving)
    _check_connected(client)


async def serve_http(
    client: Client,
    settings: HostSettings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    secret: str | None,
    ready: Callable[[str], None],
) -> None:
    """Serve hosts over Streamable HTTP until cancelled, each request with `secret` as its bearer; None asks for none.

    `ready` is told the URL once it is served.

    Raises:
        OSError: the address cannot be listened on.
        Disconnected: the connection to the space ended for good.
    """
    with listen_on(host, port) as listening:
        async with hosting(client, settings) as server:
            serving = serve_app(server, listening, host=host, secret=secret, ready=ready)
            await _while_connected(client, serving)
    _check_connected(client)


async def _while_connected(client: Client, serving: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        served = tasks.create_task(serving)
        await asyncio.wait((served, client.connection.ended), return_when=asyncio.FIRST_COMPLETED)
        served.cancel()


def _check_connected(client: Client) -> None:
    if client.connection.ended.done():
        raise client.connection.ended.result().copy()
