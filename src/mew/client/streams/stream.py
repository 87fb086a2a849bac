"""One stream (§3.10): write, read, hand over and close it."""

import asyncio
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from types import TracebackType
from typing import Any, Final, Literal, Self

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import answered, awaiting
from mew.client.connection.transport import LinkClosed
from mew.client.errors import Refused, StreamBroken
from mew.protocol.envelope import GATEWAY, Envelope, EnvelopeId
from mew.protocol.errors import Refusal
from mew.protocol.frames import join
from mew.protocol.kinds import ErrorPayload, Kind, StreamOpen

from .reader import StreamReader

__all__ = ["FRAME_BYTES_MAX", "OWNER_LEFT", "Known", "Stream", "StreamChannel"]

_GATEWAY_S: Final = 10.0  # what the gateway itself says; ours takes milliseconds


class StreamChannel:
    """A connection, as its streams see it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.losses = 0
        """How often the connection was lost: frames that were sent under another count may not have arrived."""
        self._look_again = asyncio.Event()
        connection.listen(self._hear, (Kind.PAUSE, Kind.RESUME))
        connection.lost_listeners.append(self._lost)

    @property
    def me(self) -> str:
        return self.connection.session.me

    async def unpaused(self) -> None:
        """Wait while paused (§3.9.1): a frame would be refused. Returns early when the connection is lost."""
        outgoing, loop, losses = self.connection.session.outgoing, asyncio.get_running_loop(), self.losses
        while (until := outgoing.paused_until) is not None and loop.time() < until and losses == self.losses:
            self._look_again.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if until == inf else until):
                    await self._look_again.wait()

    async def send_frame(self, frame: bytes, *, text: bool) -> None:
        """Hand over a frame; return when there is room for the next.

        Raises:
            StreamBroken: it may or may not have arrived.
        """
        try:
            await self.connection.send_frame(frame, text=text)
        except LinkClosed as error:
            raise StreamBroken(f"the connection was lost while writing: {error.reason}") from None

    async def ask(self, kind: str, payload: Mapping[str, Any], answer_kind: str) -> None:
        """Send, and return once the gateway has answered with that kind.

        Raises:
            Refused: the gateway said no.
            Unanswered: it accepted, and did not answer.
            Disconnected: the connection ended for good.
        """
        envelope = self.connection.compose(kind, payload)

        def look(seen: Envelope, payload: Any) -> bool | None:
            ours = seen.kind == answer_kind and seen.sender == GATEWAY
            return True if ours and envelope.id in seen.correlation_id else None

        with awaiting(self.connection, look) as answer:
            await self.connection.send(envelope)
            await answered(answer, _GATEWAY_S, f"{kind} was accepted, but no {answer_kind} came")

    def _hear(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind == Kind.RESUME or envelope.kind == Kind.PAUSE:
            self._look_again.set()

    def _lost(self) -> None:
        self.losses += 1
        self._look_again.set()


FRAME_BYTES_MAX: Final = 256 << 10
"""So much data goes into one frame; what is larger is cut."""

OWNER_LEFT: Final = "owner_left"
"""Why the gateway closes a stream."""
_GATEWAYS: Final = frozenset({"stream_id", "owner", "authorized_writers", "created"})


@dataclass(eq=False)
class Known:
    """What is known of a stream, shared by every `Stream` that stands for it."""

    id: str
    owner: str
    writers: tuple[str, ...]
    direction: Literal["upload", "download"]
    target: tuple[str, ...] | None
    created: datetime | None
    fields: Mapping[str, Any]
    open_id: EnvelopeId | None
    closed: bool = False
    close_reason: str | None = None
    close_fields: Mapping[str, Any] = field(default_factory=dict)
    readers: "weakref.WeakSet[StreamReader]" = field(default_factory=weakref.WeakSet)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    wrote_in: int | None = None
    """The count of losses when it was written to last."""
    refused: ErrorPayload | None = None
    """What the gateway said to a frame of ours, and nobody here was told yet."""

    @classmethod
    def shown(
        cls, shown: Mapping[str, Any], opened: StreamOpen, *, owner: str, open_id: EnvelopeId | None
    ) -> Self:
        """As `stream/open` or the welcome shows it; `owner` where they do not say."""
        owner = owner if opened.owner is UNSET else opened.owner
        target = shown.get("target")
        return cls(
            id=opened.stream_id,
            owner=owner,
            writers=(owner,) if opened.authorized_writers is UNSET else tuple(opened.authorized_writers),
            direction="upload" if opened.direction is UNSET else opened.direction,
            target=(target,)
            if isinstance(target, str)
            else tuple(target)
            if isinstance(target, list)
            else None,
            created=None if opened.created is UNSET else opened.created,
            fields={name: value for name, value in shown.items() if name not in _GATEWAYS},
            open_id=open_id,
        )

    def reaches(self, who: str) -> bool:
        """Whether its frames are for `who`; nobody gets those it wrote itself."""
        return self.target is None or who in self.target

    def end(self, reason: str | None, fields: Mapping[str, Any]) -> None:
        """It is closed: readers end once they have read what is there."""
        self.closed = True
        self.close_reason = reason
        self.close_fields = fields
        for reader in tuple(self.readers):
            reader.close()

    def lose(self, why: str) -> None:
        """Frames may have been missed: those who read do not get the rest."""
        for reader in tuple(self.readers):
            reader.close(why)
        self.readers.clear()


class Stream:
    """A stream, kept current: iterate over it for what others write, `write` to it, and `close` it where it is yours.

    `async for data in stream` yields one `bytes` for each frame that others wrote (§3.10.3). Data is kept from the
    moment that somebody reads: from `read()` or the first `async for` on; of a stream that came from `incoming()`, or
    that one opened for download, from its opening on, until the `Stream` is dropped. What nobody reads is dropped.

    `async with stream:` closes it in the end, where it is one's own: with the reason `complete`, or after an exception
    `cancelled` or `error`.
    """

    def __init__(self, line: StreamChannel, known: Known, reader: StreamReader | None = None) -> None:
        self._line = line
        self._known = known
        self._reader = reader
        self._wrote_in: int | None = None

    def __repr__(self) -> str:
        state = f"closed: {self.close_reason}" if self.closed else "open"
        return f"<Stream {self.id} of {self.owner}, {self.direction}, {state}>"

    @property
    def id(self) -> str:
        return self._known.id

    @property
    def owner(self) -> str:
        return self._known.owner

    @property
    def writers(self) -> tuple[str, ...]:
        """Who may write to it now."""
        return self._known.writers

    @property
    def direction(self) -> Literal["upload", "download"]:
        """As its owner sees it: in an upload the owner writes, in a download those it asked to."""
        return self._known.direction

    @property
    def target(self) -> tuple[str, ...] | None:
        """Who gets the data; None: everyone."""
        return self._known.target

    @property
    def description(self) -> str | None:
        said = self.fields.get("description")
        return said if isinstance(said, str) else None

    @property
    def fields(self) -> Mapping[str, Any]:
        """Everything its request said; whatever is in there is the owner's word."""
        return self._known.fields

    @property
    def created(self) -> datetime | None:
        return self._known.created

    @property
    def open_id(self) -> EnvelopeId | None:
        """The `stream/open` that opened it, where that was seen."""
        return self._known.open_id

    @property
    def closed(self) -> bool:
        return self._known.closed

    @property
    def close_reason(self) -> str | None:
        """Why it was closed, once it is: `complete`, or what went wrong; `owner_left` when the gateway did it."""
        return self._known.close_reason

    @property
    def close_fields(self) -> Mapping[str, Any]:
        """What else its close said."""
        return self._known.close_fields

    @property
    def broken(self) -> bool:
        """Whether the connection was lost since this `Stream` was written to: some of that may not have arrived."""
        if self._wrote_in is not None and self._wrote_in != self._line.losses:
            return True
        return self.close_reason == OWNER_LEFT and self.owner == self._line.me

    @property
    def connection(self) -> ClientConnection:
        return self._line.connection

    # Reading.

    def read(self) -> StreamReader:
        """A reader of one's own, that gets what is written from now on."""
        reader, known = StreamReader(self.connection.pressure), self._known
        if known.closed:
            reader.close()
        elif not self.connection.connected:
            reader.close(f"there is no connection now, and what is written to {known.id} meanwhile is lost")
        else:
            known.readers.add(reader)
        return reader

    def __aiter__(self) -> StreamReader:
        """The reader that this `Stream` came with, or one made now; always the same."""
        if self._reader is None:
            self._reader = self.read()
        return self._reader

    # Writing.

    async def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """Send data, text as a text frame; return when there is room for more, not when somebody has read it.

        Up to 256 KiB stay one piece for who reads; more becomes several frames, that no other `write` here comes
        between. Waits while paused (§3.9.1).

        Raises:
            StreamBroken: the connection was lost; some of what was written may not have arrived.
            Refused: it is closed (`unknown_stream`), not ours to write (`unauthorized_stream_write`), or the gateway
                has refused something written before: it does not answer what it takes.
        """
        text = isinstance(data, str)
        whole = data.encode() if isinstance(data, str) else bytes(data)
        known, line = self._known, self._line
        async with known.writing:
            for piece in _pieces(whole, text=text):
                self._check_writable()
                await line.unpaused()
                self._check_writable()
                self._wrote_in = known.wrote_in = line.losses
                await line.send_frame(join(known.id, piece), text=text)

    def _check_writable(self) -> None:
        known = self._known
        self._check_whole()
        if known.closed:
            raise _no(Refusal.UNKNOWN_STREAM, f"stream {known.id!r} is closed: {known.close_reason}")
        if self._line.me not in known.writers:
            raise _no(
                Refusal.UNAUTHORIZED_STREAM_WRITE, f"{self._line.me!r} may not write to stream {known.id!r}"
            )

    def _check_whole(self) -> None:
        """That nothing we wrote is known to be lost, or refused; each refusal is told once."""
        if self.broken:
            raise StreamBroken(
                f"the connection was lost, and some of what was written to {self.id} may be lost with it"
            )
        problem, self._known.refused = self._known.refused, None
        if problem is not None:
            raise Refused(EnvelopeId(""), problem)

    # What its owner may do.

    async def close(self, reason: str = "complete", **fields: Any) -> None:
        """End it (§3.10.4); on return everyone is being shown it, and the gateway took all that was written before.

        `fields` go into the payload beside the reason. One that is closed already stays as it is.

        Raises:
            StreamBroken: the connection was lost; some of what was written may not have arrived.
            Refused: it is not ours, or the gateway has refused something that was written.
        """
        if not self.closed:
            envelope = self._closing(reason, fields)
            try:
                await self.connection.send(envelope)
            except Refused:
                self._check_whole()
                raise
        self._check_whole()
        self._wrote_in = None  # the gateway has it all: nothing of it can be lost any more

    async def grant_write(self, who: str) -> None:
        """Let `who` write too.

        Raises:
            Refused: it is not ours, or there is nobody of that name.
        """
        payload = {"stream_id": self.id, "participant_id": who}
        await self._line.ask(Kind.STREAM_GRANT_WRITE, payload, Kind.STREAM_WRITE_GRANTED)

    async def revoke_write(self, who: str) -> None:
        """Let `who` no longer write.

        Raises:
            Refused: it is not ours, or there is nobody of that name.
        """
        payload = {"stream_id": self.id, "participant_id": who}
        await self._line.ask(Kind.STREAM_REVOKE_WRITE, payload, Kind.STREAM_WRITE_REVOKED)

    async def transfer(self, new_owner: str) -> None:
        """Give it away: `new_owner` takes our place, also as a writer.

        Raises:
            Refused: it is not ours, or `new_owner` is not connected.
        """
        payload = {"stream_id": self.id, "new_owner": new_owner}
        await self._line.ask(Kind.STREAM_TRANSFER, payload, Kind.STREAM_TRANSFERRED)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            self._reader.close()
        if self.owner != self._line.me:
            return
        if error is None:
            await self.close()
        elif not self.closed:
            self.give_up("cancelled" if isinstance(error, asyncio.CancelledError) else "error")

    def give_up(self, reason: str = "cancelled") -> None:
        """Close it without waiting."""
        self.connection.post(self._closing(reason, {}))

    def _closing(self, reason: str, fields: Mapping[str, Any]) -> Envelope:
        about = () if self._known.open_id is None else (self._known.open_id,)
        payload = {**fields, "stream_id": self.id, "reason": reason}
        return self.connection.compose(Kind.STREAM_CLOSE, payload, correlation_id=about)


def _pieces(data: bytes, *, text: bool) -> Iterator[bytes]:
    """Of at most 256 KiB each; text is cut between characters, as every text frame is UTF-8."""
    if len(data) <= FRAME_BYTES_MAX:
        yield data
        return
    start = 0
    while start < len(data):
        end = start + FRAME_BYTES_MAX
        while text and end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end]
        start = end


def _no(refusal: Refusal, message: str) -> Refused:
    """What the gateway would say."""
    return Refused(EnvelopeId(""), ErrorPayload(error=refusal, message=message))
