"""PURE. The encoding of journal records and their hash chain.

A record has the event, the bytes of its envelopes side by side, and those of the envelopes that the gateway made
because of it. Its hash covers all of that and the hash before it: whoever alters, removes or inserts a record breaks
the chain there, and `find_break` finds where.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from mew.protocol.envelope import GATEWAY, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import is_talk
from mew.space import (
    Audiences,
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    NodeLeft,
    Refuse,
    Sent,
    TimePassed,
    Violated,
)
from mew.space.entries import StoredDecoder, to_json

from .port import Delivered

__all__ = [
    "ChainBreak",
    "ChainLink",
    "Record",
    "RecordHeader",
    "RecordParts",
    "RecordRow",
    "find_break",
    "from_microseconds",
    "genesis_link",
    "is_indexed",
    "join_record",
    "pack",
    "read_event",
    "read_header",
    "split_record",
    "to_microseconds",
    "unpack",
    "write_event",
]

_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_HEAD: Final = struct.Struct(">QqqIIIIB")
_ADDRESSED: Final = 1
_TALK_MAX: Final = 1024
_talk: Final[set[str]] = set()  # kinds that were found to be talk


class ChainLink(NamedTuple):
    """A place in the chain: after the entry with this number, whose record has this hash."""

    seq: int
    hash: bytes


class RecordRow(NamedTuple):
    """A record as the database has it: under a number of the database's, with the number of its last entry."""

    n: int
    last: int
    at: int
    body: bytes
    hash: bytes


class RecordHeader(NamedTuple):
    """What a record begins with. `seq` is the number of the first of its `own` envelopes, or of its event.

    `at` is in microseconds since 1970. `made` envelopes are the gateway's. The rest are sizes in bytes, and flags.
    """

    seq: int
    at: int
    judged_at: int
    own: int
    made: int
    event_bytes: int
    audience_bytes: int
    flags: int

    @property
    def last(self) -> int:
        return self.seq + max(self.own, 1) - 1


class RecordParts(NamedTuple):
    """What a record consists of: put together again it is the same to the byte."""

    head: RecordHeader
    event: bytes
    audiences: bytes
    raws: tuple[bytes, ...]


class Record(Struct, frozen=True):
    """A record, read: the entry, and what the gateway made because of it, for whom.

    `refused`: which envelopes of the entry were refused at their place in the order, by their index.
    """

    entry: Entry
    made: tuple[bytes, ...]
    made_for: Audiences
    refused: tuple[int, ...]
    is_addressed: bool

    @property
    def delivered(self) -> Delivered:
        """What was delivered because of it.

        Raises:
            ValueError: an envelope that the gateway made cannot be read.
        """
        entry, event = self.entry, self.entry.event
        raws = event.envelopes.raws if isinstance(event, Sent) else ()
        own = [raw for place, raw in enumerate(raws) if place not in self.refused]
        envelopes = _decoded((*own, *self.made))
        if not (self.is_addressed or _is_limited(self.made_for)):
            return Delivered(entry.seq, entry.at, envelopes.ids, envelopes.raws)
        only: list[tuple[ParticipantId, ...] | None] = [None] * len(own)
        if self.is_addressed:
            only = [
                tuple(map(ParticipantId, dict.fromkeys((*to, sender)))) if to else None
                for to, sender in zip(envelopes.to[: len(own)], envelopes.senders, strict=False)
            ]
        return Delivered(entry.seq, entry.at, envelopes.ids, envelopes.raws, (*only, *self.made_for))


class ChainBreak(NamedTuple):
    """The first entry that is not what was written, and why."""

    seq: int
    why: str


class _Sent(Struct, frozen=True, tag="Sent", omit_defaults=True):
    """A batch without its envelopes: the connections they came over, and which of these each did, if several."""

    connections: tuple[ConnectionId | None, ...]
    origins: tuple[int, ...] = ()
    lenient: bool = False
    token_hash: str = ""
    refused: tuple[int, ...] = ()


_Stored: TypeAlias = Configured | Identified | Joined | Left | NodeLeft | _Sent | Violated | TimePassed
_stored: Final = StoredDecoder(_Stored)
_audiences: Final = msgspec.json.Decoder(Audiences)


