"""PURE. The autopilot as a function of a space's envelopes: the same envelopes in order give the same rules.

What happened is taken from the log alone, the autopilot's own envelopes included: a rule counts as used, expired or
announced once the envelope that says so is seen.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct

from mew.proposals.book import ProposalBook
from mew.proposals.record import Fulfilment, ProposalRecord, Rejection, names_in, operand_of
from mew.protocol.capability import CapabilitySet
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind

from .learner import Learner
from .policy import Decision, Policy, Verdict
from .precedents import Case
from .rule import Author, Group, Pattern, Rule, RuleState
from .settings import AutopilotSettings, Mode, RiskClass
from .summary import Figures
from .view import subject

__all__ = [
    "DECISION",
    "MODE",
    "OBJECT",
    "RATIFY",
    "REVOKE",
    "RULE",
    "SUMMARY",
    "AutopilotState",
    "may_fulfil",
]

DECISION: Final = "autopilot/decision"
RULE: Final = "autopilot/rule"
RATIFY: Final = "autopilot/ratify"
REVOKE: Final = "autopilot/revoke"
OBJECT: Final = "autopilot/object"
SUMMARY: Final = "autopilot/summary"
MODE: Final = "autopilot/mode"
_NO_LABEL: Final = frozenset(
    {"busy", "duplicate", "timeout", "incapable", "resource_limit", "no_longer_needed"}
)
_REMEMBERED_MAX: Final = 20_000
_HOUR: Final = timedelta(hours=1)
_UNATTENDED: Final = "unattended"
_Moment = Annotated[datetime, Meta(tz=True)]


class _Order(Struct, frozen=True):
    """What a reviewer says about a rule or a proposal; `scope` is the pattern of a ladder's rung."""

    rule: str | None = None
    proposal: str | None = None
    scope: Pattern | None = None
    revision: int | None = None
    until: _Moment | None = None
    uses: Annotated[int, Meta(ge=1)] | None = None
    pause: bool = False


class _Announced(Struct, frozen=True):
    rule: str
    state: RuleState
    author: Author = Author.LEARNED
    suggestions: int = 0
    revision: int = 1
    refused: str | None = None


class _DecisionSeen(Struct, frozen=True):
    verdict: Verdict
    rule: str | None = None


class _ModeSet(Struct, frozen=True):
    mode: Mode


class _SummarySeen(Struct, frozen=True):
    mode: Mode
    configured: Mode


