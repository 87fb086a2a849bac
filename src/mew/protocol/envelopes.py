"""Several envelopes side by side, column by column: what is judged, journalled and delivered together.

Columns and not an object each: a whole column is compared, looked up or joined in one operation.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from mew.speedups import compiled_if_possible

from .codec import decode, encode
from .envelope import Envelope
from .errors import ProtocolError

__all__ = ["Envelopes", "read_headers"]

_ANY_SIZE: Final = 1 << 62

Texts: TypeAlias = tuple[str, ...]
Headers: TypeAlias = tuple[Texts, Texts, Texts, tuple[Texts, ...], tuple[Texts, ...]]
"""Ids, senders, kinds, addressees and correlation ids."""


class Envelopes(Struct, frozen=True, gc=False):
    """Envelopes in their order: what the header of each says, and the bytes it came as."""

    ids: Texts
    senders: Texts
    kinds: Texts
    to: tuple[Texts, ...]
    correlation_ids: tuple[Texts, ...]
    raws: tuple[bytes, ...]

    @classmethod
    def of(cls, envelope: Envelope, raw: bytes = b"") -> "Envelopes":
        """A single one; without `raw` it is encoded."""
        return cls(
            (envelope.id,),
            (envelope.sender,),
            (envelope.kind,),
            (envelope.to,),
            (envelope.correlation_id,),
            (raw or encode(envelope),),
        )

    @classmethod
    def read(cls, messages: tuple[bytes, ...], start: int, bytes_max: int) -> "Envelopes":
        """Those that `read_headers` reads."""
        columns = read_headers(messages, start, bytes_max)
        return cls(*columns, messages[start : start + len(columns[0])])

    @classmethod
    def decode(cls, raws: tuple[bytes, ...]) -> "Envelopes":
        """All of these.

        Raises:
            ProtocolError: one is not a well-formed envelope.
        """
        read = cls.read(raws, 0, _ANY_SIZE)
        while len(read) < len(raws):
            read = read.joined(cls.of(decode(raws[len(read)]), raws[len(read)]))
            read = read.joined(cls.read(raws, len(read), _ANY_SIZE))
        return read

    def joined(self, others: "Envelopes") -> "Envelopes":
        """These, and others after them."""
        return Envelopes(
            self.ids + others.ids,
            self.senders + others.senders,
            self.kinds + others.kinds,
            self.to + others.to,
            self.correlation_ids + others.correlation_ids,
            self.raws + others.raws,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Envelope]:
        return map(decode, self.raws)

    def __getitem__(self, place: int) -> Envelope:
        """One of them, decoded from its bytes."""
        return decode(self.raws[place])

    def part(self, start: int, end: int) -> "Envelopes":
        """Those from one place on, up to another."""
        if start == 0 and end == len(self.ids):
            return self
        return Envelopes(
            self.ids[start:end],
            self.senders[start:end],
            self.kinds[start:end],
            self.to[start:end],
            self.correlation_ids[start:end],
            self.raws[start:end],
        )


@compiled_if_possible
def read_headers(messages: tuple[bytes, ...], start: int, bytes_max: int, /) -> Headers:
    """Read the headers of the envelopes from `start` on, up to the first message that is none or is larger than this.

    The compiled one also stops at what needs a closer look; `mew.protocol.codec.decode` says what it is.
    """
    ids: list[str] = []
    senders: list[str] = []
    kinds: list[str] = []
    to: list[tuple[str, ...]] = []
    correlation_ids: list[tuple[str, ...]] = []
    for place in range(start, len(messages)):
        if len(messages[place]) > bytes_max:
            break
        try:
            envelope = decode(messages[place])
        except ProtocolError:
            break
        ids.append(envelope.id)
        senders.append(envelope.sender)
        kinds.append(envelope.kind)
        to.append(envelope.to)
        correlation_ids.append(envelope.correlation_id)
    return tuple(ids), tuple(senders), tuple(kinds), tuple(to), tuple(correlation_ids)