def genesis_link(space: str) -> ChainLink:
    """Where the chain of a space begins."""
    return ChainLink(0, sha256(b"mew/journal/2\n" + space.encode()).digest())


def to_microseconds(at: datetime) -> int:
    """A moment, in microseconds since 1970."""
    return (at - _START) // _MICROSECOND


def from_microseconds(at: int) -> datetime:
    """The moment this many microseconds after the beginning of 1970.

    Raises:
        ValueError: there is no such moment.
    """
    try:
        return _START + timedelta(microseconds=at)
    except OverflowError as error:
        raise ValueError(f"{at} is no moment") from error


def pack(entry: Entry, at: int, decisions: Sequence[Decision], before: bytes) -> tuple[bytes, bytes]:
    """The record of an entry of which the space decided this, and its hash.

    `at` is its moment in microseconds since 1970, `before` the hash before it.
    """
    event = entry.event
    kept: tuple[bytes, ...] = ()
    made_for: Audiences = ()
    own, judged_at, flags, place = 0, 0, 0, 0
    refused: tuple[int, ...] = ()
    if type(event) is Sent:
        kept, judged_at = event.envelopes.raws, event.judged_at
        own = len(kept)
    for decision in decisions:  # each envelope of a batch is delivered or refused, in their order
        if type(decision) is Deliver:
            envelopes = decision.envelopes
            if envelopes.senders[0] == GATEWAY:
                kept += envelopes.raws
                made_for += decision.only or (None,) * len(envelopes)
                continue
            place += len(envelopes.ids)
            if decision.only is not None:
                flags = _ADDRESSED
        elif type(decision) is Refuse:
            refused += (place,)
            place += 1
    written = _write_sent(event, refused) if type(event) is Sent else to_json(event)
    audiences = msgspec.json.encode(made_for) if made_for and _is_limited(made_for) else b""
    made = len(kept) - own
    head = _HEAD.pack(entry.seq, at, judged_at, own, made, len(written), len(audiences), flags)
    body = b"".join((head, written, audiences, _sizes(len(kept)).pack(*map(len, kept)), *kept))
    return body, sha256(before + body).digest()


def write_event(event: Event) -> bytes:
    """An event without the bytes of its envelopes."""
    return _write_sent(event, ()) if type(event) is Sent else to_json(event)


def is_indexed(entry: Entry, decisions: Sequence[Decision]) -> bool:
    """Whether the index has more to say of an entry than where it is: all but accepted talk that led to nothing."""
    event = entry.event
    if type(event) is not Sent or len(decisions) != 1 or type(decisions[0]) is not Deliver:
        return True
    kinds = event.envelopes.kinds
    if _talk.issuperset(kinds):
        return False
    if not all(map(is_talk, kinds)):
        return True
    if len(_talk) < _TALK_MAX:  # kinds are the senders' to make up
        _talk.update(kinds)
    return False


def read_header(body: bytes) -> RecordHeader:
    """What a record begins with.

    Raises:
        ValueError: it breaks off.
    """
    if len(body) < _HEAD.size:
        raise ValueError("a record breaks off")
    return RecordHeader._make(_HEAD.unpack_from(body))


def split_record(body: bytes) -> RecordParts:
    """The parts of a record, as they are kept.

    Raises:
        ValueError: it breaks off, or goes on.
    """
    head = read_header(body)
    start = _HEAD.size
    event = body[start : start + head.event_bytes]
    start += head.event_bytes
    audiences = body[start : start + head.audience_bytes]
    return RecordParts(head, event, audiences, _raws(body, start + head.audience_bytes, head.own + head.made))


def join_record(head: RecordHeader, event: bytes, audiences: bytes, raws: tuple[bytes, ...]) -> bytes:
    """The record with these parts.

    Raises:
        ValueError: there is none.
    """
    try:
        return b"".join((_HEAD.pack(*head), event, audiences, _sizes(len(raws)).pack(*map(len, raws)), *raws))
    except struct.error as error:
        raise ValueError(str(error)) from error