class AutopilotState:
    """Fed with the envelopes of a space in order; decides about proposals with what they taught."""

    def __init__(self, settings: AutopilotSettings, me: str, seed: str = "") -> None:
        self.settings = settings
        self.me = me
        self.book = ProposalBook(open_max=5000, closed_max=5000)
        self.learner = Learner(settings)
        self.decided: dict[str, _DecisionSeen] = {}
        """The autopilot's decisions by proposal, as seen in the log."""
        self.announced: dict[str, tuple[RuleState, Author, int, int]] = {}
        """What the autopilot last said of each rule, as seen in the log."""
        self.others: dict[str, None] = {}
        """Other autopilots that were seen in this space."""
        self.figures = Figures()
        self._configured: Mode | None = None
        self._at: datetime | None = None
        self._decided_at: dict[str, datetime] = {}
        self._policy = Policy(settings, self.learner, seed)
        self._cases: dict[str, Case] = {}
        self._named: dict[str, str] = {}  # an autopilot envelope -> the rule or proposal it is about
        self._uses: deque[tuple[datetime, str]] = deque()
        self._changed: dict[str, None] = {}

    def apply(self, envelope: Envelope, seen_at: datetime) -> ProposalRecord | None:
        """Take the next envelope; return the record if it is a new proposal."""
        at = (self._at or seen_at) if envelope.ts is UNSET else envelope.ts
        self._at = at
        known = envelope.id in self.book
        records = self.book.apply_all(envelope, at)
        for record in records:
            if envelope.kind == Kind.MCP_REQUEST:
                self._learn_fulfilment(record, envelope)
            elif envelope.kind == Kind.MCP_REJECT:
                self._learn_rejection(record, envelope)
        if envelope.kind.startswith("autopilot/"):
            with suppress(ProtocolError):
                self._autopilot(envelope, at)
        if envelope.kind == Kind.MCP_PROPOSAL and not known:
            return self.book.get(envelope.id)
        return None

    def decide(
        self, record: ProposalRecord, now: datetime, capabilities: Mapping[str, CapabilitySet]
    ) -> Decision:
        """What to do about an open proposal. `capabilities` are those of the participants, as far as known."""
        if record.schema_changed:
            return Decision(Verdict.ASK, "the tool has changed since this was proposed")
        if not names_in(record.target):
            return Decision(Verdict.ASK, "the proposal names no participant to carry it out")
        if record.preferred and self.me not in record.preferred:
            return Decision(Verdict.ASK, "the proposer asked for other reviewers")
        case = self.case(record)
        may_approve = {
            rule.by: may_fulfil(record, capabilities.get(rule.by))
            for rule in self.learner.rules
            if rule.author is Author.RATIFIED and rule.by is not None and rule.group == case.group
        }
        while self._uses and now - self._uses[0][0] > _HOUR:
            self._uses.popleft()
        uses: dict[str, int] = {}
        for _, rule_id in self._uses:
            uses[rule_id] = uses.get(rule_id, 0) + 1
        decision = self._policy.decide(
            case,
            record.params,
            now,
            annotations=_annotations(record),
            may_approve=may_approve,
            uses_last_hour=uses,
        )
        if decision.verdict is Verdict.FULFIL:
            return decision
        return msgspec.structs.replace(decision, ladder=self.learner.ladder(case))

    def case(self, record: ProposalRecord, params: Mapping[str, Any] | None = None) -> Case:
        """The call of a record as the learner sees it, or the same call with the params that ran."""
        operand = operand_of(record.method, record.params)
        group = Group(
            record.proposer,
            names_in(record.target),
            record.method,
            operand if isinstance(operand, str) else "",
            _fingerprint(record),
        )
        schema = record.tools_proposed[0].input_schema if len(record.tools_proposed) == 1 else None
        arguments = subject(record.method, record.params if params is None else params)
        return Case(record.id, group, arguments, schema, _risk_class(_annotations(record)))

    def transitions(self) -> list[Rule]:
        """The rules whose state may have changed since the last time this was asked."""
        changed, self._changed = self._changed, {}
        found = (self.learner.rule(id) for id in changed)
        return [rule for rule in found if rule is not None and rule.state is not RuleState.SHADOW]

    def ended(self, now: datetime) -> list[tuple[Rule, RuleState]]:
        """The rules in force whose time is over, and the state to announce for each."""
        idle = timedelta(days=self.settings.idle_days)
        over: list[tuple[Rule, RuleState]] = []
        for rule in self.learner.rules:
            if rule.state is not RuleState.ACTIVE:
                continue
            if rule.until is not None and now >= rule.until:
                over.append((rule, RuleState.EXPIRED))
            elif rule.last_used is not None and now - rule.last_used > idle:
                over.append((rule, RuleState.ASLEEP))
        return over

    def undecided(self, now: datetime) -> Iterator[ProposalRecord]:
        """The open proposals without a decision of the autopilot."""
        return (record for record in self.book.open(now) if record.id not in self.decided)

    @property
    def is_reconfigured(self) -> bool:
        """Whether the settings have another mode than when the autopilot last spoke: then they win over the dial."""
        return self._configured is not self.settings.mode

    @property
    def mode(self) -> Mode:
        """How far it goes now: as configured, unless a reviewer turned the dial since."""
        return self.learner.mode

    def summary(self) -> dict[str, Any]:
        """The payload of `autopilot/summary`; `mode` is in force once it is seen."""
        states: dict[str, int] = {}
        for rule in self.learner.rules:
            states[rule.state.value] = states.get(rule.state.value, 0) + 1
        return {
            "mode": (self.settings.mode if self.is_reconfigured else self.mode).value,
            "configured": self.settings.mode.value,
            "rules": states,
            **self.figures.as_dict(),
        }

    def ratification(self, envelope: Envelope) -> tuple[Rule, ProposalRecord | None] | None:
        """The rule that a ratification put into force, and the proposal it names."""
        order = _read_order(envelope)
        for rule in self.learner.rules:
            if rule.id == self._named.get(envelope.id):
                return rule, self.book.get(order.proposal or "")
        return None

    # Labels.

    def _is_reviewer(self, who: str) -> bool:
        if who == self.me or who in self.others:
            return False
        return not self.settings.reviewers or who in self.settings.reviewers

    def _teaches(self, by: str, record: ProposalRecord) -> bool:
        return by != record.proposer and self._is_reviewer(by)

    def _learn_fulfilment(self, record: ProposalRecord, envelope: Envelope) -> None:
        sent = next((one for one in record.fulfilments if one.id == envelope.id), None)
        if sent is None or sent.late or not self._teaches(sent.by, record):
            return
        if not self._was_reviewed(record, sent):
            return
        self.figures.reviewed(self._review_s(record, sent.at))
        if not sent.edited:
            self._note(self.learner.decided(self.case(record), sent.at, approved=True))
            return
        self._note(self.learner.decided(self.case(record), sent.at, approved=False))
        if not sent.abridged and sent.params is not UNSET and sent.target == record.target:
            self._note(self.learner.decided(self.case(record, sent.params), sent.at, approved=True))

    def _learn_rejection(self, record: ProposalRecord, envelope: Envelope) -> None:
        said = next((one for one in record.rejections if one.id == envelope.id), None)
        if said is None or said.reason in _NO_LABEL or not self._teaches(said.by, record):
            return
        decided = self.decided.get(record.id)
        self.figures.on(said.at).disagreed += decided is not None and decided.verdict is Verdict.AUDIT
        self._note(self.learner.decided(self.case(record), said.at, approved=False))

    def _was_reviewed(self, record: ProposalRecord, decision: Fulfilment | Rejection) -> bool:
        """Whether a person had the time to look: a quick yes teaches nothing. A quick no does."""
        if isinstance(decision, Fulfilment) and _UNATTENDED in (decision.via or ""):
            return False
        return self._review_s(record, decision.at) >= self.settings.min_review_s

    def _review_s(self, record: ProposalRecord, at: datetime) -> float:
        """How long a review took, from when the autopilot saw the proposal: the proposer's clock is not trusted."""
        return max(0.0, (at - self._decided_at.get(record.id, record.created)).total_seconds())

    def _note(self, changed: list[Rule]) -> None:
        for rule in changed:
            self._changed[rule.id] = None

    # Envelopes of the autopilot and about it.

    def _autopilot(self, envelope: Envelope, at: datetime) -> None:
        if envelope.kind in (DECISION, RULE, SUMMARY):
            if envelope.sender == self.me:
                self._own(envelope, at)
            else:
                self.others[envelope.sender] = None
        elif envelope.kind == RATIFY:
            self._ratified(envelope, at)
        elif envelope.kind == MODE:
            self._set_mode(envelope)
        elif envelope.kind == REVOKE:
            order = _read_order(envelope)
            rule = self.learner.rule(self._rule_named(order, envelope) or "")
            if rule is not None and rule.state is not RuleState.REVOKED:
                self.learner.set_state(rule.id, RuleState.ASLEEP if order.pause else RuleState.REVOKED, at)
                self._note([rule])
        elif envelope.kind == OBJECT:
            order = _read_order(envelope)
            named = [order.proposal or "", *(self._named.get(id, id) for id in envelope.correlation_id)]
            record = next((self.book[id] for id in named if id in self.book), None)
            if record is not None and envelope.sender != self.me:
                self.figures.on(at).objected += 1
                self._note(self.learner.objected(self.case(record), at))

    def _own(self, envelope: Envelope, at: datetime) -> None:
        if envelope.kind == DECISION and envelope.correlation_id:
            decided = envelope.read(_DecisionSeen)
            proposal = envelope.correlation_id[0]
            self._remember(self.decided, proposal, decided)
            self._remember(self._named, envelope.id, proposal)
            self._remember(self._decided_at, proposal, at)
            today = self.figures.on(at)
            today.proposals += 1
            today.alone += decided.verdict is Verdict.FULFIL
            today.audited += decided.verdict is Verdict.AUDIT
            record = self.book.get(proposal)
            if decided.verdict is Verdict.FULFIL and decided.rule is not None and record is not None:
                self._uses.append((at, decided.rule))
                self.learner.used(decided.rule, self.case(record), at)
                rule = self.learner.rule(decided.rule)
                self._note([] if rule is None else [rule])
        elif envelope.kind == SUMMARY:
            summary = envelope.read(_SummarySeen)
            self.learner.mode, self._configured = summary.mode, summary.configured
        elif envelope.kind == RULE:
            said = envelope.read(_Announced)
            self._remember(self._named, envelope.id, said.rule)
            rule = self.learner.rule(said.rule)
            if rule is None:
                return
            if said.refused is not None:
                rule.author, rule.by = Author.LEARNED, None
                self.learner.set_state(rule.id, said.state, at)
            elif said.state in (RuleState.EXPIRED, RuleState.ASLEEP):
                self.learner.set_state(rule.id, said.state, at)
            self.figures.on(at).demoted += said.state is RuleState.DEMOTED
            self.announced[rule.id] = (said.state, said.author, said.suggestions, said.revision)

    def _set_mode(self, envelope: Envelope) -> None:
        """Turn the dial, if a reviewer does it and it is not configured to be off."""
        if self._is_reviewer(envelope.sender) and self.settings.mode is not Mode.OFF:
            self.learner.mode = envelope.read(_ModeSet).mode

    def _ratified(self, envelope: Envelope, at: datetime) -> None:
        order = _read_order(envelope)
        by = envelope.sender
        if not self._is_reviewer(by):
            return
        known = self.learner.rule(self._rule_named(order, envelope) or "")
        record = self.book.get(order.proposal or "")
        if known is not None and order.revision not in (None, known.revision):
            self.announced.pop(known.id, None)  # told again, as it is now
            self._note([known])
            return
        if known is not None:
            group, risk_class, pattern = known.group, RiskClass.WRITE, known.pattern
        elif record is not None:
            case = self.case(record)
            pattern = order.scope or Pattern(exact=case.exact)
            group, risk_class = case.group, case.risk_class
            if case.mismatch(pattern) is not None:
                return
        else:
            return
        if by == group.proposer:
            return
        rule = self.learner.ratify(group, risk_class, pattern, by, at, until=order.until, uses=order.uses)
        self._remember(self._named, envelope.id, rule.id)
        self._note([rule])

    def _rule_named(self, order: _Order, envelope: Envelope) -> str | None:
        if order.rule is not None:
            return order.rule
        return next((self._named[id] for id in envelope.correlation_id if id in self._named), None)

    def _remember(self, memory: dict[str, Any], key: str, value: object) -> None:
        memory[key] = value
        if len(memory) > _REMEMBERED_MAX:
            del memory[next(iter(memory))]


