"""PURE. The queue of chat that awaits my acknowledgement (§3.4.1, §3.4.2), and who acknowledged what I said."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import UNSET

from mew.proposals.bounded import Seen, Shares
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Acknowledgement, Chat, Kind, Reason
from mew.protocol.visible import cut

__all__ = ["ChatQueue"]

_STATUS_CHARS_MAX: Final = 256
_ACKNOWLEDGERS_MAX: Final = 1024
_KINDS: Final = frozenset({Kind.CHAT, Kind.CHAT_ACKNOWLEDGE, Kind.CHAT_CANCEL})


class ChatQueue:
    """Fed with the envelopes of a space in order; an envelope seen twice changes nothing.

    At most `waiting_max` chats wait, of about `bytes_max` in all; past that the oldest of whoever says the most goes.
    """

    def __init__(
        self, me: str, *, waiting_max: int = 1000, mine_max: int = 1000, bytes_max: int = 16 * 1024 * 1024
    ) -> None:
        self.me = me
        self._waiting_max = waiting_max
        self._mine_max = mine_max
        self._bytes_max = bytes_max
        self._waiting: dict[str, Envelope] = {}
        self._shares: Shares[str] = Shares()
        self._mine: dict[str, dict[str, str | None]] = {}
        self._seen = Seen()

    def apply(self, envelope: Envelope) -> bool:
        """Take the next envelope; return whether the queue or an acknowledgement changed."""
        if envelope.kind not in _KINDS or not self._seen.first(envelope):
            return False
        try:
            if envelope.kind == Kind.CHAT:
                envelope.read(Chat)
                return self._say(envelope)
            if envelope.kind == Kind.CHAT_ACKNOWLEDGE:
                return self._acknowledge(envelope, envelope.read(Acknowledgement))
            envelope.read(Reason)
            return self._cancel(envelope)
        except ProtocolError:
            return False

    @property
    def waiting(self) -> tuple[Envelope, ...]:
        """The chats that I have not acknowledged and nobody has cancelled, oldest first."""
        return tuple(self._waiting.values())

    def acknowledgements(self, chat: str) -> Mapping[str, str | None]:
        """Who acknowledged a chat of mine, with the status last given (None if none); empty for any other chat."""
        return MappingProxyType(self._mine.get(chat, {}))

    def _say(self, envelope: Envelope) -> bool:
        if envelope.sender == self.me:
            self._mine.setdefault(envelope.id, {})
            if len(self._mine) > self._mine_max:
                del self._mine[next(iter(self._mine))]
            return False
        if (envelope.to and self.me not in envelope.to) or envelope.id in self._waiting:
            return False
        self._waiting[envelope.id] = envelope
        self._shares.hold(envelope.sender, envelope.id, len(bytes(envelope.payload)))
        while self._shares.count > self._waiting_max:
            self._remove(self._shares.oldest_of_most())
        while self._shares.size > self._bytes_max and self._shares.count > 1:
            self._remove(self._shares.oldest_of_largest())
        return True

    def _acknowledge(self, envelope: Envelope, said: Acknowledgement) -> bool:
        if envelope.sender == self.me:
            return self._remove(*envelope.correlation_id)
        status = None if said.status is UNSET else cut(said.status, _STATUS_CHARS_MAX)
        changed = False
        for chat in envelope.correlation_id:
            given = self._mine.get(chat)
            if given is not None and (envelope.sender in given or len(given) < _ACKNOWLEDGERS_MAX):
                changed |= envelope.sender not in given or given[envelope.sender] != status
                given[envelope.sender] = status
        return changed

    def _cancel(self, envelope: Envelope) -> bool:
        """By anybody whom the gateway let cancel, if it is said to me too, or by me."""
        meant = not envelope.to or self.me in envelope.to or envelope.sender == self.me
        return meant and self._remove(*envelope.correlation_id)

    def _remove(self, *chats: str) -> bool:
        found = [self._waiting.pop(id) for id in dict.fromkeys(chats) if id in self._waiting]
        for chat in found:
            self._shares.release(chat.sender, chat.id)
        return bool(found)
