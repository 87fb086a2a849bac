"""A server that runs elsewhere, over Streamable HTTP: what became of each request, told apart."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from .errands import errand
from .settings import Endpoint

if TYPE_CHECKING:  # the SDK has no public name for it
    from mcp.client._transport import TransportStreams

__all__ = ["open_endpoint"]

_log = logging.getLogger(__name__)

_CONNECT_S: Final = 15.0
_EVENT_BYTES_MAX: Final = 32 << 20
_LOOKED_AT_BYTES: Final = 4_096
_UNREACHABLE: Final = 599  # no status of HTTP: made here, for a request that got none


@asynccontextmanager
async def open_endpoint(endpoint: Endpoint) -> "AsyncIterator[TransportStreams]":
    """Streams to and from a server, as the SDK's dispatcher takes them; nothing is sent yet."""
    # An answer may take as long as its request may: that clock is ours.
    patience = httpx2.Timeout(None, connect=_CONNECT_S)
    async with (
        _Forgiving(headers=dict(endpoint.headers), timeout=patience) as client,
        streamable_http_client(
            endpoint.url, http_client=client, max_sse_event_size=_EVENT_BYTES_MAX
        ) as streams,
    ):
        yield streams


class _Forgiving(httpx2.AsyncClient):
    """A request that gets nowhere fails alone: to the SDK's transport, an exception is the end of all of them."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        sent = errand.get()
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            _log.debug("%s to %s failed: %s", request.method, request.url.host, reason)
            if sent is not None:
                sent.unreachable = reason
            return httpx2.Response(_UNREACHABLE, request=request)
        if sent is not None:
            sent.status = response.status_code
            sent.session_lost = await _is_without_session(response)
        return response


async def _is_without_session(response: httpx2.Response) -> bool:
    """Whether the server knows nothing of our session: 404 by MCP, and with many it is 400 and a word about it."""
    if MCP_SESSION_ID not in response.request.headers:
        return False
    if response.status_code == HTTPStatus.BAD_REQUEST:
        return b"session" in (await response.aread())[:_LOOKED_AT_BYTES].lower()
    return response.status_code == HTTPStatus.NOT_FOUND