def may_fulfil(record: ProposalRecord, held: CapabilitySet | None) -> bool:
    """Whether somebody with these capabilities could carry the proposal out themselves."""
    if held is None:
        return False
    payload = {"method": record.method, "params": record.params}
    return held.fits(Kind.MCP_REQUEST, names_in(record.target), lambda: payload)


def _read_order(envelope: Envelope) -> _Order:
    try:
        return msgspec.convert(envelope.content, _Order)
    except msgspec.ValidationError as error:
        raise ProtocolError(str(error)) from None


def _annotations(record: ProposalRecord) -> Mapping[str, Any]:
    return record.tools_proposed[0].annotations if len(record.tools_proposed) == 1 else {}


def _risk_class(annotations: Mapping[str, Any]) -> RiskClass:
    if annotations.get("destructiveHint") is True:
        return RiskClass.DESTRUCTIVE
    if annotations.get("readOnlyHint") is True:
        return RiskClass.READ
    return RiskClass.OUTWARD if annotations.get("openWorldHint") is True else RiskClass.WRITE


def _fingerprint(record: ProposalRecord) -> str:
    """What a tool was when this was proposed: a tool that changed in any way has to earn its rules again."""
    if not record.tools_proposed:
        return ""
    parts = [
        [tool.participant, tool.name, tool.description, tool.input_schema, tool.annotations]
        for tool in record.tools_proposed
    ]
    return sha256(encode_json(parts)).hexdigest()[:16]
