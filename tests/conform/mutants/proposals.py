"""Gateways that treat proposals wrongly."""

from typing import Any

import pytest
from msgspec.structs import replace

from mew.protocol.envelope import Envelope
from mew.space import presence, proposals

from .breaks import Break, Mutant, of, ruled, shown
from .deciding import allowing, changed, dropped, refusing
from .doors import leaking

__all__ = ["MUTANTS"]


REJECT, WITHDRAW, PROPOSAL = "mcp/reject", "mcp/withdraw", "mcp/proposal"
CODES = {"no_longer_needed", "unsafe", "busy", "policy", "other", "timeout", "disagree", "inappropriate"}
CODES |= {"incapable", "duplicate", "invalid", "resource_limit"}


def withdrawing(check: Any) -> Break:
    return ruled(WITHDRAW, check=check)


def only_the_first(state: Any, at: Any, envelope: Envelope, asked: Any) -> Any:
    first = replace(envelope, correlation_id=envelope.correlation_id[:1])
    return proposals.check_withdraw(state, at, first, asked)


def not_of_the_owner(state: Any, at: Any, envelope: Envelope, asked: Any) -> Any:
    return None if envelope.sender == "owner" else proposals.check_withdraw(state, at, envelope, asked)


def forget_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    right = presence.drop

    def drop(state: Any, entry: Any, who: Any) -> Any:
        state.recent |= {one: "nobody" for one, by in state.recent.items() if by == who}
        return right(state, entry, who)

    monkeypatch.setattr(presence, "drop", drop)


def by_addressees_only() -> Break:
    asked: dict[str, tuple[str, ...]] = {}

    def when(envelope: Envelope) -> bool:
        if envelope.kind == PROPOSAL:
            asked[envelope.id] = envelope.to
        to = asked.get(envelope.correlation_id[0], ()) if envelope.kind == REJECT else ()
        return bool(to) and envelope.sender not in to

    return refusing(when)


def only_one_rejection() -> Break:
    rejected: set[str] = set()

    def when(said: dict[str, Any]) -> bool:
        if said["kind"] != REJECT:
            return False
        again = said["correlation_id"][0] in rejected
        rejected.update(said["correlation_id"])
        return again

    return dropped(when)


MUTANTS = (
    Mutant(
        "proposal.without-correlation",
        "proposals.a_proposal_needs_no_cause",
        refusing(lambda e: e.kind == PROPOSAL and not e.correlation_id),
        "the gateway refused it",
    ),
    Mutant(
        "proposal.without-correlation",
        "proposals.a_proposal_needs_no_cause",
        changed(shown(PROPOSAL), lambda said: said.update(correlation_id=[said["id"]])),
        "with another correlation_id: [] was sent",
    ),
    Mutant(
        "withdraw.own", "proposals.a_proposer_withdraws_its_own", dropped(shown(WITHDRAW)), "the mcp/withdraw"
    ),
    Mutant(
        "withdraw.own",
        "proposals.a_proposer_withdraws_its_own",
        refusing(lambda e: e.kind == WITHDRAW and b"reason" not in bytes(e.payload)),
        "the gateway refused it",
    ),
    Mutant(
        "withdraw.own",
        "proposals.a_proposer_withdraws_after_it_came_back",
        forget_who_left,
        "'error': 'not_proposer'",
    ),
    Mutant(
        "withdraw.only-proposer",
        "proposals.nobody_else_withdraws_a_proposal",
        withdrawing(None),
        "refuses the mcp/withdraw",
    ),
    Mutant(
        "withdraw.only-proposer",
        "proposals.nobody_else_withdraws_a_proposal",
        withdrawing(only_the_first),
        "refuses the mcp/withdraw",
    ),
    Mutant(
        "withdraw.only-proposer",
        "proposals.nobody_else_withdraws_a_proposal",
        withdrawing(not_of_the_owner),
        "refuses the mcp/withdraw",
    ),
    Mutant(
        "withdraw.only-proposer",
        "proposals.nobody_else_withdraws_a_proposal",
        leaking(of(WITHDRAW)),
        "refuses the mcp/withdraw",
    ),
    Mutant(
        "reject.needs-capability",
        "proposals.who_may_reject_rejects_any_proposal",
        allowing(of(REJECT)),
        "refuses the mcp/reject",
    ),
    Mutant(
        "reject.needs-capability",
        "proposals.who_may_reject_rejects_any_proposal",
        allowing(of(REJECT, sender="granter")),
        "'from': 'granter'",
    ),
    Mutant(
        "reject.needs-capability",
        "proposals.who_may_reject_rejects_any_proposal",
        by_addressees_only(),
        "the gateway refused it",
    ),
    Mutant(
        "reject.needs-capability",
        "proposals.mcp_reject_alone_is_enough_to_reject",
        refusing(of(REJECT, sender="guest")),
        "the gateway refused it",
    ),
    Mutant(
        "reject.needs-capability",
        "proposals.mcp_reject_alone_is_enough_to_reject",
        allowing(of(REJECT, sender="guest")),
        "refuses the mcp/reject",
    ),
    Mutant("reject.several", "proposals.several_reject_one_proposal", only_one_rejection(), "that peer sent"),
    Mutant(
        "reason-code.other",
        "proposals.a_reason_may_be_any_string",
        refusing(lambda e: e.kind == REJECT and e.content["reason"] not in CODES),
        "the gateway refused it",
    ),
    Mutant(
        "reason-code.other",
        "proposals.a_reason_may_be_any_string",
        changed(
            lambda said: said["kind"] == WITHDRAW and said["payload"]["reason"] not in CODES,
            lambda said: said["payload"].update(reason="other"),
        ),
        "with another payload: {'reason': 'Busy'}",
    ),
    Mutant(
        "reason-code.other",
        "proposals.a_reason_may_be_any_string",
        changed(shown(REJECT), lambda said: said["payload"].update(reason=said["payload"]["reason"][:64])),
        "with another payload: …o no no",
    ),
    Mutant(
        "reject.explained-by-chat",
        "proposals.a_chat_explains_a_rejection",
        changed(shown("chat"), lambda said: said.pop("correlation_id", None)),
        "with another correlation_id",
    ),
    Mutant(
        "reject.explained-by-chat",
        "proposals.a_chat_explains_a_rejection",
        refusing(lambda e: e.kind == "chat" and len(e.correlation_id) == 1),
        "the gateway refused it",
    ),
)
