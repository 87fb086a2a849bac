"""Being in a space: who I am, who is here, and envelopes in and out."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from mew.protocol.capability import CapabilitySet
from mew.protocol.envelope import Envelope, ParticipantId

from .connection.connection import ClientConnection
from .connection.feed import Feed, Filter
from .connection.session import Gap, Misconduct, Roster
from .history import HistoryFilter, HistoryIterator

__all__ = ["Member"]


class Member:
    """Somebody in a space, with nothing but envelopes. An async context: inside it, connected."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            ConnectError: nobody is there, or we are not let in.
        """
        await self.connection.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.connection.__aexit__(kind, error, trace)

    @property
    def id(self) -> ParticipantId:
        """Who I am in the space."""
        return self.connection.session.me

    @property
    def space(self) -> str:
        return self.connection.session.space.id

    @property
    def capabilities(self) -> CapabilitySet:
        """What I may send, as the last welcome has it."""
        return self.connection.session.capabilities

    @property
    def participants(self) -> Roster:
        """Who is here, myself included, and what each may send."""
        return self.connection.session.roster

    @property
    def connected(self) -> bool:
        """False while the connection is lost and being made again."""
        return self.connection.connected

    @property
    def paused(self) -> bool:
        """Whether somebody paused me: what I send waits (§3.9.1)."""
        return self.connection.session.outgoing.paused_until is not None

    @property
    def gaps(self) -> Sequence[Gap]:
        """The times without a connection, and whether what was missed has been replayed."""
        return tuple(self.connection.gaps)

    @property
    def recalled(self) -> Sequence[Envelope]:
        """What was shown before I came, oldest first, as far as `connect` was asked for it."""
        return self.connection.recalled

    @property
    def misconduct(self) -> Mapping[ParticipantId, Misconduct]:
        """Who sent what had to be dropped, how often, and why the last time (§4.3)."""
        return dict(self.connection.session.misconduct)

    def can_send(self, what: str | Envelope, payload: Any = None, *, to: str | Sequence[str] = ()) -> bool:
        """Whether my capabilities allow an envelope, or one of this kind; matched as the gateway does."""
        envelope = (
            what if isinstance(what, Envelope) else self.connection.compose(what, payload, to=to, id="-")
        )
        return self.connection.session.may(envelope.kind, envelope.to, envelope.content)

    # Envelopes.

    async def send(
        self,
        kind: str,
        payload: Any = None,
        *,
        to: str | Sequence[str] = (),
        correlation_id: str | Sequence[str] = (),
        context: str | None = None,
        id: str | None = None,
    ) -> Envelope:
        """Send an envelope; return it once the gateway has accepted it and everyone is being shown it.

        `payload` is JSON, or one of the structs of `mew.protocol.kinds`. Waits while there is no connection, while it
        comes too fast, and while paused. Cancelled, it is not sent if it was not yet.

        Raises:
            Refused: the gateway said no, and why.
            Disconnected: the connection ended for good.
        """
        composed = self.connection.compose(
            kind, payload, to=to, correlation_id=correlation_id, context=context, id=id
        )
        return await self.connection.send(composed)

    def envelopes(
        self,
        kind: str | Iterable[str] | None = None,
        *,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        about: Envelope | str | None = None,
        to_me: bool = False,
    ) -> Feed[Envelope]:
        """The envelopes from now on that fit everything given, one's own included, for `async for`.

        `kind` may have wildcards (`"mcp/*"`). `context` is a path: what is under it fits. `about` is an envelope,
        or the id of one, that `correlation_id` must name. `to_me`: addressed to me, or to nobody in particular.
        """
        about = about.id if isinstance(about, Envelope) else about
        wanted = Filter.of(
            kind=kind, sender=sender, context=context, to=self.id if to_me else None, about=about
        )
        return self.connection.subscribe(wanted)

    def history(
        self,
        *,
        limit: int | None = None,
        before: Envelope | str | None = None,
        after: Envelope | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: str | None = None,
        participant: str | None = None,
        correlation: Envelope | str | None = None,
        newest_first: bool = False,
    ) -> HistoryIterator:
        """The envelopes shown so far that fit everything given, for `async for`: fetched as they are asked for.

            async for envelope in me.history(kind="mcp/proposal", newest_first=True): ...
            last = await me.history(limit=50, newest_first=True).list()

        From the first that the gateway keeps on, or from the newest back; those that I may see. `since` and `until`
        are the gateway's time. `participant` is who sent it, `kind` may have wildcards, and `correlation` asks for all
        that hangs together with an envelope. Where `before`, `after` and `correlation` take an envelope, its id will
        do. `complete` then says whether anything that may have fitted is gone.

        Raises:
            ValueError: a moment without a time zone, or a limit below 1.
            InvalidCapability: the kind is no pattern.
        """
        asked = HistoryFilter(
            limit=limit,
            before=before,
            after=after,
            since=since,
            until=until,
            kind=kind,
            participant=participant,
            correlation=correlation,
            newest_first=newest_first,
        )
        return HistoryIterator(self.connection, asked)
