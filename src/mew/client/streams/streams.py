"""The streams of a space (§3.10), as one participant sees them: opening, finding and demultiplexing them."""

import asyncio
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.feed import Feed
from mew.client.connection.reply import awaiting
from mew.client.errors import Unanswered
from mew.protocol.envelope import GATEWAY, Envelope, EnvelopeId
from mew.protocol.errors import FRAMES_DROPPED, ProtocolError, Refusal
from mew.protocol.frames import stream_of
from mew.protocol.kinds import (
    ErrorPayload,
    Kick,
    Kind,
    StreamClose,
    StreamOpen,
    StreamTransferred,
    StreamWriters,
    Welcome,
)

from .stream import OWNER_LEFT, Known, Stream, StreamChannel

__all__ = ["RESULT_OF", "Streams"]

RESULT_OF: Final = "mew/result_of"
"""The field of a stream that brings the result of a request: the id of that."""

# What the gateway says to a frame, without naming what it is about in `correlation_id`: a frame has no id.
_TO_FRAMES: Final = frozenset(
    {
        Refusal.UNKNOWN_STREAM,
        Refusal.UNAUTHORIZED_STREAM_WRITE,
        Refusal.PAUSED,
        Refusal.SHUT_DOWN,
        Refusal.TOO_LARGE,
    }
)
_QUOTED: Final = re.compile(r"'([^']*)'")
_MISSED: Final = "the connection was lost, and what was written to {} meanwhile with it"


