"""One space on this node: follows its log and carries out what it decides."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, Protocol, assert_never

from msgspec import Struct

from mew.log.base import Log, LogUnavailable
from mew.protocol import frames
from mew.protocol.capability import Capability
from mew.protocol.codec import encode, envelope_id_in
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.kinds import Kind
from mew.space import (
    Answer,
    Configured,
    Connection,
    Decision,
    Deliver,
    Disconnect,
    Entry,
    Event,
    Identified,
    Invite,
    Joined,
    Left,
    Refuse,
    Refused,
    Rules,
    Sent,
    Space,
    TimePassed,
    Violated,
    WakeAt,
)
from mew.space.space import CHANGING_KINDS

from . import answers
from .admit import admit
from .history import History, Record
from .outbox import Outbox, Outboxes, binary_frame, text_frame
from .rate import Bucket
from .settings import Limits
from .tokens import hash_token
from .trace import Trace

__all__ = ["Accepted", "Guest", "Room", "Shell"]

_log = logging.getLogger(__name__)

_RECORDED_PER_S: Final = 20
_RECORDED_BURST: Final = 200
_REPLIES: Final = frozenset(
    {Kind.STREAM_OPEN, Kind.STREAM_WRITE_GRANTED, Kind.STREAM_WRITE_REVOKED, Kind.STREAM_TRANSFERRED}
)


class Shell(Protocol):
    """What a room needs of the world."""

    def now(self) -> datetime: ...

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        """Send what the inviter was answered, without waiting for it."""

    def connection_url(self, space: str) -> str: ...


class Guest(Protocol):
    """A connection, as the room sees it."""

    id: Connection
    who: ParticipantId
    outbox: Outbox
    bucket: Bucket
    after: EnvelopeId | None
    lenient: bool

    def close(self, code: CloseCode, reason: str) -> None:
        """Say goodbye and close, without waiting for it."""

    async def goodbye(self, code: CloseCode, reason: str) -> None:
        """The same, and wait until it is gone."""


class Accepted(Struct, frozen=True):
    """An envelope is in the space, where it stands, and what the gateway answered to it."""

    envelope: Envelope
    at: datetime
    reply: Envelope | None = None


class Room:
    """Runs one space. Its methods are for the doors; nothing they do waits, but `inject`."""

    def __init__(
        self, rules: Rules, limits: Limits, log: Log, shell: Shell, trace: Trace | None = None
    ) -> None:
        self.id = rules.id
        self.limits = limits
        self.space = Space()
        self.history = History(limits.history_envelopes, limits.history_bytes)
        self.guests: dict[Connection, Guest] = {}
        self.counts = Counts()
        self._log = log
        self._shell = shell
        self._trace = trace
        self._outboxes = Outboxes()
        self._waiting: dict[str, deque[asyncio.Future[Accepted | Refused]]] = {}
        self._entering: dict[Connection, asyncio.Future[None]] = {}
        self._secrets: dict[str, str] = {}  # tokens of invitations on their way, by their hash
        self._unsettled = 0  # appended and not applied yet, of those that can change what the space allows
        self._deferred: list[Callable[[], None]] = []
        self._violations = Bucket(_RECORDED_PER_S, _RECORDED_BURST)
        self._wake: asyncio.TimerHandle | None = None
        self._epoch = secrets.token_hex(4)
        self.configure(rules, limits)

    async def run(self) -> None:
        """Until the log is closed.

        Raises:
            LogUnavailable: the log broke; nobody was shown anything that is not in it.
        """
        try:
            async for batch in self._log.follow(after=self.space.seq):
                for entry in batch:
                    self._apply(entry)
                if self._deferred:
                    self._run_deferred()
                self._outboxes.flush()
        finally:
            self.close()
            self._abandon_waiting()

    def close(self) -> None:
        """Take no more; what was taken is still carried out."""
        self._log.close()
        if self._wake is not None:
            self._wake.cancel()

    # What the doors say.

    def configure(self, rules: Rules, limits: Limits) -> None:
        self.limits = limits
        self._append(Configured(rules, self._epoch))

    def identify(self, who: ParticipantId, capabilities: tuple[Capability, ...] | None) -> None:
        """An authenticator gave `who` these capabilities; None: those of everyone the rules do not name."""
        if capabilities is None:
            capabilities = self.space.state.rules.defaults
        if self.space.state.identities.get(who) != capabilities:
            self._append(Identified(who, capabilities))

    async def enter(self, guest: Guest) -> None:
        """A connection is there; return once it has been welcomed and may speak.

        Raises:
            LogUnavailable: it was not let in; the room is closing.
        """
        resumed = None if guest.after is None else self.history.knows(guest.after)
        welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.guests[guest.id] = guest
        self._entering[guest.id] = welcomed
        self._append(Joined(guest.who, guest.id, resumed))
        await welcomed

    def depart(self, guest: Guest) -> None:
        """The connection is gone."""
        self._outboxes.remove(guest.id)
        if self.guests.pop(guest.id, None) is not None:
            self._append(Left(guest.id))

    def receive(self, guest: Guest, received: bytes) -> None:
        """An envelope came, or what should be one."""
        self.counts.received += 1
        try:
            envelope = admit(received, guest.who, bytes_max=self.limits.envelope_bytes)
        except ProtocolError as error:
            refused = Refused(error.refusal, str(error))
            self._turn_away(guest, refused, envelope_id_in(received), "")
            return
        refused_ = self._refusal(envelope, guest.bucket, lenient=guest.lenient)
        if refused_ is not None:
            self._turn_away(guest, refused_, EnvelopeId(envelope.id), envelope.kind)
        else:
            self._submit(envelope, received, guest.id, lenient=guest.lenient)

    def receive_frame(self, guest: Guest, frame: bytes, *, text: bool) -> None:
        """A stream frame came. It waits for entries on their way that may change where it goes."""
        if self._unsettled:
            self._deferred.append(lambda: self._forward(guest, frame, text=text))
            return
        self._forward(guest, frame, text=text)
        asyncio.get_running_loop().call_soon(self._outboxes.flush)

    async def inject(self, who: ParticipantId, received: bytes, bucket: Bucket) -> Accepted | Refused:
        """An envelope over HTTP (§5.3): the same rules, and an answer once it stands in the order."""
        self.counts.received += 1
        try:
            envelope = admit(received, who, bytes_max=self.limits.envelope_bytes)
        except ProtocolError as error:
            return Refused(error.refusal, str(error))
        refused = self._refusal(envelope, bucket, lenient=False)
        if refused is not None:
            self._record(who, EnvelopeId(envelope.id), envelope.kind, refused)
            return refused
        outcome: asyncio.Future[Accepted | Refused] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(envelope.id, deque()).append(outcome)
        self._submit(envelope, received, None, lenient=False)
        return await outcome

    # Towards the log.

    def _refusal(self, envelope: Envelope, bucket: Bucket, *, lenient: bool) -> Refused | None:
        wait_s = bucket.take(asyncio.get_running_loop().time())
        if wait_s:
            return Refused(Refusal.RATE_LIMITED, f"too many envelopes; again in {wait_s:.2f} s", wait_s)
        if self._unsettled:
            return None  # what is on its way may allow it; its place in the log decides
        return self.space.refusal(self._shell.now(), envelope, lenient=lenient)

    def _submit(
        self, envelope: Envelope, raw: bytes, connection: Connection | None, *, lenient: bool
    ) -> None:
        if self._trace is not None:
            self._trace.received(self.id, envelope)
        token_hash = ""
        if envelope.kind == Kind.INVITE:
            token = secrets.token_urlsafe(32)
            token_hash = hash_token(token)
            self._secrets[token_hash] = token
        self._append(Sent(envelope, raw, connection, lenient, token_hash))

    def _append(self, event: Event) -> None:
        if _may_change(event):
            self._unsettled += 1
        self._log.append(self._shell.now(), event)

    def _turn_away(self, guest: Guest, refused: Refused, envelope_id: EnvelopeId | None, kind: str) -> None:
        self._record(guest.who, envelope_id or EnvelopeId(""), kind, refused)
        self._refuse(guest.who, guest.id, refused, envelope_id, kind)
        asyncio.get_running_loop().call_soon(self._outboxes.flush)

    def _record(self, who: ParticipantId, envelope_id: EnvelopeId, kind: str, refused: Refused) -> None:
        """Note in the log that a rule said no, without what was sent, and not too often."""
        self.counts.refused += 1
        if self._trace is not None:
            self._trace.refused(self.id, who, envelope_id, kind, refused)
        if not kind or refused.refusal in (Refusal.RATE_LIMITED, Refusal.DUPLICATE_ID):
            return
        if self._violations.take(asyncio.get_running_loop().time()) == 0:
            _log.info(
                "refused", extra={"space": self.id, "who": who, "kind": kind, "refusal": str(refused.refusal)}
            )
            self._append(Violated(who, envelope_id, kind, refused.refusal))

    # From the log.

    def _apply(self, entry: Entry) -> None:
        event = entry.event
        if _may_change(event):
            self._unsettled -= 1
        decisions = self.space.apply(entry)
        for decision in decisions:
            self._carry_out(entry, decision)
        if isinstance(event, Sent):
            if event.connection is None:
                self._settle(entry, event, decisions)
            if event.token_hash:
                self._secrets.pop(event.token_hash, None)
        elif isinstance(event, Joined) and event.connection in self._entering:
            self._welcomed(event.connection)

    def _carry_out(self, entry: Entry, decision: Decision) -> None:
        match decision:
            case Deliver(envelope, raw, only):
                self._deliver(entry.at, envelope, raw or encode(envelope), only)
            case Answer(who, envelope, connection):
                self._answer(entry, who, envelope, connection)
            case Refuse(who, envelope_id, kind, refused, connection):
                self.counts.refused += 1
                if self._trace is not None:
                    self._trace.refused(self.id, who, envelope_id, kind, refused)
                if connection is not None:
                    self._refuse(who, connection, refused, envelope_id, kind)
            case Disconnect(connections, code, reason):
                self._disconnect(connections, code, reason)
            case Invite():
                self._hand_over(entry, decision)
            case WakeAt(at):
                self._wake_at(at)
            case _:
                assert_never(decision)

    def _deliver(
        self, at: datetime, envelope: Envelope, raw: bytes, only: tuple[ParticipantId, ...] | None
    ) -> None:
        self.history.append(Record(at, envelope, raw, only))
        frame = text_frame(raw)
        if only is None:
            self.counts.delivered += len(self.guests)
            self._outboxes.to_all(frame)
        else:
            receivers = self._connections_of(only)
            self.counts.delivered += len(receivers)
            self._outboxes.to(receivers, frame)
        if self._trace is not None:
            members = self.space.state.members
            self._trace.delivered(self.id, envelope, [who for who in members if only is None or who in only])

    def _answer(
        self, entry: Entry, who: ParticipantId, envelope: Envelope, connection: Connection | None
    ) -> None:
        frame = text_frame(encode(envelope))
        if connection is None:
            self._outboxes.to(self._connections_of((who,)), frame)
            return
        guest = self.guests.get(connection)
        if guest is None:
            return  # gone before its `Joined` came round
        self._outboxes.add(connection, guest.outbox)
        self._outboxes.to((connection,), frame)
        if guest.after is not None and self.history.knows(guest.after):
            for record in self.history.after(guest.after):
                if record.is_for(who):
                    self._outboxes.to((connection,), text_frame(record.raw))

    def _refuse(
        self,
        who: ParticipantId,
        connection: Connection,
        refused: Refused,
        envelope_id: EnvelopeId | None,
        kind: str,
    ) -> None:
        if connection in self.guests:
            told = answers.error(
                self._shell.now(), who, self.space, refused, envelope_id=envelope_id, kind=kind
            )
            self._outboxes.to((connection,), text_frame(encode(told)))

    def _disconnect(self, connections: tuple[Connection, ...], code: CloseCode, reason: str) -> None:
        for connection in connections:
            guest = self.guests.pop(connection, None)
            if guest is not None:
                self._outboxes.flush()  # what it was shown before it goes
                self._outboxes.remove(connection)
                guest.close(code, reason)

    def _hand_over(self, entry: Entry, invite: Invite) -> None:
        ack = self._invite_ack(entry, invite)
        if ack is None:
            return  # another node made the token, and tells the inviter
        if invite.connection is not None and invite.connection in self.guests:
            self._outboxes.to((invite.connection,), text_frame(encode(ack)))
        if invite.email is not None:
            self._shell.invite_by_mail(invite.email, self.id, ack)

    def _invite_ack(self, entry: Entry, invite: Invite) -> Envelope | None:
        assert isinstance(entry.event, Sent), f"an invitation from {entry.event}"
        token = self._secrets.get(entry.event.token_hash)
        if token is None:
            return None
        url = self._shell.connection_url(self.id)
        return answers.invite_ack(entry.at, invite.envelope, invite.participant, token, url)

    def _welcomed(self, connection: Connection) -> None:
        welcomed = self._entering.pop(connection)
        if not welcomed.done():
            welcomed.set_result(None)

    def _settle(self, entry: Entry, sent: Sent, decisions: list[Decision]) -> None:
        """Tell whoever injected this envelope over HTTP what became of it."""
        waiting = self._waiting.get(sent.envelope.id)
        if not waiting:
            return
        outcome = waiting.popleft()
        if not waiting:
            del self._waiting[sent.envelope.id]
        if outcome.done():
            return  # its caller has gone
        first = decisions[0]
        if isinstance(first, Refuse):
            outcome.set_result(first.refused)
        else:
            outcome.set_result(Accepted(sent.envelope, entry.at, self._reply(entry, decisions)))

    def _reply(self, entry: Entry, decisions: Iterable[Decision]) -> Envelope | None:
        """What the gateway itself answered (§3.10.1, §3.6.4)."""
        for decision in decisions:
            if isinstance(decision, Invite):
                return self._invite_ack(entry, decision)
            if isinstance(decision, Deliver) and decision.envelope.kind in _REPLIES:
                return decision.envelope
        return None

    def _abandon_waiting(self) -> None:
        abandoned: list[asyncio.Future[Any]] = [*self._entering.values()]
        for queue in self._waiting.values():
            abandoned += queue
        for future in abandoned:
            if not future.done():
                future.set_exception(LogUnavailable("the space was closed before it came round"))

    def _wake_at(self, at: datetime) -> None:
        wait_s = max(0.0, (at - self._shell.now()).total_seconds())
        loop = asyncio.get_running_loop()
        if self._wake is None or self._wake.when() > loop.time() + wait_s:
            if self._wake is not None:
                self._wake.cancel()
            self._wake = loop.call_later(wait_s, self._time_passed)

    def _time_passed(self) -> None:
        self._wake = None
        self._append(TimePassed())

    # Streams.

    def _forward(self, guest: Guest, frame: bytes, *, text: bool) -> None:
        now = self._shell.now()
        try:
            if len(frame) > self.limits.frame_bytes:
                raise ProtocolError(f"a frame may have {self.limits.frame_bytes} bytes", Refusal.TOO_LARGE)
            if text and not frame.isascii():
                frame.decode()
            stream_id = frames.stream_of(frame)
        except (ProtocolError, UnicodeDecodeError) as error:
            refusal = error.refusal if isinstance(error, ProtocolError) else Refusal.MALFORMED
            self._refuse(guest.who, guest.id, Refused(refusal, str(error)), None, "")
            return
        route = self.space.route(now, guest.who, stream_id)
        if isinstance(route, Refused):
            self.counts.refused += 1
            self._refuse(guest.who, guest.id, route, None, "")
            return
        self.counts.frames += 1
        wrapped = text_frame(frame) if text else binary_frame(frame)
        own = () if guest.lenient else self._connections_of((guest.who,))
        if route.targets is None:
            self._outboxes.to_all(wrapped, but=own)
        else:
            self._outboxes.to((c for c in self._connections_of(route.targets) if c not in own), wrapped)

    def _run_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for act in deferred:
            act()

    def _connections_of(self, participants: tuple[ParticipantId, ...]) -> list[Connection]:
        """Their connections on this node."""
        named = set(participants)
        return [
            connection
            for connection, who in self.space.state.connections.items()
            if who in named and connection in self.guests
        ]


class Counts:
    """What the room did so far, for the metrics."""

    __slots__ = ("delivered", "frames", "received", "refused")

    def __init__(self) -> None:
        self.received = self.refused = self.delivered = self.frames = 0


def _may_change(event: Event) -> bool:
    if isinstance(event, Sent):
        return event.envelope.kind in CHANGING_KINDS
    return not isinstance(event, Violated)
