"""The way in: a WebSocket to the gateway, with the token brought as the cast says, or otherwise."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

import aiohttp

from .cast import Cast, Join, Role
from .verdicts import Transcript, Violation
from .wire import PROTOCOL, Actor

__all__ = ["Approach", "Refused", "Unreachable", "open_connection"]

_MESSAGE_BYTES_MAX: Final = 8 << 20
_CLOSE_S_MAX: Final = 1.0


class Refused(Exception):
    """The gateway did not upgrade a connection, but answered with this HTTP status."""

    def __init__(self, status: int, reason: str = "") -> None:
        super().__init__(f"HTTP {status} {reason}".strip())
        self.status = status


class Unreachable(Violation):
    """Nobody answers there, or in no way that a web server would."""


@dataclass(frozen=True, slots=True)
class Approach:
    """How one comes to the door where it is not as the cast says: what else is in the URL and among the headers."""

    join: Join | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


_AS_THE_CAST_SAYS: Final = Approach()


async def open_connection(
    session: aiohttp.ClientSession,
    cast: Cast,
    role: Role,
    transcript: Transcript,
    *,
    space: str | None = None,
    again: Actor | None = None,
    approach: Approach = _AS_THE_CAST_SAYS,
) -> Actor:
    """Connect as this role, without waiting for what the gateway says; `again` is an actor to go on with.

    Raises:
        Refused: the gateway did not upgrade the connection.
        Unreachable: there is none.
    """
    if role.token not in ("", role.id):  # those are nobody's secret, and would be struck out everywhere
        transcript.hide(role.token)
    join = approach.join or cast.join
    headers: dict[str, str] = {}
    protocols: tuple[str, ...] = ()
    if role.token and join is Join.HEADER:
        headers["Authorization"] = f"Bearer {role.token}"
    elif role.token and join is Join.SUBPROTOCOL:
        protocols = (PROTOCOL.replace("/", "."), f"mew.bearer.{role.token}")
    name = cast.space if space is None else space
    query = urlencode({**({} if join is Join.FRAME else {"space": name}), **approach.query})
    url = f"{cast.url}/ws?{query}" if query else f"{cast.url}/ws"
    headers |= approach.headers
    transcript.sent(role.name, f"GET {url} as {join} {dict(approach.headers) or ''}".rstrip())
    try:
        socket = await session.ws_connect(
            url,
            headers=headers,
            protocols=protocols,
            max_msg_size=_MESSAGE_BYTES_MAX,
            timeout=aiohttp.ClientWSTimeout(ws_close=min(cast.patience_s, _CLOSE_S_MAX)),
        )
    except aiohttp.WSServerHandshakeError as error:
        reason = _phrase(error.status)
        transcript.received(role.name, f"HTTP {error.status} {reason}, and no WebSocket")
        raise Refused(error.status, reason) from error
    except TimeoutError as error:
        raise Unreachable(f"{cast.url} cannot be reached: it does not answer") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unreachable(f"{cast.url} cannot be reached: {str(error) or type(error).__name__}") from error
    if again is None:
        actor = Actor(role, socket, transcript, cast.patience_s)
    else:
        actor = again
        actor.adopt(socket)
    if join is Join.FRAME:
        joining = {"type": "join", "space": name, "token": role.token, "participantId": role.id or role.name}
        await actor.send_text(json.dumps(joining))
    return actor


def _phrase(status: int) -> str:
    """What HTTP calls it, if it does."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
