"""How a server is reached, whatever its kind: two streams of messages, and in the end how it ended."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mew.mcp_bridge.server.settings import Command, Endpoint

from .http import open_endpoint
from .stdio import Tell, open_process

if TYPE_CHECKING:  # the SDK has no public name for what its transports give
    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

__all__ = ["ServerExit", "ServerTransport", "TransportFactory", "open_transport"]


class ServerExit(NamedTuple):
    """`words` follow `the server`; `last_words` are what it wrote to its standard error."""

    words: str
    exit_code: int | None = None
    last_words: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServerTransport:
    read: "ReadStream[SessionMessage | Exception]"
    write: "WriteStream[SessionMessage]"
    is_http: bool
    ending: Callable[[], ServerExit]


TransportFactory = Callable[[], AbstractAsyncContextManager[ServerTransport]]
"""Reaches the server once more."""


@asynccontextmanager
async def open_transport(server: Command | Endpoint, tell: Tell) -> AsyncIterator[ServerTransport]:
    """A server that is reached inside this block.

    Raises:
        OSError, ValueError: it cannot be started.
    """
    if isinstance(server, Endpoint):
        async with open_endpoint(server) as (read, write):
            yield ServerTransport(
                read=read, write=write, is_http=True, ending=lambda: ServerExit("closed the connection")
            )
        return
    async with open_process(server, tell) as process:

        def ending() -> ServerExit:
            return ServerExit(process.ending, process.exit_code, tuple(process.last_words))

        yield ServerTransport(read=process.streams[0], write=process.streams[1], is_http=False, ending=ending)
