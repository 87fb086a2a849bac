"""The port: how a client reaches its space."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Raw, Struct

from mew.protocol.envelope import EnvelopeId

__all__ = ["Link", "LinkClosed", "PastPage", "Transport"]


class LinkClosed(Exception):
    """This connection has ended. `come_back`: another may be made."""

    def __init__(self, code: int, reason: str = "", *, come_back: bool = True) -> None:
        super().__init__(f"closed ({code}): {reason}")
        self.code = code
        self.reason = reason
        self.come_back = come_back


class Link(Protocol):
    """One connection. What it receives, it receives in order, and only when asked: so it holds the gateway back."""

    knows_ids: bool
    """Whether the gateway refuses an id that it has accepted before, so that sending again is safe."""

    async def receive(self) -> bytes:
        """The next message: an envelope, or a stream frame.

        Raises:
            LinkClosed: no more will come.
        """

    async def send(self, message: bytes, *, text: bool = True) -> None:
        """Hand over a message; return when there is room for the next. Those handed over keep their order.

        Raises:
            LinkClosed: it may or may not have arrived.
        """

    async def close(self) -> None:
        """Say goodbye and close, in bounded time."""


class PastPage(Struct, frozen=True):
    """Envelopes that were shown, and where to go on, if there may be more. Not `complete`: some may be gone."""

    envelopes: list[Raw] = []
    next: str | None = None
    complete: bool = False


class Transport(Protocol):
    """Makes connections of one participant to one space."""

    async def open(self, after: EnvelopeId | None) -> Link:
        """Connect, and ask for what came after this envelope.

        Raises:
            ConnectError: no connection; it says whether another attempt may do better.
        """

    async def page(self, query: Mapping[str, str], space: str = "") -> PastPage:
        """A page of what was shown, as `GET /spaces/{space}/envelopes` has it; it waits where the gateway is busy.

        Without `space`, of the one that this is for.

        Raises:
            ConnectError: the gateway cannot be reached, or, with a status, does not tell.
        """

    async def close(self) -> None:
        """Let go of what its connections shared."""
