"""Envelopes as they were shown, from the journal, for as long as it keeps them."""

from typing import Final

from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.space import Sent

from .facts import Fact

__all__ = ["Kept"]

_BYTES_MAX: Final = 32 << 20


class Kept:
    """What facts are of, up to so many bytes in all."""

    def __init__(self, journal: JournalReader, bytes_max: int = _BYTES_MAX) -> None:
        self._journal = journal
        self._left = bytes_max

    def envelope(self, fact: Fact) -> Envelope | None:
        """What a fact is of; None: it is not kept, cannot be read, was refused, or there was too much before it.

        Raises:
            LogUnavailable: the system says no.
        """
        if fact.refusal or self._left <= 0:
            return None
        if fact.made is not None:
            return self._read(fact.made.encode())
        try:
            entry = self._journal.entry(fact.seq)
        except Damaged:
            return None
        if entry is None or not isinstance(entry.event, Sent) or entry.event.envelope.id != fact.id:
            return None
        self._left -= len(entry.event.raw)
        return entry.event.envelope

    def _read(self, made: bytes) -> Envelope | None:
        self._left -= len(made)
        try:
            return decode(made)
        except ProtocolError:
            return None