class Streams:
    """Made before its connection is entered, it knows every stream that is open."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._line = StreamChannel(connection)
        self._known: dict[str, Known] = {}
        self._incoming: weakref.WeakSet[Feed[Stream]] = weakref.WeakSet()
        self._unwanted: set[str] = set()
        self._welcomed_in: int | None = None
        self._missed_until: datetime | None = None
        self._handlers: dict[str, Callable[[Envelope, Any], None]] = {
            Kind.STREAM_OPEN: self._opened,
            Kind.STREAM_CLOSE: self._closed,
            Kind.STREAM_WRITE_GRANTED: self._rewritten,
            Kind.STREAM_WRITE_REVOKED: self._rewritten,
            Kind.STREAM_TRANSFERRED: self._transferred,
            Kind.WELCOME: self._welcomed,
            Kind.ERROR: self._refused,
            Kind.KICK: self._kicked,
        }
        connection.listen(self._hear, self._handlers)
        connection.frame_listeners.append(self._take)
        connection.lost_listeners.append(self._lost)

    @property
    def active(self) -> tuple[Stream, ...]:
        """Those that are open now, oldest first; none of them is read by that."""
        return tuple(Stream(self._line, known) for known in self._known.values())

    def stream(self, stream_id: str) -> Stream:
        """One that is open; `read` it for what is written from then on.

        Raises:
            KeyError: there is none of that id.
        """
        return Stream(self._line, self._known[stream_id])

    def incoming(self) -> Feed[Stream]:
        """The streams that others open from now on, where I get their data or am to write it.

        Each comes with its data from the opening on, until that `Stream` is dropped. One that nobody reads holds up
        nobody; past 16 MiB it breaks. One that was opened while the connection was lost is broken from the start.
        Those that bring the result of a request are not among them.
        """
        feed: Feed[Stream] = self.connection.feed()
        self._incoming.add(feed)
        return feed

    async def open(
        self,
        *,
        direction: Literal["upload", "download"] = "upload",
        to: Sequence[str] = (),
        target: str | Sequence[str] | None = None,
        description: str | None = None,
        expected_size_bytes: int | None = None,
        encoding: str | None = None,
        correlation_id: Sequence[str] = (),
        context: str | None = None,
        within_s: float = 30.0,
        **fields: Any,
    ) -> Stream:
        """Ask the gateway for a stream (§3.10.1) that is ours: return once it is open.

        `upload`: we write it; `download`: those in `to` do, and its data is kept for us from the opening on.
        `target`: who gets the data, if not everyone. `fields` are shown with the stream to whoever looks at it.

        Raises:
            Refused: the gateway said no.
            Unanswered: it is not open within that time; should it be opened yet, it is closed at once.
            Disconnected: the connection ended for good.
        """
        asked = {
            "direction": direction,
            "target": target if target is None or isinstance(target, str) else list(target),
            "description": description,
            "expected_size_bytes": expected_size_bytes,
            "encoding": encoding,
        }
        payload = {**fields, **{name: value for name, value in asked.items() if value is not None}}
        envelope = self.connection.compose(
            Kind.STREAM_REQUEST, payload, to=to, correlation_id=correlation_id, context=context
        )

        def look(seen: Envelope, payload: Any) -> Stream | None:
            if not _is_open(seen) or envelope.id not in seen.correlation_id:
                return None
            return self._handle(self._known[payload.stream_id], reading=direction == "download")

        with awaiting(self.connection, look) as answer:
            try:
                async with asyncio.timeout(within_s):
                    await self.connection.send(envelope)
                    return await answer
            except TimeoutError:
                self._unwant(envelope.id, answer)
                raise Unanswered(f"no stream was opened within {within_s:g} s") from None
            except asyncio.CancelledError:
                self._unwant(envelope.id, answer)
                raise

    def _unwant(self, request_id: str, answer: asyncio.Future[Stream]) -> None:
        """Nobody waits for this stream any more: close it, now or when it is opened."""
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            answer.result().give_up()
        else:
            self._unwanted.add(request_id)

    def _handle(self, known: Known, *, reading: bool) -> Stream:
        stream = Stream(self._line, known)
        if reading:
            reader = aiter(stream)
            since, until = known.created, self._missed_until
            if since is not None and until is not None and since <= until:
                reader.close(_MISSED.format(known.id))
        return stream

    # What the gateway shows.

    def _hear(self, envelope: Envelope, payload: Any) -> None:
        handle = self._handlers.get(envelope.kind)
        if handle is not None:
            handle(envelope, payload)

    def _opened(self, envelope: Envelope, payload: StreamOpen) -> None:
        if not _is_open(envelope):
            return
        opened = self._learn(envelope.content, payload, EnvelopeId(envelope.id), next(iter(envelope.to), ""))
        if self._unwanted.intersection(envelope.correlation_id):
            self._unwanted.difference_update(envelope.correlation_id)
            Stream(self._line, opened).give_up()
        self._offer(opened)

    def _offer(self, opened: Known) -> None:
        me = self._line.me
        if RESULT_OF in opened.fields:
            return  # it brings the result of a request, and who made that reads it
        if opened.owner != me and (opened.reaches(me) or me in opened.writers):
            for feed in tuple(self._incoming):
                if feed.closed:
                    self._incoming.discard(feed)
                else:
                    feed.offer(self._handle(opened, reading=True))

    def _learn(
        self, shown: Mapping[str, Any], opened: StreamOpen, open_id: EnvelopeId | None, owner: str
    ) -> Known:
        """A welcome may have shown it before its `stream/open` is replayed: it is one stream."""
        stream = self._known.get(opened.stream_id)
        if stream is None:
            stream = self._known[opened.stream_id] = Known.shown(shown, opened, owner=owner, open_id=open_id)
        stream.open_id = open_id or stream.open_id
        return stream

    def _closed(self, envelope: Envelope, payload: StreamClose) -> None:
        if payload.stream_id is not UNSET:
            stream = self._known.get(payload.stream_id)
        else:
            about = envelope.correlation_id
            stream = next((known for known in self._known.values() if known.open_id in about), None)
        if stream is not None:
            del self._known[stream.id]
            said = {name: value for name, value in envelope.content.items() if name not in _CLOSE}
            stream.end(None if payload.reason is UNSET else payload.reason, said)

    def _rewritten(self, envelope: Envelope, payload: StreamWriters) -> None:
        stream = self._known.get(payload.stream_id)
        if stream is not None and envelope.sender == GATEWAY:
            stream.writers = tuple(payload.authorized_writers)

    def _transferred(self, envelope: Envelope, payload: StreamTransferred) -> None:
        stream = self._known.get(payload.stream_id)
        if stream is not None and envelope.sender == GATEWAY:
            stream.owner = payload.new_owner
            stream.writers = tuple(payload.authorized_writers)

    def _kicked(self, envelope: Envelope, payload: Kick) -> None:
        """Who was kicked may no longer write, even when it comes back; nobody says so for each stream."""
        for stream in self._known.values():
            stream.writers = tuple(who for who in stream.writers if who != payload.participant_id)

    def _welcomed(self, envelope: Envelope, payload: Welcome) -> None:
        """All that is open. What else changed while the connection was lost is replayed, unless too much has."""
        again = self._welcomed_in not in (None, self._line.losses)
        self._welcomed_in = self._line.losses
        if again and envelope.ts is not UNSET:
            self._missed_until = envelope.ts
        listed, found = set[str](), list[Known]()
        for shown in () if payload.active_streams is UNSET else payload.active_streams:
            try:
                opened = msgspec.convert(shown, StreamOpen)
            except msgspec.ValidationError:
                continue
            listed.add(opened.stream_id)
            if opened.stream_id not in self._known:
                found.append(self._learn(shown, opened, None, ""))
        if payload.resumed is True:
            return
        for stream in [stream for stream in self._known.values() if stream.id not in listed]:
            del self._known[stream.id]
            stream.end(OWNER_LEFT if stream.owner == self._line.me else None, {})
        if again:
            for stream in found:
                self._offer(stream)

    def _refused(self, envelope: Envelope, problem: ErrorPayload) -> None:
        """A frame of ours was refused: find out of which stream, as far as the gateway says."""
        if problem.error == FRAMES_DROPPED:
            slow = self._known.get(str(envelope.content.get("stream_id")))
            if slow is not None:
                slow.lose("it was read too slowly, and the gateway dropped some of it")
            return
        if envelope.correlation_id or problem.attempted_kind is not UNSET or problem.error not in _TO_FRAMES:
            return
        written = [known for known in self._known.values() if known.wrote_in == self._line.losses]
        quoted = set(_QUOTED.findall("" if problem.message is UNSET else problem.message))
        named = [known for known in written if known.id in quoted]
        if (
            named
            or problem.error not in (Refusal.UNKNOWN_STREAM, Refusal.UNAUTHORIZED_STREAM_WRITE)
            or not quoted
        ):
            for known in named or written:
                known.refused = problem

    # Frames.

    def _take(self, frame: bytes) -> None:
        try:
            stream_id = stream_of(frame)
        except ProtocolError:
            return
        stream = self._known.get(stream_id)
        if stream is not None and stream.readers:
            data = frame[len(stream_id) + 2 :]
            for reader in tuple(stream.readers):
                reader.offer(data)

    def _lost(self) -> None:
        self._unwanted.clear()
        for stream in self._known.values():
            stream.lose(_MISSED.format(stream.id))


_CLOSE: Final = frozenset({"stream_id", "reason"})


def _is_open(envelope: Envelope) -> bool:
    """Whether a stream was opened: what a participant sends under that kind opens nothing (design §3.15)."""
    return envelope.kind == Kind.STREAM_OPEN and envelope.sender == GATEWAY
