"""Envelopes as they were delivered, from the journal, for as long as it keeps them."""

from typing import Final

from mew.journal.files.database import Damaged
from mew.journal.reader import JournalReader
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.space import Sent

from .facts import Fact

__all__ = ["KeptEnvelopes"]

_BYTES_MAX: Final = 32 << 20


class KeptEnvelopes:
    """What facts are of, up to so many bytes in all."""

    def __init__(self, journal: JournalReader, bytes_max: int = _BYTES_MAX) -> None:
        self._journal = journal
        self._left = bytes_max

    def envelope(self, fact: Fact) -> Envelope | None:
        """What a fact is of; None: it is not kept, cannot be read, was refused, or there was too much before it.

        Raises:
            JournalUnavailable: the system says no.
        """
        if fact.refusal or self._left <= 0:
            return None
        try:
            raw = self._raw(fact)
            self._left -= len(raw)
            envelope = decode(raw)
        except (Damaged, ProtocolError):
            return None
        return envelope if envelope.id == fact.id else None

    def _raw(self, fact: Fact) -> bytes:
        record = self._journal.record(fact.seq)
        if record is None:
            return b""
        event = record.entry.event
        if fact.n:
            return record.made[fact.n - 1] if fact.n <= len(record.made) else b""
        return event.envelopes.raws[fact.seq - record.entry.seq] if isinstance(event, Sent) else b""
