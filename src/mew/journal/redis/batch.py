"""PURE. The events that a node appends to a space in one turn, as the bytes of one stream entry.

No number and no moment is in it: a node cannot know them when it appends.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from mew.journal.record import read_event, write_event
from mew.space import Event, Sent

__all__ = ["pack_batch", "size_of", "unpack_batch"]

_HEAD: Final = struct.Struct(">qII")
"""`judged_at`, the size of the event without its envelopes, and how many these are."""


def size_of(event: Event) -> int:
    """How many numbers an event takes."""
    return len(event.envelopes.ids) if type(event) is Sent else 1


def pack_batch(events: Iterable[Event]) -> bytes:
    """The events, with the bytes of their envelopes as they came."""
    parts: list[bytes] = []
    for event in events:
        written = write_event(event)
        if type(event) is Sent:
            raws = event.envelopes.raws
            sizes = struct.pack(f">{len(raws)}I", *map(len, raws))
            parts += (_HEAD.pack(event.judged_at, len(written), len(raws)), written, sizes, *raws)
        else:
            parts += (_HEAD.pack(0, len(written), 0), written)
    return b"".join(parts)


def unpack_batch(body: bytes) -> Iterator[Event]:
    """The events of a batch.

    Raises:
        ValueError: it is none that this version of mew knows.
    """
    at = 0
    try:
        while at < len(body):
            judged_at, written_bytes, count = _HEAD.unpack_from(body, at)
            at += _HEAD.size
            written = body[at : at + written_bytes]
            at += written_bytes
            sizes = struct.unpack_from(f">{count}I", body, at)
            at += 4 * count
            raws: list[bytes] = []
            for size in sizes:
                raws.append(body[at : at + size])
                at += size
            if at > len(body):
                raise ValueError("a batch breaks off")
            yield read_event(written, tuple(raws), judged_at)[0]
    except struct.error as error:
        raise ValueError(f"a batch breaks off: {error}") from error
