"""`mew autopilot`: the participant that learns from reviewers and fulfils what its rules cover.

It rebuilds what it knows from the history at each start, and takes everything else from the envelopes it sees. The
ids of its envelopes follow from the proposal, so that the gateway refuses a second fulfilment (`duplicate_id`),
whoever sends it and however often this starts.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from mew.client.client import Client
from mew.client.connection.session import Roster
from mew.client.errors import Disconnected, MewError
from mew.proposals.record import ProposalRecord, names_in
from mew.protocol.capability import CapabilitySet
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Grant, Kind, Presence, Revoke

from .policy import Decision, Verdict
from .rule import Author, Rule, RuleState
from .settings import AutopilotSettings, Mode
from .state import DECISION, MODE, OBJECT, RATIFY, REVOKE, RULE, SUMMARY, AutopilotState, may_fulfil

__all__ = ["AutopilotParticipant", "follow_capabilities"]

_log = logging.getLogger(__name__)

_PROPOSALS_MAX: Final = 5000
_SUMMARY_S: Final = 60.0
_ORDERS: Final = frozenset({MODE, RATIFY, REVOKE, OBJECT})


class _Proposed(Struct, frozen=True):
    """A proposal's payload with its params as the bytes that came."""

    method: str
    params: Raw | UnsetType = UNSET


