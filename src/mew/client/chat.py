"""Chat (§3.4): the messages that await acknowledgement, and what becomes of one's own."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import UNSET

from mew.proposals.bounded import Seen, Shares
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Acknowledgement, Chat, Kind, ReasonPayload, Welcome
from mew.protocol.visible import cut

from .connection.connection import ClientConnection

__all__ = ["About", "ChatQueue", "ChatRoom", "Format", "ids_of"]

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
            envelope.read(ReasonPayload)
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


About = Envelope | str | Iterable[Envelope | str]
"""What something is about: envelopes, or their ids."""

Format = Literal["plain", "markdown"]

_MINE_MAX: Final = 1_000
_HEARD: Final = (Kind.CHAT, Kind.CHAT_ACKNOWLEDGE, Kind.CHAT_CANCEL, Kind.WELCOME)


class ChatRoom:
    """What one says, and the queue of what others said that awaits one's acknowledgement.

    All that send raise `Refused` where the gateway says no.
    """

    def __init__(self, connection: ClientConnection) -> None:
        """From here on, what is said is in the queue; made before its connection is entered, it misses nothing."""
        self.queue = ChatQueue(connection.session.me)
        self._connection = connection
        self._mine: dict[str, Envelope] = {}
        connection.listen(self._listen, _HEARD)

    def recall(self, shown: Iterable[Envelope]) -> None:
        """Know of what was said before we came."""
        self.queue.me = self._connection.session.me
        for envelope in shown:
            self._listen(envelope, None)

    @property
    def waiting(self) -> tuple[Envelope, ...]:
        """What others said to me or to all, neither acknowledged by me nor cancelled; oldest first."""
        return self.queue.waiting

    @property
    def unacknowledged(self) -> tuple[Envelope, ...]:
        """What I said and nobody cancelled, until all it was addressed to, or anyone if it was to all, acknowledge."""
        return tuple(chat for chat in self._mine.values() if not self._is_acknowledged(chat))

    async def chat(
        self,
        text: str,
        *,
        to: Sequence[str] = (),
        format: Format = "plain",
        about: About = (),
        context: str | None = None,
    ) -> Envelope:
        """Say something, to all or, with `to`, for somebody to act on; everyone sees it either way."""
        if not isinstance(text, str):
            raise TypeError(f"a chat is text, not {type(text).__name__}")
        return await self._send(
            Kind.CHAT, Chat(text=text, format=format), to=to, about=ids_of(about), context=context
        )

    async def acknowledge(self, chat: Envelope | str, status: str = "received") -> Envelope:
        """Tell its author that one has seen a chat and has nothing to add (§3.4.1)."""
        return await self._connection.send(self._acknowledgement(self._known(chat), status))

    async def acknowledge_all(self, status: str = "read") -> tuple[Envelope, ...]:
        """Clear the queue, with one acknowledgement for each chat in it (§3.4.1)."""
        return await self._send_all(self._acknowledgement(chat, status) for chat in self.waiting)

    async def cancel_chat(self, chat: Envelope | str, reason: str = "no_longer_needed") -> Envelope:
        """Tell those to whom it was said that a chat needs no attention any more (§3.4.2)."""
        return await self._connection.send(self._cancellation(self._known(chat), reason))

    async def cancel_all(self, reason: str = "no_longer_needed") -> tuple[Envelope, ...]:
        """Cancel everything I said that is not acknowledged, with one cancellation each (§3.4.2)."""
        return await self._send_all(self._cancellation(chat, reason) for chat in self.unacknowledged)

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if isinstance(payload, Welcome):
            self.queue.me = self._connection.session.me
        self.queue.apply(envelope)
        if envelope.kind == Kind.CHAT and envelope.sender == self.queue.me:
            self._mine[envelope.id] = envelope
            if len(self._mine) > _MINE_MAX:
                del self._mine[next(iter(self._mine))]
        elif envelope.kind == Kind.CHAT_CANCEL:
            for chat_id in envelope.correlation_id:
                self._mine.pop(chat_id, None)

    def _is_acknowledged(self, chat: Envelope) -> bool:
        by = self.queue.acknowledgements(chat.id).keys()
        return by >= set(chat.to) if chat.to else bool(by)

    def _known(self, chat: Envelope | str) -> Envelope | str:
        """The chat itself, where all that we have is the id of one that we know."""
        if isinstance(chat, Envelope):
            return chat
        if chat in self._mine:
            return self._mine[chat]
        return next((known for known in self.waiting if known.id == chat), chat)

    def _acknowledgement(self, chat: Envelope | str, status: str) -> Envelope:
        to = (chat.sender,) if isinstance(chat, Envelope) else ()
        return self._about(Kind.CHAT_ACKNOWLEDGE, chat, Acknowledgement(status=status), to)

    def _cancellation(self, chat: Envelope | str, reason: str) -> Envelope:
        mine = isinstance(chat, Envelope) and chat.sender == self.queue.me
        to = chat.to if isinstance(chat, Envelope) and mine else ()
        return self._about(Kind.CHAT_CANCEL, chat, ReasonPayload(reason=reason), to)

    def _about(self, kind: str, chat: Envelope | str, payload: Any, to: Sequence[str]) -> Envelope:
        return self._connection.compose(kind, payload, to=to, correlation_id=ids_of(chat))

    async def _send(
        self, kind: str, payload: Any, *, to: Sequence[str], about: Sequence[str], context: str | None
    ) -> Envelope:
        connection = self._connection
        return await connection.send(
            connection.compose(kind, payload, to=to, correlation_id=about, context=context)
        )

    async def _send_all(self, envelopes: Iterable[Envelope]) -> tuple[Envelope, ...]:
        return tuple(await asyncio.gather(*[self._connection.post(envelope) for envelope in envelopes]))


def ids_of(about: About) -> tuple[str, ...]:
    """The ids, in order: what `correlation_id` carries."""
    if isinstance(about, Envelope | str):
        about = (about,)
    return tuple(item.id if isinstance(item, Envelope) else item for item in about)
