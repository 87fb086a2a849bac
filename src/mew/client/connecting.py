"""How an application comes by its client."""

import ssl
from pathlib import Path

from .client import Client
from .environment import address
from .wire.connection import Connection
from .wire.websocket import Via, WebSocketTransport

__all__ = ["connect"]


def connect(
    url: str | None = None,
    *,
    space: str | None = None,
    token: str | Path | None = None,
    participant: str | None = None,
    via: Via = Via.HEADER,
    tls: ssl.SSLContext | None = None,
    first_within_s: float = 0.0,
    recall: int = 0,
) -> Client:
    """Somebody in a space, for `async with`: who that is, the token says.

        async with mew.connect("ws://localhost:8080", space="demo", token=Path("ann.token")) as me:
            await me.chat("hello")

    Without a URL it is where the environment says, as under `mew up`: `MEW_GATEWAY`, `MEW_SPACE`, `MEW_TOKEN_FILE`,
    `MEW_AS`.

    `token` may be a file. `space` may be left out where the gateway serves one. `via` is how the token travels.
    `participant` is the id to join under, which other gateways than ours may need to be told.
    `first_within_s`: how long to go on trying where nobody is there yet; once connected, it reconnects by itself.
    `recall`: how many of the last envelopes of the space to look at first, so that proposals and chats that wait
    since before are known (`me.recalled` has them).

    Raises:
        ValueError: the URL is not one of a gateway, or has a token in it; there is none; `recall` without a space.
    """
    found = address(url, space, token, participant)
    transport = WebSocketTransport(
        found.url, space=found.space, token=found.token, participant=found.participant, via=via, tls=tls
    )
    if recall and transport.space is None:
        raise ValueError("recall= needs space=, or ?space= in the URL")
    return Client(Connection(transport, first_within_s=first_within_s, recall=recall))
