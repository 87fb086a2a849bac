"""PURE. An entry as it is kept: its content, and a hash over that and the hash before it.

Whoever changes, removes or inserts an entry breaks the chain there, and `first_break` finds where.
"""

import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from mew.protocol.codec import decode
from mew.protocol.errors import ProtocolError
from mew.space import (
    Configured,
    Connection,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    Sent,
    TimePassed,
    Violated,
)
from mew.space.stored import Reader, to_json

__all__ = [
    "Break",
    "Link",
    "Parts",
    "Row",
    "break_at",
    "first_break",
    "first_link",
    "link_through",
    "pack",
    "pack_again",
    "put_together",
    "take_apart",
    "to_entry",
    "unpack",
]

_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_HEAD: Final = struct.Struct(
    ">QqII"
)  # number, microseconds since 1970, bytes of the event, bytes of the envelope
_HASH_BYTES: Final = 32


class Link(NamedTuple):
    """A place in the chain: the last entry before it and its hash."""

    seq: int
    hash: bytes


class Row(NamedTuple):
    """One entry. `content`: a head, the event as JSON, and for an envelope its bytes as they came."""

    seq: int
    content: bytes
    hash: bytes


class Parts(NamedTuple):
    """What the content of an entry consists of: put together again it is the same to the byte."""

    seq: int
    at: datetime
    event: bytes
    envelope: bytes


class Break(NamedTuple):
    """Where a chain is broken: the first entry that does not fit, by the number it should have, and why."""

    seq: int
    why: str


class _Sent(Struct, frozen=True, tag="Sent", omit_defaults=True):
    """`Sent` without its envelope: that is read from its bytes again."""

    connection: Connection | None = None
    lenient: bool = False
    token_hash: str = ""


_Stored: TypeAlias = Configured | Identified | Joined | Left | _Sent | Violated | TimePassed
_stored: Final = Reader(_Stored)
_SENT: Final = b'{"type":"Sent"'  # a few of them, again and again


def first_link(space: str) -> Link:
    """What the first entry of a space is chained to: its name, so that no log passes for another's."""
    return Link(0, sha256(b"mew/journal/1\n" + space.encode()).digest())


def pack(entries: Iterable[Entry], after: Link) -> tuple[bytes, Link]:
    """The entries that come right after this place as rows, one behind the other, and the place after them."""
    parts: list[bytes] = []  # each the hash before an entry and its content: what its own hash is over
    seq, digest = after
    at, moment = None, 0
    for entry in entries:
        seq, event = entry.seq, entry.event
        if entry.at is not at:  # mostly the same for all of a turn
            at, moment = entry.at, (entry.at - _START) // _MICROSECOND
        if type(event) is Sent:
            written, raw = _sent(event.connection, event.lenient, event.token_hash), event.raw
        else:
            written, raw = to_json(event), b""
        part = b"".join((digest, _HEAD.pack(seq, moment, len(written), len(raw)), written, raw))
        digest = sha256(part).digest()
        parts.append(part)
    parts.append(digest)
    return b"".join(parts)[_HASH_BYTES:], Link(seq, digest)


def pack_again(rows: Iterable[Row]) -> bytes:
    """Rows as they were packed."""
    return b"".join([part for row in rows for part in (row.content, row.hash)])


def to_entry(row: Row) -> Entry:
    """The entry again.

    Raises:
        ValueError: no entry that this version knows.
    """
    seq, at, event, envelope = take_apart(row.content)
    return Entry(seq, at, _event(event, envelope))


def take_apart(content: bytes) -> Parts:
    """Its parts, as they are kept.

    Raises:
        ValueError: it is of no moment.
    """
    seq, moment, event_bytes, _ = _HEAD.unpack_from(content)
    end = _HEAD.size + event_bytes
    try:
        at = _START + timedelta(microseconds=moment)
    except OverflowError as error:
        raise ValueError(f"{moment} is no moment") from error
    return Parts(seq, at, content[_HEAD.size : end], content[end:])


def put_together(parts: Parts) -> bytes:
    """The content of an entry with these parts."""
    seq, at, event, envelope = parts
    return _HEAD.pack(seq, (at - _START) // _MICROSECOND, len(event), len(envelope)) + event + envelope


def break_at(row: Row, before: Link) -> Break | None:
    """What is wrong with a row that should be the one right after this place; None: it is."""
    seq = before.seq + 1
    if row.seq != seq:
        return Break(seq, f"entry {seq} is missing, the next one is {row.seq}")
    if row.hash != sha256(before.hash + row.content).digest():
        return Break(seq, f"entry {seq} is not what was written")
    return None


def first_break(rows: Iterable[Row], after: Link) -> Break | None:
    """Where these rows, all that follow this place, are not what was written: one altered, removed or put in."""
    for row in rows:
        found = break_at(row, after)
        if found is not None:
            return found
        after = Link(row.seq, row.hash)
    return None


def link_through(packed: bytes, after: Link) -> Link | None:
    """The place after packed entries that all are what was written after this place; None: one is not.

    Twice as fast as to unpack them.
    """
    seq, digest = after
    at, size = 0, len(packed)
    content_bytes, digest_of = _HEAD.unpack_from, sha256
    while at < size - _HEAD.size:
        number, _, event_bytes, envelope_bytes = content_bytes(packed, at)
        end = at + _HEAD.size + event_bytes + envelope_bytes
        # The hash before it stands right before it, but for the first.
        hashed = packed[at - _HASH_BYTES : end] if at else digest + packed[:end]
        at = end + _HASH_BYTES
        seq += 1
        digest = packed[end:at]
        if number != seq or digest_of(hashed).digest() != digest:
            return None
    return Link(seq, digest) if at == size else None


def unpack(packed: bytes) -> Iterator[Row]:
    """Those that were packed.

    Raises:
        ValueError: the next is not there as a whole; those before it were yielded.
    """
    at = 0
    while at < len(packed):
        if len(packed) < at + _HEAD.size:
            raise ValueError("an entry breaks off")
        seq, _, event_bytes, envelope_bytes = _HEAD.unpack_from(packed, at)
        end = at + _HEAD.size + event_bytes + envelope_bytes
        if len(packed) < end + _HASH_BYTES:
            raise ValueError("an entry breaks off")
        yield Row(seq, packed[at:end], packed[end : end + _HASH_BYTES])
        at = end + _HASH_BYTES


@lru_cache(maxsize=1024)
def _sent(connection: Connection | None, lenient: bool, token_hash: str) -> bytes:  # noqa: FBT001  # a key
    return to_json(_Sent(connection, lenient, token_hash))


@lru_cache(maxsize=1024)
def _read_sent(written: bytes) -> _Stored:
    stored: _Stored = _stored.read(written)
    return stored


def _event(written: bytes, raw: bytes) -> Event:
    stored: _Stored = _read_sent(written) if written.startswith(_SENT) else _stored.read(written)
    if not isinstance(stored, _Sent):
        return stored
    try:
        return Sent(decode(raw), raw, stored.connection, stored.lenient, stored.token_hash)
    except ProtocolError as error:
        raise ValueError(str(error)) from error
