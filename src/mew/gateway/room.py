"""One space on this node: follows its log and carries out what it decides."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import aclosing, suppress
from itertools import chain
from typing import Final, assert_never

from mew.audit.auditor import Auditor
from mew.log.base import Log, LogUnavailable
from mew.protocol.capability import Capability
from mew.protocol.codec import encode, envelope_id_in
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.frames import MARK
from mew.space import (
    Answer,
    Configured,
    Connection,
    Decision,
    Deliver,
    Disconnect,
    Entry,
    Identified,
    Invite,
    Joined,
    Left,
    Refuse,
    Refused,
    Rules,
    Sent,
    TimePassed,
    WakeAt,
)

from . import answers
from .admit import admit
from .alarm import Alarm
from .archive import Archive
from .inbox import Inbox
from .intake import Intake
from .invitations import Invitations
from .outbox import Outboxes
from .outcome import outcome
from .pages import Record
from .plain import ShortWay
from .ports import Accepted, Counts, Guest, Shell
from .recovery import Milestones, bounds, record_of, recover
from .relay import Relay
from .settings import Limits
from .showing import Showing
from .trace import Trace
from .waiting import Waiting
from .websocket import Opcode, text_frame

__all__ = ["Room"]

_TEXT: Final = int(Opcode.TEXT)  # a member of an enum takes longer to look up and compare


class Room:
    """Runs one space, from where its log ends. Its methods are for the doors; only `enter` and `inject` wait."""

    def __init__(
        self,
        rules: Rules,
        limits: Limits,
        log: Log,
        shell: Shell,
        trace: Trace | None = None,
        auditor: Auditor | None = None,
        archive: Archive | None = None,
    ) -> None:
        """Goes through what the log holds from before.

        Raises:
            LogUnavailable: it cannot be read.
        """
        self.id = rules.id
        self.limits = limits
        self._epoch = secrets.token_hex(4)  # nothing is signed as before a crash
        life = self._epoch if archive is None else ""
        self.space, self.history, last_at = recover(log, limits, shell.now(), life)
        self.guests: dict[Connection, Guest] = {}
        self.counts = Counts()
        self.dismissed = False
        self.news = asyncio.Event()
        """Set for a moment when something was shown, and for good once the room has closed."""
        self._known = self.history.end  # so much was news before
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._shell = shell
        self._trace = trace
        self.archive = archive
        """What the history no longer has, where it is kept."""
        self._auditor = auditor
        self._intake = Intake(self.space, log, shell.now, trace, last_at)
        self._outboxes = Outboxes()
        self._showing = Showing(self.space, self.history, self._outboxes, self.counts, trace)
        self._short = ShortWay(
            self.space,
            log,
            self._intake,
            self._showing,
            self.counts,
            self._break_off,
            is_traced=trace is not None,
        )
        self.inbox = Inbox(self._short, self._take, self._taken)
        """Where the doors put what connections say."""
        self._invitations = Invitations(self.id, self._intake, self._outboxes, shell)
        self._entering: Waiting[Connection, None] = Waiting()
        self._injected: Waiting[str, Accepted | Refused] = Waiting()
        self._relay = Relay(self.space, self._intake, self._outboxes, self.counts, shell.now, self.turn_away)
        self._alarm = Alarm(shell.now, lambda: self._intake.append(TimePassed()))
        self._fault: Exception | None = None  # that `run` did not meet itself
        self._milestones = Milestones(self.space, self.history, log)
        self.configure(rules, limits)  # first of all
        for connection in self.space.state.connections:  # they ended with the process that had them
            self._intake.append(Left(connection))

    async def run(self) -> None:
        """Until the log is closed.

        Raises:
            LogUnavailable: the log broke; nobody was shown anything that is not in it.
        """
        if self._auditor is not None:
            self._auditor.begin(after=self.space.seq)
        try:
            async with aclosing(self._log.follow(after=self.space.seq)) as batches:
                async for batch in batches:
                    self._carry_on(batch)
                    if self._auditor is not None and self._auditor.is_behind:
                        await self._auditor.keep_up()
            if self._fault is not None:
                raise self._fault
        finally:
            self.close()
            closed = LogUnavailable("the space was closed before it came round")
            self._entering.abandon(closed)
            self._injected.abandon(closed)
            self.news.set()

    async def wind_up(self) -> None:
        """It has run; return when the record of it is written."""
        if self._auditor is not None:
            await self._auditor.close()

    def forget(self) -> None:
        """Let go of what need not be kept any longer; to be called every minute or so."""
        self._milestones.pass_time(self._shell.now())

    def close(self) -> None:
        """Take no more; what was taken is still carried out."""
        self._log.close()
        self._alarm.cancel()

    # What the doors say.

    def configure(self, rules: Rules, limits: Limits) -> None:
        """Other rules, from here on in the log.

        Raises:
            LogUnavailable: everything is as before; the room has closed.
        """
        self._intake.append(Configured(rules, self._epoch))
        self.limits = limits
        self._short.bytes_max = limits.envelope_bytes
        self.history.resize(*bounds(limits, self._log.keep))

    def identify(self, who: ParticipantId, capabilities: tuple[Capability, ...] | None) -> None:
        """An authenticator vouches for `who`; None: the rules say what it holds, or else their defaults do."""
        rules = self.space.state.rules
        if capabilities is None and who not in rules.profiles:
            capabilities = rules.defaults
        if self.space.state.identities.get(who) != capabilities:
            self._intake.append(Identified(who, capabilities))

    async def enter(self, guest: Guest) -> None:
        """A connection is there; return once it has been welcomed and may speak.

        Raises:
            LogUnavailable: it was not let in; the room is closing.
        """
        if self.dismissed:
            raise LogUnavailable("the gateway is stopping")
        resumed = None if guest.after is None else self.history.knows(guest.after)
        self._intake.append(Joined(guest.who, guest.id, resumed))
        self.guests[guest.id] = guest
        await self._entering.wait(guest.id)

    def depart(self, guest: Guest) -> None:
        """The connection is gone."""
        self.inbox.empty()  # what it said before that
        self._outboxes.remove(guest.id)
        if self.guests.pop(guest.id, None) is not None:
            with suppress(LogUnavailable):  # the room has closed: nobody is left to be told
                self._intake.append(Left(guest.id))

    def _take(self, guest: Guest, opcode: int, data: bytes) -> None:
        """A message came: a stream frame if it begins with its mark, an envelope otherwise."""
        if data.startswith(MARK):
            self._relay.take(guest, data, text=opcode == _TEXT, bytes_max=self.limits.frame_bytes)
        elif opcode == _TEXT:
            self._take_envelope(guest, data)
        else:
            self.turn_away(guest, Refused(Refusal.MALFORMED, "an envelope travels as text, not binary"))

    def _take_envelope(self, guest: Guest, received: bytes) -> None:
        self.counts.received += 1
        try:
            envelope = admit(received, guest.who, bytes_max=self.limits.envelope_bytes)
        except ProtocolError as error:
            self.turn_away(guest, Refused(error.refusal, str(error)), envelope_id_in(received), error.kind)
            return
        if self._trace is not None:
            self._trace.received(self.id, envelope)
        loop_s = self._loop.time()
        wait_s = guest.bucket.take(loop_s)
        if wait_s:
            hasty = Refused(Refusal.RATE_LIMITED, f"too many envelopes; again in {wait_s:.3f} s", wait_s)
            self.turn_away(guest, hasty, EnvelopeId(envelope.id), envelope.kind)
            return
        at = self._intake.at(loop_s)
        plain = not guest.lenient and self.space.is_plain(at, envelope, guest.id)
        if plain and self._short.take(envelope, received, guest.who, at):
            return
        try:
            refused = self._intake.submit(envelope, received, guest.id, lenient=guest.lenient, plain=plain)
        except LogUnavailable:
            guest.close(CloseCode.UNAVAILABLE, "the space is not available now")
            return
        if refused is not None:
            self.turn_away(guest, refused, EnvelopeId(envelope.id), envelope.kind)

    async def inject(self, who: ParticipantId, received: bytes) -> Accepted | Refused:
        """An envelope over HTTP (§5.3): the same rules, and an answer once it stands in the order.

        How often one may is for the door to say.

        Raises:
            LogUnavailable: it may or may not have been accepted; the room is closing.
        """
        self.counts.received += 1
        try:
            envelope = admit(received, who, bytes_max=self.limits.envelope_bytes)
        except ProtocolError as error:
            malformed = Refused(error.refusal, str(error))
            self.counts.refused += 1
            self._intake.record(who, envelope_id_in(received), error.kind, malformed)
            return malformed
        if self._trace is not None:
            self._trace.received(self.id, envelope)
        refused = self._intake.submit(envelope, received)
        if refused is not None:
            self.counts.refused += 1
            self._intake.record(who, EnvelopeId(envelope.id), envelope.kind, refused)
            return refused
        return await self._injected.wait(envelope.id)

    def turn_away(
        self, guest: Guest, refused: Refused, envelope_id: EnvelopeId | None = None, kind: str = ""
    ) -> None:
        """What came is not accepted: say so to the sender, and to nobody else."""
        self._intake.record(guest.who, envelope_id, kind, refused)
        self._refuse(guest.who, guest.id, refused, envelope_id, kind)
        if guest.patience.take(self._loop.time()):
            self.flush()
            guest.close(CloseCode.FLOODING, "too much of what you send is refused; come back later")

    def flush(self) -> None:
        """Send what is due, now."""
        self._outboxes.flush()

    def _taken(self) -> None:
        """All of a turn was taken."""
        try:
            self._tell()
        except Exception as error:
            self._break_off(error)

    def _break_off(self, error: Exception) -> None:
        """Nothing may follow on what is half done."""
        self._fault = error
        self._log.close()

    def _tell(self) -> None:
        """Send what is due, and wake who waits for something new."""
        self._outboxes.flush()
        end = self.history.end
        if end != self._known:
            self._known = end
            self.news.set()
            self.news.clear()

    # What the log says.

    def _carry_on(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            self._apply(entry)
            if self._relay.waiting:
                self._relay.catch_up()
        self._tell()
        self._milestones.pass_by(batch[-1])
        if self._auditor is not None:
            self._auditor.pass_by()

    def _apply(self, entry: Entry) -> None:
        event = entry.event
        self._intake.applied += 1
        if self._intake.unsettled:
            self._intake.settle(event)
        decisions = self.space.apply(entry)
        if self._auditor is not None:
            self._auditor.take(entry, decisions)
        for decision in decisions:
            self._carry_out(entry, decision)
        if type(event) is Sent:
            if event.connection is None:
                became = outcome(entry, event, decisions, self._invitations.ack)
                self._injected.tell(event.envelope.id, became)
            if event.token_hash:
                self._intake.forget_token(event)
        elif type(event) is Joined:
            self._entering.tell(event.connection, None)

    def _carry_out(self, entry: Entry, decision: Decision) -> None:
        match decision:
            case Deliver():
                self._show(record_of(entry, decision))
            case Answer():
                self._answer(entry, decision)
            case Refuse(who, envelope_id, kind, refused, connection):
                self._intake.note(who, envelope_id, kind, refused)
                self._refuse(who, connection, refused, envelope_id, kind)
            case Disconnect(connections, code, reason):
                self._disconnect(connections, code, reason)
            case Invite():
                self._invitations.hand_over(entry, decision)
            case WakeAt(at):
                self._alarm.set(at)
            case _:
                assert_never(decision)

    def _show(self, record: Record) -> None:
        self._showing.show(record)

    def _answer(self, entry: Entry, answer: Answer) -> None:
        frame = text_frame(encode(answer.envelope))
        if answer.connection is None:
            self._outboxes.to(self.space.connections_of((answer.who,)), frame)
            return
        guest = self.guests.get(answer.connection)
        if guest is None:
            return  # gone before its `Joined` came round
        self._outboxes.add(guest.id, guest.outbox)
        if guest.after is not None and self.history.knows(guest.after):
            missed = [record.raw for record in self.history.after(guest.after) if record.is_for(guest.who)]
            guest.outbox.replay(chain((frame,), map(text_frame, missed)))
        elif isinstance(entry.event, Joined) and entry.event.resumed:
            guest.close(CloseCode.SLOW_READER, "what you missed has just gone; come back")
        else:
            self._outboxes.to((guest.id,), frame)

    def _refuse(
        self,
        who: ParticipantId,
        connection: Connection | None,
        refused: Refused,
        envelope_id: EnvelopeId | None,
        kind: str,
    ) -> None:
        self.counts.refused += 1
        if connection is not None:
            now = self._shell.now()
            told = answers.error(now, who, self.space, refused, envelope_id=envelope_id, kind=kind)
            self._outboxes.to((connection,), text_frame(encode(told)))

    def _disconnect(self, connections: tuple[Connection, ...], code: CloseCode, reason: str) -> None:
        self._outboxes.flush()  # what they were shown before they go
        for connection in connections:
            self._outboxes.remove(connection)
            guest = self.guests.pop(connection, None)
            if guest is not None:
                guest.close(code, reason)