def unpack(body: bytes) -> Record:
    """Read a record.

    Raises:
        ValueError: it is none that this version of mew knows.
    """
    head, written, audiences, raws = split_record(body)
    own, made = raws[: head.own], raws[head.own :]
    event, refused = read_event(written, own, head.judged_at)
    try:
        made_for: Audiences = _audiences.decode(audiences) if audiences else (None,) * len(made)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    if len(made_for) != len(made):
        raise ValueError("a record does not say whom an envelope was for")
    entry = Entry(head.seq, from_microseconds(head.at), event, max(head.own, 1))
    return Record(entry, made, made_for, refused, bool(head.flags & _ADDRESSED))


def find_break(row: RecordRow, before: ChainLink) -> ChainBreak | None:
    """What is wrong with a row that should be the one right after this place; None: nothing."""
    seq = before.seq + 1
    try:
        head = read_header(row.body)
    except ValueError as error:
        return ChainBreak(seq, f"entry {seq} is not what was written: {error}")
    if row.hash != sha256(before.hash + row.body).digest():
        if head.seq != seq:
            return ChainBreak(seq, f"entry {seq} is missing, the next one is {head.seq}")
        return ChainBreak(seq, f"{_entries(seq, row.last)} not what was written")
    if head.seq != seq or head.last != row.last:
        return ChainBreak(seq, f"entry {seq} is not where it was written, but as entry {row.last}")
    if head.at != row.at:
        return ChainBreak(
            seq, f"{_entries(seq, row.last)} not what was written: the moment beside it is another"
        )
    return None


def _is_limited(audiences: Audiences) -> bool:
    """Whether one of them is not everyone."""
    return audiences.count(None) < len(audiences)


def _entries(first: int, last: int) -> str:
    return f"entry {first} is" if last <= first else f"one of the entries {first} to {last} is"


def _raws(body: bytes, start: int, count: int) -> tuple[bytes, ...]:
    at = start + 4 * count
    if at > len(body):
        raise ValueError("a record breaks off")
    raws: list[bytes] = []
    for size in _sizes(count).unpack_from(body, start):
        raws.append(body[at : at + size])
        at += size
    if at != len(body):
        raise ValueError("a record breaks off, or goes on")
    return tuple(raws)


@lru_cache(maxsize=1024)
def _sizes(count: int) -> struct.Struct:
    return struct.Struct(f">{count}I")


def _write_sent(sent: Sent, refused: tuple[int, ...]) -> bytes:
    origins = sent.origins
    if not refused and origins.count(origins[0]) == len(origins):
        return _write_simple(origins[0], sent.lenient, sent.token_hash)
    connections = tuple(dict.fromkeys(origins))
    places = {connection: place for place, connection in enumerate(connections)}
    numbers = tuple([places[origin] for origin in origins])
    return to_json(_Sent(connections, numbers, sent.lenient, sent.token_hash, refused))


@lru_cache(maxsize=1024)
def _write_simple(connection: ConnectionId | None, lenient: bool, token_hash: str) -> bytes:  # noqa: FBT001  # a key
    return to_json(_Sent((connection,), (), lenient, token_hash))


@lru_cache(maxsize=1024)
def _read_stored(written: bytes) -> _Stored:
    stored: _Stored = _stored.read(written)
    return stored


def read_event(written: bytes, raws: tuple[bytes, ...], judged_at: int) -> tuple[Event, tuple[int, ...]]:
    """What `write_event` wrote, with the bytes of its envelopes.

    Raises:
        ValueError: it is none that this version of mew knows.
    """
    stored = _read_stored(written)
    if not isinstance(stored, _Sent):
        if raws:
            raise ValueError(f"envelopes in a record of {type(stored).__name__}")
        return stored, ()
    if not raws or not stored.connections:
        raise ValueError("a batch without envelopes or origins")
    if stored.origins:
        try:
            origins = tuple([stored.connections[origin] for origin in stored.origins])
        except IndexError as error:
            raise ValueError("an origin that is not listed") from error
    else:
        origins = stored.connections * len(raws)
    if len(origins) != len(raws):
        raise ValueError("not as many origins as envelopes")
    sent = Sent(_decoded(raws), origins, judged_at, stored.lenient, stored.token_hash)
    return sent, stored.refused


def _decoded(raws: tuple[bytes, ...]) -> Envelopes:
    try:
        return Envelopes.decode(raws)
    except ProtocolError as error:
        raise ValueError(str(error)) from error
