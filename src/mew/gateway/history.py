"""PURE. What was shown in a space, newest last, within bounds: for those who come back and those who ask."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from msgspec import Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId

__all__ = ["History", "Record"]


class Record(Struct, frozen=True, gc=False):
    """One envelope as it was shown. `only`: those it was for, None for everyone."""

    at: datetime
    envelope: Envelope
    raw: bytes
    only: tuple[ParticipantId, ...] | None

    def is_for(self, who: ParticipantId) -> bool:
        return self.only is None or who in self.only


class History:
    """The last envelopes of one space."""

    def __init__(self, envelopes_max: int, bytes_max: int) -> None:
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._records: deque[Record] = deque()
        self._numbers: dict[str, int] = {}
        self._first = 0  # the number of the oldest record kept; they are numbered as they come
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: Record) -> None:
        self._numbers[record.envelope.id] = self._first + len(self._records)
        self._records.append(record)
        self._bytes += len(record.raw)
        while len(self._records) > self._envelopes_max or self._bytes > self._bytes_max:
            self._drop_oldest()

    def knows(self, envelope_id: str) -> bool:
        return envelope_id in self._numbers

    def after(self, envelope_id: EnvelopeId | None) -> Iterator[Record]:
        """Those after this one, oldest first; all of them if it is None or no longer known."""
        number = self._first - 1 if envelope_id is None else self._numbers.get(envelope_id, self._first - 1)
        return islice(self._records, number + 1 - self._first, None)

    def _drop_oldest(self) -> None:
        oldest = self._records.popleft()
        self._bytes -= len(oldest.raw)
        if self._numbers.get(oldest.envelope.id) == self._first:
            del self._numbers[oldest.envelope.id]
        self._first += 1
