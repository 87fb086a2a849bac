"""One space on this node: in each turn it decides and journals what it received, then delivers what was committed."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, compress
from typing import Final, assert_never

from mew.gateway.config.settings import Limits
from mew.gateway.history.archive import Archive
from mew.gateway.history.cursor import Cursor
from mew.gateway.history.recovery import SnapshotScheduler, bounds, recover
from mew.gateway.trace import Trace
from mew.gateway.websocket.frames import join_frames, text_frame
from mew.journal.port import Delivered, JournalUnavailable, RetentionStats
from mew.protocol.capability import Capability
from mew.protocol.codec import encode, envelope_id_in
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes, read_headers
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.frames import MARK
from mew.protocol.kinds import Kind
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Disconnect,
    Entry,
    Event,
    Identified,
    IssueInvitation,
    Joined,
    Left,
    RefusalDetails,
    Refuse,
    Reply,
    Rules,
    Sent,
    Space,
    TimePassed,
    Violated,
    WakeAt,
)

from . import replies
from .admission import admit
from .other_nodes import OtherNodes
from .outbox import Outboxes
from .ports import AcceptedPost, Counters, PendingCalls, RoomConnection, RoomEnvironment
from .rate_limit import ByteBudget, ByteBudgets
from .streams import FrameRelay
from .timer import Timer
from .turns import Turns, WorkQueue
from .violations import Violations

__all__ = ["Room"]

_logger = logging.getLogger(__name__)

_BATCH_BYTES: Final = 16 << 20
_BYTES_PER_PATH_VISIT: Final = (
    1024  # what a JSONPath costs its sender: it takes as long as to pass these bytes on
)
_PART_MESSAGES: Final = 128  # a refusal or a change costs as much as reading what follows it in its part


class Room:
    """Run one space from the end of its journal. Called by the endpoints; only `enter` and `post` wait."""

    def __init__(  # noqa: PLR0915  # the parts of a room
        self,
        rules: Rules,
        limits: Limits,
        turns: Turns,
        world: RoomEnvironment,
        trace: Trace | None = None,
        archive: Archive | None = None,
        space_type: type[Space] = Space,
    ) -> None:
        """Replays what the journal holds.

        Raises:
            JournalUnavailable: it cannot be read.
        """
        self.id = rules.id
        self.limits = limits
        self.connections: dict[ConnectionId, RoomConnection] = {}
        self.counters = Counters()
        self.is_closed = self._is_stopping = self._is_scheduled = False
        self.archive = archive
        """What the history has evicted, if there is a journal."""
        self._turns = turns
        self._world = world
        self._trace = trace
        self._loop = asyncio.get_running_loop()
        self._journal, past = turns.storage.open(rules.id, self._apply)
        # Nothing is signed as before a crash, unless other nodes go on with it.
        self._epoch = secrets.token_hex(4) if past.shared is None else past.shared.epoch
        life = self._epoch if archive is None else ""
        self.space, self.history = recover(past, limits, self._journal.policy, world.now(), life, space_type)
        self._at = max(
            past.at or world.now(), world.now()
        )  # times in a journal never go back, though a clock may
        self._others = None if past.shared is None else OtherNodes(past.shared, self.space)
        self.connection_prefix = "" if past.shared is None else f"{past.shared.node}."
        self._outboxes = Outboxes()
        # Who has which: in the space somebody may have left because of an envelope behind the one that is delivered.
        self._connected: dict[str, list[ConnectionId]] = {}
        self._relay = FrameRelay(
            self.space, self._outboxes, self.counters, world.now, self.reject, self._others
        )
        self._timer = Timer(world.now, partial(self.enqueue, partial(self._append, TimePassed())))
        self._snapshots = SnapshotScheduler(self.space, self.history, self._journal)
        self._budgets = ByteBudgets(limits.bytes_per_second, limits.bytes_burst)
        self._violations = Violations(rules.id, trace)
        self._queue = WorkQueue(self._others)
        # Text messages that were received after all that is queued: who sent each, and over which connection.
        self._texts: list[bytes] = []
        self._senders: list[str] = []
        self._origins: list[ConnectionId] = []
        self._received_bytes = self._delivered_bytes = 0
        self._paused: list[RoomConnection] = []
        self._after_commit: list[Callable[[], None]] = []
        self._listening: list[asyncio.Future[None]] = []
        self._told_until: Cursor | None = None  # up to here there is no news for them
        self._calls = PendingCalls()
        # Closed in this turn or the last: what they still send is not heard.
        self._gone: set[ConnectionId] = set()
        self._entering: dict[ConnectionId, asyncio.Future[None]] = {}
        self._posted: dict[
            int, asyncio.Future[AcceptedPost | RefusalDetails]
        ] = {}  # by the identity of their event
        self._invitations = replies.Invitations(rules.id, world)
        if past.shared is not None:
            past.shared.follow(partial(turns.came_round, self), self._relay.receive)
        self.enqueue(partial(self._begin, rules, tuple(self.space.state.connections)))

    # Called by the endpoints: queued until the next turn.

    def receive(self, connection: RoomConnection, texts: list[bytes], size: int) -> None:
        """Queue text messages from a connection, `size` bytes in all; apply its rate limit and byte budget."""
        budget = connection.budget
        budget.left -= size
        if budget.left < 0:
            self._slow_down(connection)
        if self._received_bytes + size > _BATCH_BYTES:
            self._seal()
        count = len(texts)
        allowed = connection.rate_limiter.take(self._loop.time(), count)
        self._texts += texts if allowed == count else texts[:allowed]
        self._senders += [connection.who] * allowed
        self._origins += [connection.id] * allowed
        self._received_bytes += size
        if allowed < count:
            self.enqueue(partial(self._limit_rate, connection, texts[allowed:]))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._turns.schedule(self)
        elif self._turns.is_committing:
            self._pause(connection)

    def receive_lenient(self, connection: RoomConnection, texts: list[bytes], size: int) -> None:
        """Queue messages from a lenient connection, whose participant may reuse its own ids."""
        self._spend(connection, size)
        allowed = connection.rate_limiter.take(self._loop.time(), len(texts))
        senders, origins = (connection.who,) * allowed, (connection.id,) * allowed
        self.enqueue(partial(self._decide, tuple(texts[:allowed]), senders, origins, lenient=True))
        if allowed < len(texts):
            self.enqueue(partial(self._limit_rate, connection, texts[allowed:], lenient=True))
        if self._turns.is_committing:
            self._pause(connection)

    def receive_binary(self, connection: RoomConnection, data: bytes) -> None:
        """Queue a binary message, which must be a stream frame."""
        self._spend(connection, len(data))
        self.enqueue(partial(self._take_binary, connection, data))
        if self._turns.is_committing:
            self._pause(connection)

    def receive_error(self, connection: RoomConnection, code: int, message: str) -> None:
        """Report a violation of RFC 6455 to the client and close the connection."""
        self.enqueue(partial(self._take_error, connection, code, message))

    def budget_of(self, who: ParticipantId) -> ByteBudget:
        """Return the byte budget of a participant, shared by all its connections and HTTP."""
        return self._budgets.of(who, self._loop.time())

    def _spend(self, connection: RoomConnection, size: int) -> None:
        connection.budget.left -= size
        if connection.budget.left < 0:
            self._slow_down(connection)

    def _slow_down(self, connection: RoomConnection) -> None:
        """Stop reading a connection until its participant's byte budget is no longer negative."""
        debt_s = connection.budget.debt_s(self._loop.time())
        if debt_s:
            connection.pause()
            self._loop.call_later(debt_s, connection.resume)

    def tell_dropped(self, connection: RoomConnection, dropped: Mapping[str, int]) -> None:
        """Tell a slow reader how many frames of each stream were dropped."""
        self._relay.tell_dropped(connection, dropped)

    def _pause(self, connection: RoomConnection) -> None:
        """Apply backpressure: stop reading until the commit in progress is done."""
        connection.pause()
        self._paused.append(connection)

    async def enter(self, connection: RoomConnection) -> None:
        """Join a connection; return once its welcome is committed.

        Raises:
            JournalUnavailable: it was not let in; the room is closing.
        """
        self._check_open()
        self.connections[connection.id] = connection
        entered = self._entering[connection.id] = self._loop.create_future()
        self.enqueue(partial(self._join, connection))
        await self._calls.result(entered)

    def leave(self, connection: RoomConnection) -> None:
        """Remove a closed connection."""
        self.enqueue(partial(self._part, connection))

    async def post(self, who: ParticipantId, received: bytes) -> AcceptedPost | RefusalDetails:
        """An envelope over HTTP (§5.3): the same rules, and an answer once it is committed.

        How often one may is for the door to say.

        Raises:
            JournalUnavailable: it may or may not have been accepted; the room is closing.
        """
        self._check_open()
        answered: asyncio.Future[AcceptedPost | RefusalDetails] = self._loop.create_future()
        self.enqueue(partial(self._take_post, who, received, answered))
        return await self._calls.result(answered)

    def identify(self, who: ParticipantId, capabilities: tuple[Capability, ...] | None) -> None:
        """An authenticator vouches for `who`; None: the rules say what it holds, or else their defaults do."""
        if self._queue.items or self._identified(who, capabilities) is not None:
            self.enqueue(partial(self._identify, who, capabilities))

    def configure(self, rules: Rules, limits: Limits) -> None:
        """Apply new rules and limits from the next turn on."""
        self.enqueue(partial(self._begin, rules, ()))
        self.limits = limits
        self._budgets = ByteBudgets(limits.bytes_per_second, limits.bytes_burst)
        self.history.resize(*bounds(limits, self._journal.policy))

    @property
    def retention(self) -> RetentionStats:
        """What the journal keeps."""
        return self._journal.stats

    def forget(self) -> None:
        """Evict expired history and take a snapshot if one is due; called about once a minute."""
        pass_time = partial(self._snapshots.pass_time, self._world.now())
        if self._turns.is_committing:  # no snapshot may have more than the journal
            self.enqueue(lambda: self._after_commit.append(pass_time))
        else:
            pass_time()

    def begin_shutdown(self) -> None:
        """Refuse new connections and wake long polls."""
        self._is_stopping = True
        self._tell_listening()

    def close(self) -> None:
        """Close the room; fail everything that still waits."""
        self.is_closed = True
        self._journal.close()
        self._timer.cancel()
        self._queue.clear()
        self._calls.fail()
        self._entering.clear()
        self._posted.clear()
        self._tell_listening()

    def _check_open(self) -> None:
        if self.is_closed or self._is_stopping:
            raise JournalUnavailable("the space is closing")

    async def news(self) -> None:
        """Wait until something is delivered or the room closes."""
        if not (self.is_closed or self._is_stopping):
            if self._turns.is_committing:
                self._told_until = None
            elif not self._listening:
                self._told_until = self.history.end
            future = self._loop.create_future()
            self._listening.append(future)
            await future

    async def catch_up(self) -> bool:
        """Wait until every entry that other nodes have appended has come round; False: there are no other nodes."""
        if self._others is None:
            return False
        self._check_open()
        caught_up: asyncio.Future[None] = self._loop.create_future()
        self.enqueue(partial(self._calls.resolve, caught_up, None))
        await self._calls.result(caught_up)
        return True

    async def committed(self) -> None:
        """Wait until everything the room has decided is committed; nothing may be shown before.

        Raises:
            JournalUnavailable: the room has closed, so it may not be.
        """
        await self._turns.committed()
        if self.is_closed:
            raise JournalUnavailable("the space is closed")

    def enqueue(self, work: Callable[[], None]) -> None:
        """Queue work for the next turn."""
        if self.is_closed:
            return
        if self._texts:
            self._seal()
        self._queue.append(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._turns.schedule(self)

    def _seal(self) -> None:
        """Move received messages into the queue, so that they precede what follows."""
        texts, self._texts = self._texts, []
        senders, self._senders = self._senders, []
        origins, self._origins = self._origins, []
        self._received_bytes = 0
        self._queue.append(partial(self._decide, tuple(texts), tuple(senders), tuple(origins)))

    # A turn: decide and journal.

    def turn(self, at: datetime) -> None:
        """Decide and journal everything received since the last turn, in order."""
        self._is_scheduled = False
        gone = tuple(self._gone) if self._gone else ()
        if at > self._at:
            self._at = at
        if self.space.state.expires_next is not None and self.space.is_due(self._at):
            self._append(TimePassed())
        if self._queue.items:
            self._queue.run()
        if self._texts and not self._queue.must_wait:
            texts, self._texts = self._texts, []
            senders, self._senders = self._senders, []
            origins, self._origins = self._origins, []
            self._received_bytes = 0
            self._decide(tuple(texts), tuple(senders), tuple(origins))
        if self._queue.must_wait:
            if self._texts:
                self._seal()
            self._queue.postpone()
            self._schedule()
        if gone:  # closed before this turn: nothing more can come from them
            self._gone.difference_update(gone)

    def _decide(
        self,
        texts: tuple[bytes, ...],
        senders: tuple[str, ...],
        origins: tuple[ConnectionId, ...],
        lenient: bool = False,  # noqa: FBT001, FBT002  # called for every batch
    ) -> None:
        """Admit and judge messages; journal the accepted ones, batch by batch."""
        while texts:
            if self._queue.must_wait:
                self._queue.wait_with(partial(self._decide, texts, senders, origins, lenient))
                return
            if self._gone:
                texts, senders, origins = self._heard(texts, senders, origins)
            headers = read_headers(texts, 0, self.limits.envelope_bytes)
            envelopes = Envelopes(*headers, texts[: len(headers[0])])
            if envelopes.senders != senders:
                envelopes = _from_their_senders(envelopes, senders)
            if envelopes.ids:
                taken = self._judge(envelopes, origins, lenient)
            else:
                taken = self._decide_one(texts[0], origins[0], lenient) if texts else 0
            if taken == len(texts):
                return
            if len(texts) > _PART_MESSAGES:
                for start in range(taken, len(texts), _PART_MESSAGES):
                    part = slice(start, start + _PART_MESSAGES)
                    self._decide(texts[part], senders[part], origins[part], lenient)
                return
            texts, senders, origins = texts[taken:], senders[taken:], origins[taken:]

    def _heard(
        self, texts: tuple[bytes, ...], senders: tuple[str, ...], origins: tuple[ConnectionId, ...]
    ) -> tuple[tuple[bytes, ...], tuple[str, ...], tuple[ConnectionId, ...]]:
        """Drop messages from connections that are being closed."""
        heard = [origin not in self._gone for origin in origins]
        return tuple(compress(texts, heard)), tuple(compress(senders, heard)), tuple(compress(origins, heard))

    def _judge(self, envelopes: Envelopes, origins: tuple[ConnectionId, ...], lenient: bool) -> int:  # noqa: FBT001
        """Journal those that are accepted, up to one that changes the state, and refuse the next; return how many."""
        accepted, refused = self.space.judge(self._at, envelopes, lenient)
        if refused is not None and self._others is not None and (accepted or self._others.may_know_better):
            refused, self._queue.must_wait = None, True
        if self.space.path_visits:
            self._charge_path_visits()
        if self._trace is not None:
            self._trace.received(self.id, envelopes.part(0, accepted + (refused is not None)))
        if accepted:
            self.counters.received += accepted
            batch = envelopes if accepted == len(envelopes.ids) else envelopes.part(0, accepted)
            token_hash = self._invitations.make_token() if batch.kinds[-1] == Kind.INVITE else ""
            sent = Sent(batch, origins[:accepted], self.space.state.changed_at, lenient, token_hash)
            self._journal.append(self._at, sent)
        if refused is None:
            return accepted
        self.counters.received += 1
        connection = self.connections.get(origins[accepted])
        if connection is not None:
            self.reject(connection, refused, EnvelopeId(envelopes.ids[accepted]), envelopes.kinds[accepted])
        return accepted + 1

    def _charge_path_visits(self) -> None:
        for who, visits in self.space.path_visits.items():
            self.budget_of(ParticipantId(who)).left -= visits * _BYTES_PER_PATH_VISIT
        self.space.path_visits.clear()

    def _decide_one(self, text: bytes, origin: ConnectionId, lenient: bool) -> int:  # noqa: FBT001
        """Slow path for one message: a stream frame, an unusual envelope, or malformed input."""
        connection = self.connections.get(origin)
        if connection is None:
            return 1
        if text.startswith(MARK):
            if self._others is not None and self._others.journal.in_flight:
                self._queue.must_wait = True  # behind the envelopes that came before it
                return 0
            connection.rate_limiter.put_back()  # the rate is that of envelopes
            self._forward(connection, text, is_text=True)
            return 1
        try:
            envelope = admit(text, connection.who, bytes_max=self.limits.envelope_bytes)
        except ProtocolError as error:
            self.counters.received += 1
            self.reject(
                connection, RefusalDetails(error.refusal, str(error)), envelope_id_in(text), error.kind
            )
            return 1
        return self._judge(Envelopes.of(envelope, text), (origin,), lenient)

    def _append(self, event: Event) -> None:
        self._journal.append(self._at, event)

    def _begin(self, rules: Rules, connections: Iterable[ConnectionId]) -> None:
        """Journal the current rules and end the connections of the previous process, unless other nodes go on."""
        state = self.space.state
        if self._others is not None and state.epoch == self._epoch:
            if rules == state.rules:
                return
            if rules.revision <= state.rules.revision:
                what = {"space": self.id, "revision": state.rules.revision}
                _logger.warning(
                    "other nodes serve this space with other rules, which stay in force:"
                    " to replace them set a higher 'revision' in the file of every node",
                    extra=what,
                )
                return
        self._append(Configured(rules, self._epoch))
        if self._others is None:
            for connection in connections:
                self._append(Left(connection))

    def _identified(
        self, who: ParticipantId, capabilities: tuple[Capability, ...] | None
    ) -> Identified | None:
        """What this changes; None: nothing."""
        rules = self.space.state.rules
        if capabilities is None and who not in rules.profiles:
            capabilities = rules.defaults
        is_known = self.space.state.identities.get(who) == capabilities
        return None if is_known else Identified(who, capabilities)

    def _identify(self, who: ParticipantId, capabilities: tuple[Capability, ...] | None) -> None:
        identified = self._identified(who, capabilities)
        if identified is not None:
            self._append(identified)

    def _join(self, connection: RoomConnection) -> None:
        resumed = None if connection.after is None else self.history.has_all_after(connection.after)
        if resumed is False and self._others is not None and self._others.may_know_better:
            self._queue.wait_with(partial(self._join, connection))
            return
        self._append(Joined(connection.who, connection.id, resumed))

    def _part(self, connection: RoomConnection) -> None:
        self._remove(connection.id, connection.who)
        if self.connections.pop(connection.id, None) is not None:
            self._append(Left(connection.id))

    def _take_binary(self, connection: RoomConnection, data: bytes) -> None:
        if connection.id in self._gone:
            return
        if data.startswith(MARK):
            if self._others is not None and self._others.journal.in_flight:
                self._queue.wait_with(partial(self._take_binary, connection, data))
                return
            self._forward(connection, data, is_text=False)
        else:
            self.reject(
                connection, RefusalDetails(Refusal.MALFORMED, "an envelope travels as text, not binary")
            )

    def _forward(self, connection: RoomConnection, frame: bytes, *, is_text: bool) -> None:
        self._relay.forward(connection, frame, is_text=is_text, bytes_max=self.limits.frame_bytes)

    def _take_error(self, connection: RoomConnection, code: int, message: str) -> None:
        if connection.id not in self._gone:
            self.reject(connection, RefusalDetails(Refusal.MALFORMED, message))
            self._close_later((connection.id,), code, message)

    def _take_post(
        self, who: ParticipantId, received: bytes, answered: asyncio.Future[AcceptedPost | RefusalDetails]
    ) -> None:
        self.counters.received += 1
        refused: RefusalDetails | None
        kind, envelope_id = "", envelope_id_in(received)
        try:
            envelope = admit(received, who, bytes_max=self.limits.envelope_bytes)
        except ProtocolError as error:
            refused, kind = RefusalDetails(error.refusal, str(error)), error.kind
        else:
            kind, envelopes = envelope.kind, Envelopes.of(envelope, received)
            if self._trace is not None:
                self._trace.received(self.id, envelopes)
            _, refused = self.space.judge(self._at, envelopes)
            if self.space.path_visits:
                self._charge_path_visits()
            if refused is not None and self._others is not None and self._others.may_know_better:
                self.counters.received -= 1
                self._queue.wait_with(partial(self._take_post, who, received, answered))
                return
            if refused is None:
                token_hash = self._invitations.make_token() if kind == Kind.INVITE else ""
                sent = Sent(envelopes, (None,), self.space.state.changed_at, token_hash=token_hash)
                self._posted[id(sent)] = answered
                self._append(sent)
                return
        self._refuse(who, None, refused, envelope_id, kind)
        self._record(who, envelope_id, kind, refused)
        self._calls.resolve(answered, refused)

    def _limit_rate(self, connection: RoomConnection, texts: list[bytes], *, lenient: bool = False) -> None:
        """Retry messages over the rate limit: stream frames before them may have returned tokens."""
        limiter = connection.rate_limiter
        for place, text in enumerate(texts):
            if connection.id in self._gone:
                return
            if self._queue.must_wait:
                self._queue.wait_with(partial(self._limit_rate, connection, texts[place:], lenient=lenient))
                return
            if text.startswith(MARK):
                self._forward(connection, text, is_text=True)
            elif limiter.take(self._loop.time()):
                self._decide((text,), (connection.who,), (connection.id,), lenient)
            else:
                self._refuse_hasty(connection, text, limiter.wait_s)

    def _refuse_hasty(self, connection: RoomConnection, text: bytes, wait_s: float) -> None:
        self.counters.received += 1
        envelopes = Envelopes.read((text,), 0, self.limits.envelope_bytes)
        if self._trace is not None:
            self._trace.received(self.id, envelopes)
        hasty = RefusalDetails(Refusal.RATE_LIMITED, f"too many envelopes; again in {wait_s:.3f} s", wait_s)
        if envelopes.ids:
            self.reject(connection, hasty, EnvelopeId(envelopes.ids[0]), envelopes.kinds[0])
        else:
            self.reject(connection, hasty, envelope_id_in(text))

    # Refusals.

    def reject(
        self,
        connection: RoomConnection,
        refused: RefusalDetails,
        envelope_id: EnvelopeId | None = None,
        kind: str = "",
    ) -> None:
        """Refuse a message and tell only its sender."""
        if connection.id in self._gone:
            return
        self._refuse(connection.who, connection.id, refused, envelope_id, kind)
        self._record(connection.who, envelope_id, kind, refused)  # what others hear of it comes second
        if not connection.refusal_limiter.take(self._loop.time()):
            reason = "too much of what you send is refused; come back later"
            self._close_later((connection.id,), CloseCode.FLOODING, reason)

    def _record(
        self, who: ParticipantId, envelope_id: EnvelopeId | None, kind: str, refused: RefusalDetails
    ) -> None:
        """Note in the journal that a rule said no, without what was sent, and not too often (§7.3)."""
        if self._violations.is_worth_recording(who, envelope_id, kind, refused):
            culprit = envelope_id or EnvelopeId("")
            self._append(Violated(who, culprit, kind, refused.refusal, refused.lacked or ""))

    def _refuse(
        self,
        who: ParticipantId,
        connection: ConnectionId | None,
        refused: RefusalDetails,
        envelope_id: EnvelopeId | None,
        kind: str,
    ) -> None:
        """Send `system/error` on the connection it came over; on all of its sender's if it was posted (§3.8.2)."""
        self.counters.refused += 1
        to = self._connections_of((who,)) if connection is None else (connection,)
        if to:
            told = replies.error(
                self._world.now(), who, self.space, refused, envelope_id=envelope_id, kind=kind
            )
            self._outboxes.send(text_frame(encode(told)), to)

    # Called by the journal: apply entries and gather deliveries.

    def _apply(self, entry: Entry) -> Sequence[Decision]:
        """Apply an entry and gather its deliveries; called by the journal in log order."""
        decisions = self.space.apply(entry)
        if self._others is not None and type(entry.event) is TimePassed:
            self._timer.cancel()
        delivered = 0
        for decision in decisions:
            if type(decision) is Deliver:
                self._deliver(entry, decision, delivered)
                delivered += len(decision.envelopes.ids)
            else:
                self._carry_out(entry, decision)
        if self._posted or self._entering or self._invitations.tokens:
            self._answer_waiting(entry, decisions)
        return decisions

    def _deliver(self, entry: Entry, deliver: Deliver, start: int) -> None:
        """Put envelopes into the history and the outboxes; `start`: as many of the same entry came before them."""
        envelopes, only = deliver.envelopes, deliver.only
        if only is None:
            frames = join_frames(envelopes.raws)
            size = len(frames)
            self.counters.delivered += len(envelopes.ids) * self._outboxes.send(frames)
        else:
            size = sum(map(len, envelopes.raws))
            for raw, audience in zip(envelopes.raws, only, strict=True):
                to = None if audience is None else self._connections_of(audience)
                self.counters.delivered += self._outboxes.send(text_frame(raw), to)
        self._delivered_bytes += size
        delivered = Delivered(entry.seq, entry.at, envelopes.ids, envelopes.raws, only, start)
        self.history.append(delivered, size)
        if self._trace is not None:
            self._trace.delivered(self.id, envelopes, only, tuple(self.space.state.members))

    def _carry_out(self, entry: Entry, decision: Decision) -> None:
        match decision:
            case Deliver():
                raise AssertionError("what is delivered is not carried out here")
            case Reply():
                self._answer(entry, decision)
            case Refuse(who, envelope_id, kind, refused, connection):
                if connection not in self.connections and id(entry.event) not in self._posted:
                    return  # of another node, which tells it
                self._violations.is_worth_recording(who, envelope_id, kind, refused)
                self._refuse(who, connection, refused, envelope_id, kind)
            case Disconnect(connections, code, reason):
                self._close_later(connections, code, reason)
            case IssueInvitation():
                self._hand_over(entry, decision)
            case WakeAt(at):
                self._timer.set(at, 0.0 if self._others is None else self._others.timer_delay_s())
            case _:
                assert_never(decision)

    def _answer(self, entry: Entry, answer: Reply) -> None:
        frame = text_frame(encode(answer.envelope))
        if answer.connection is None:
            self._outboxes.send(frame, self.space.connections_of((answer.who,)))
            return
        connection = self.connections.get(answer.connection)
        if connection is None:
            return  # of another node, or gone before its `Joined` came round
        missed: list[bytes] = []
        if connection.after is not None:
            if self.history.knows(connection.after):
                delivered = self.history.after(connection.after)
                missed = [one.raw for one in delivered if one.is_for(connection.who)]
            elif isinstance(entry.event, Joined) and entry.event.resumed:
                reason = "what you missed has just gone; come back"
                self._close_later((connection.id,), CloseCode.SLOW_READER, reason)
                return
        self._outboxes.add(connection.id, connection.outbox, chain((frame,), map(text_frame, missed)))
        self._connected.setdefault(connection.who, []).append(connection.id)

    def _connections_of(self, participants: Iterable[str]) -> list[ConnectionId]:
        """Open connections of these participants."""
        return [one for who in participants for one in self._connected.get(who, ())]

    def _remove(self, connection: ConnectionId, who: str) -> bytes:
        """Stop delivering to a connection; return what this turn gathered for it."""
        own = self._connected.get(who, [])
        if connection in own:
            own.remove(connection)
            if not own:
                del self._connected[who]
        return self._outboxes.remove(connection)

    def _hand_over(self, entry: Entry, invite: IssueInvitation) -> None:
        """Send the token to the inviter, and an e-mail if requested and configured."""
        ack = self._invitations.ack(entry, invite)
        if ack is None:
            return  # another node made the token, and tells the inviter
        own = self._connections_of((invite.envelope.sender,))  # all of them if it came over HTTP
        self._outboxes.send(text_frame(encode(ack)), [one for one in own if invite.connection in (None, one)])
        if invite.email is not None and self._world.sends_mail():
            self._after_commit.append(partial(self._world.invite_by_mail, invite.email, self.id, ack))

    def _answer_waiting(self, entry: Entry, decisions: Sequence[Decision]) -> None:
        """Record the results for callers that wait for this entry."""
        event = entry.event
        if type(event) is Joined:
            entered = self._entering.pop(event.connection, None)
            if entered is not None:
                self._calls.resolve(entered, None)
        elif type(event) is Sent:
            answered = self._posted.pop(id(event), None)
            if answered is not None:
                self._calls.resolve(answered, self._outcome(entry, event, decisions))
            self._invitations.forget(event.token_hash)

    def _outcome(
        self, entry: Entry, sent: Sent, decisions: Sequence[Decision]
    ) -> AcceptedPost | RefusalDetails:
        """Return the outcome of a posted envelope with the gateway's reply."""
        invite = next((decision for decision in decisions if isinstance(decision, IssueInvitation)), None)
        reply = replies.reply_in(decisions) if invite is None else self._invitations.ack(entry, invite)
        return (
            reply if isinstance(reply, RefusalDetails) else AcceptedPost(sent.envelopes[0], entry.at, reply)
        )

    def _close_later(self, connections: Iterable[ConnectionId], code: int, reason: str) -> None:
        """Close connections after the commit, once their pending frames are written; ignore what they send."""
        for connection_id in connections:
            self._gone.add(connection_id)
            connection = self.connections.get(connection_id)
            if connection is not None:
                due = self._remove(connection_id, connection.who)
                if connection_id not in self.space.state.connections:
                    del self.connections[connection_id]
                self._after_commit.append(partial(_close, connection, due, code, reason))

    # After the commit: deliver.

    def deliver(self) -> None:
        """Deliver what this turn decided, now that it is committed."""
        self._outboxes.flush()
        if self._after_commit:
            calls, self._after_commit = self._after_commit, []
            for call in calls:
                call()
        if self._calls.results:
            self._calls.committed()
        if self._listening and self.history.end != self._told_until:
            self._tell_listening()
        if (
            self._delivered_bytes > self._snapshots.bytes_due
            or self.space.state.seq > self._snapshots.seq_due
        ):
            self._delivered_bytes = 0
            self._snapshots.make(self._at)
        if self._paused:
            paused, self._paused = self._paused, []
            for connection in paused:
                connection.resume()

    def _tell_listening(self) -> None:
        listening, self._listening = self._listening, []
        for future in listening:
            if not future.done():
                future.set_result(None)


def _from_their_senders(envelopes: Envelopes, senders: Sequence[str]) -> Envelopes:
    """Return the envelopes before the first whose `from` is not its sender."""
    pairs = enumerate(zip(envelopes.senders, senders, strict=False))
    return envelopes.part(
        0, next((place for place, (named, sender) in pairs if named != sender), len(envelopes))
    )


def _close(connection: RoomConnection, due: bytes, code: int, reason: str) -> None:
    if due:
        connection.outbox.write(due)
    connection.close(code, reason)