class AutopilotParticipant:
    """One autopilot in one space, over a connected client."""

    def __init__(self, client: Client, settings: AutopilotSettings, *, seed: str) -> None:
        """`seed` is a secret that decides which calls are audited; the same at each start."""
        self.state = AutopilotState(settings, client.id, seed)
        self.ready = asyncio.Event()
        """Set once the history is read and what was left open is decided."""
        self._client = client
        self._settings = settings
        self._roster = Roster()
        self._proposed: dict[str, Envelope] = {}
        self._complete = True
        self._sent: set[str] = set()
        self._told: dict[str, tuple[RuleState, Author, int, int]] = {}
        self._summarised: dict[str, Any] = {}
        self._summary_at: float | None = None

    async def run(self) -> None:
        """Read the history, then decide about each proposal as it comes; ends when the connection does.

        Raises:
            ConnectError: the gateway does not tell what was shown before.
            Disconnected: the connection ended for good.
        """
        feed = self._client.envelopes()
        seen: set[tuple[str, str]] = set()
        history = self._client.history()
        async for envelope in history:
            seen.add((envelope.id, envelope.sender))
            self._apply(envelope)
        self._complete = history.complete
        self._told = dict(self.state.announced)
        if not self._complete:
            _log.warning("the history of the space is incomplete: every proposal is asked about")
        if not await self._start():
            self._catch_up()
        async for envelope in feed:
            if (envelope.id, envelope.sender) in seen:
                continue
            record = self._apply(envelope)
            if envelope.kind == SUMMARY and envelope.sender == self._client.id and not self.ready.is_set():
                self._catch_up()
            elif self.ready.is_set():
                self._react(envelope, record)

    async def _start(self) -> bool:
        """Say that an autopilot is here, and how far it goes; return whether everybody was told."""
        self._summarised = self.state.summary()
        try:
            await self._client.send(SUMMARY, self._summarised)
        except Disconnected:
            raise
        except MewError as error:
            _log.warning("%s: %s", SUMMARY, error)
            self.state.learner.mode = self._settings.mode
            return False
        return True

    def _apply(self, envelope: Envelope) -> ProposalRecord | None:
        follow_capabilities(self._roster, envelope)
        if envelope.kind == Kind.MCP_PROPOSAL:
            self._proposed[envelope.id] = envelope
            if len(self._proposed) > _PROPOSALS_MAX:
                del self._proposed[next(iter(self._proposed))]
        return self.state.apply(envelope, datetime.now(UTC))

    @property
    def _capabilities(self) -> Mapping[str, CapabilitySet]:
        return {
            str(who): held
            for roster in (self._roster, self._client.participants)
            for who, held in roster.items()
        }

    def _catch_up(self) -> None:
        """Finish what an earlier process left: decide what it did not, and send what it decided but did not send."""
        self.ready.set()
        if self.state.mode is Mode.OFF:
            return
        now = datetime.now(UTC)
        for record in self.state.book.open(now):
            decided = self.state.decided.get(record.id)
            if decided is None:
                self._decide(record)
            elif decided.verdict is Verdict.FULFIL and self._decision(record).verdict is Verdict.FULFIL:
                self._client.connection.spawn(self._fulfil(record))
        self._announce()

    def _react(self, envelope: Envelope, record: ProposalRecord | None) -> None:
        if envelope.kind in _ORDERS or (envelope.kind == SUMMARY and envelope.sender > self._client.id):
            self._summarise(at_once=True)
        if self.state.mode is Mode.OFF:
            return
        if record is not None:
            self._decide(record)
        if envelope.kind == RATIFY:
            refused = self._refuse_ratification(envelope)
            for rule in self.state.transitions():
                if rule.id != refused:
                    self._told.pop(rule.id, None)  # an order is answered, also if it changed nothing
                    self._tell(rule, rule.state)
        self._announce()
        self._summarise()

    def _summarise(self, *, at_once: bool = False) -> None:
        """Tell the figures if they changed, at most once a minute unless `at_once`."""
        now = asyncio.get_running_loop().time()
        if not at_once and self._summary_at is not None and now - self._summary_at < _SUMMARY_S:
            return
        summary = self.state.summary()
        if at_once or summary != self._summarised:
            self._summarised, self._summary_at = summary, now
            self._spawn(SUMMARY, summary)

    @property
    def _stands_down(self) -> str | None:
        """The other autopilot that decides in this space, if this one must not."""
        here = self._client.participants
        return next((other for other in self.state.others if other < self._client.id and other in here), None)

    def _decide(self, record: ProposalRecord) -> None:
        me = self._client.id
        if record.proposer == me or (record.exclusive and me not in record.preferred):
            return
        if not may_fulfil(record, self._client.capabilities) and names_in(record.target):
            return
        if self._stands_down is not None or record.id in self._sent:
            return
        self._sent.add(record.id)
        self._client.connection.spawn(self._carry_out(record, self._decision(record)))

    def _decision(self, record: ProposalRecord) -> Decision:
        if not self._complete:
            return Decision(Verdict.ASK, "the history of the space is incomplete")
        if self._client.paused:
            return Decision(Verdict.ASK, "the autopilot is paused")
        if record.id not in self._proposed:
            return Decision(Verdict.ASK, "the proposal is no longer known")
        return self.state.decide(record, datetime.now(UTC), self._capabilities)

    async def _carry_out(self, record: ProposalRecord, decision: Decision) -> None:
        me = self._client.id
        with suppress(Disconnected):
            try:
                await self._client.send(
                    DECISION, decision, correlation_id=[record.id], id=_id("decision", me, record.id)
                )
                if decision.verdict is Verdict.FULFIL:
                    await self._fulfil(record)
            except MewError as error:
                _log.warning("proposal %s: %s", record.id, error)

    async def _fulfil(self, record: ProposalRecord) -> None:
        """Send exactly what was proposed, unless somebody was faster."""
        current = self.state.book.get(record.id)
        if current is None or not current.is_open(datetime.now(UTC)) or self._stands_down is not None:
            return
        proposed = self._proposed[record.id].read(_Proposed)
        payload: dict[str, Any] = {"method": proposed.method, "via": "autopilot"}
        if proposed.params is not UNSET:
            payload["params"] = proposed.params
        try:
            await self._client.send(
                Kind.MCP_REQUEST,
                payload,
                to=names_in(record.target),
                correlation_id=[record.id],
                context=record.context,
                id=_id("fulfilment", record.id),
            )
        except Disconnected:
            raise
        except MewError as error:
            _log.warning("proposal %s was not fulfilled: %s", record.id, error)

    def _refuse_ratification(self, envelope: Envelope) -> str | None:
        """Refuse a ratification by somebody who could not approve such a call themselves; return the rule's id."""
        found = self.state.ratification(envelope)
        if found is None:
            return None
        rule, record = found
        if record is None:
            alike = (one for one in self.state.book if self.state.case(one).group == rule.group)
            record = next((one for one in alike if self.state.case(one).mismatch(rule.pattern) is None), None)
        held = self._capabilities.get(envelope.sender)
        if record is not None and not may_fulfil(record, held):
            refused = f"{envelope.sender} may not approve such a call"
            said = {
                **rule.as_dict(),
                "state": RuleState.SUGGESTED.value,
                "author": Author.LEARNED.value,
                "refused": refused,
            }
            self._told[rule.id] = (RuleState.SUGGESTED, Author.LEARNED, rule.suggestions, rule.revision)
            self._spawn(RULE, said, correlation_id=[envelope.id])
            return rule.id
        return None

    def _announce(self) -> None:
        if self._stands_down is not None:
            return
        for rule in self.state.transitions():
            self._tell(rule, rule.state)
        for rule, ended in self.state.ended(datetime.now(UTC)):
            self._tell(rule, ended)

    def _tell(self, rule: Rule, state: RuleState) -> None:
        said = (state, rule.author, rule.suggestions, rule.revision)
        if self._told.get(rule.id) != said:
            self._told[rule.id] = said
            self._spawn(RULE, {**rule.as_dict(), "state": state.value})

    def _spawn(self, kind: str, payload: Any, *, correlation_id: Any = (), id: str | None = None) -> None:
        async def send() -> None:
            with suppress(Disconnected):
                try:
                    await self._client.send(kind, payload, correlation_id=correlation_id, id=id)
                except MewError as error:
                    _log.warning("%s: %s", kind, error)

        self._client.connection.spawn(send())


def follow_capabilities(roster: Roster, envelope: Envelope) -> None:
    """Know what each participant may do, also of those who have left: their rules stay in force."""
    with suppress(ProtocolError):
        if envelope.kind == Kind.PRESENCE:
            presence = envelope.read(Presence)
            if presence.event == "join":
                roster.present(presence)
        elif envelope.kind == Kind.GRANT:
            roster.granted(envelope, envelope.read(Grant))
        elif envelope.kind == Kind.REVOKE:
            roster.revoked(envelope.read(Revoke))


def _id(*parts: str) -> str:
    return "autopilot-" + sha256("\n".join(parts).encode()).hexdigest()[:32]
