"""Wrong participants: how they propose, and decide on what others propose."""

from typing import Any, Final

from .faults import (
    Envelope,
    Fault,
    Kept,
    Say,
    Wrong,
    afresh,
    drop,
    edit,
    payload,
    reason_of,
    sends,
    spoken,
    takes,
    tool_of,
    twice,
    when,
)

__all__ = ["FULFILLING", "PROPOSALS"]


CODES: Final = ("unsafe", "busy", "other", "policy")

# Proposing.


def _tries_it_too(envelope: Envelope) -> Any:
    if envelope["kind"] != "mcp/proposal":
        return envelope
    asked = {"jsonrpc": "2.0", "id": 1, **envelope["payload"]}
    return [envelope, afresh(envelope, kind="mcp/request", payload=asked)]


def _takes_any_outcome() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Envelope:
        proposal = kept.sent.get("mcp/proposal")
        if proposal is None or "conform-other" not in (envelope.get("correlation_id") or ()):
            return envelope
        return edit(envelope, correlation_id=[proposal["id"]])

    return Fault(sent=kept.out(), shown=shown)


def _answer_to(kept: Kept, said: Any) -> Say:
    asked = kept.prompted
    answer = {
        "jsonrpc": "2.0",
        "id": asked["payload"]["id"],
        "result": {"content": [{"type": "text", "text": said}]},
    }
    return Say(
        spoken(asked["to"][0], "mcp/response", answer, to=[asked["from"]], correlation_id=[asked["id"]])
    )


def _changes_its_mind() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Any:
        if envelope.get("kind") != "mcp/response" or envelope.get("from") != "worker":
            return envelope
        return [envelope, _answer_to(kept, str(envelope["payload"]))]

    return Fault(sent=kept.out(when("mcp/withdraw", kind="conform/nothing")), shown=kept.into(shown))


def _sulks() -> Fault:
    kept = Kept()

    def sent(envelope: Envelope) -> Envelope | None:
        about = kept.prompted.get("id") in (envelope.get("correlation_id") or ())
        ends = envelope["kind"] == "mcp/withdraw" or (envelope["kind"] == "mcp/response" and about)
        return None if ends else envelope

    return Fault(sent=kept.out(sent), shown=kept.into())


def _withdraws_for_the_chat() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Any:
        proposal = kept.sent.get("mcp/proposal")
        if envelope.get("kind") != "chat" or not envelope.get("correlation_id") or proposal is None:
            return envelope
        said = {"reason": "no_longer_needed"}
        return [
            envelope,
            Say(spoken(proposal["from"], "mcp/withdraw", said, correlation_id=[proposal["id"]])),
        ]

    return Fault(sent=kept.out(), shown=shown)


def _hangs() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Envelope | None:
        lost = envelope.get("kind") == "mcp/reject" or kept.about("mcp/proposal", envelope)
        return None if lost else envelope

    return Fault(sent=kept.out(), shown=shown)


def _waits_for_the_explanation() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Envelope | None:
        is_stuck = "mcp/reject" in kept.shown
        return None if is_stuck else envelope

    return Fault(shown=kept.into(shown))


def _quotes_it_twice() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Any:
        if envelope.get("kind") != "chat" or envelope.get("from") != "reviewer":
            return envelope
        said = envelope["payload"]["text"]
        return [envelope, _answer_to(kept, said), _answer_to(kept, said)]

    return Fault(shown=kept.into(shown))


_unheard_of = drop("mcp/reject", test=lambda e: reason_of(e) not in CODES)

PROPOSALS: Final = {
    "proposal.when-restricted": sends(
        "proposals.what_it_may_not_request_it_proposes",
        "it may not request this, and tries to",
        _tries_it_too,
    ),
    "proposal.payload": sends(
        "proposals.a_proposal_says_what_the_request_would",
        "`params` name the tool and its arguments",
        payload("mcp/proposal", params={"tool": "write_note"}),
    ),
    "proposal.outcome-followed": Wrong(
        "proposals.it_learns_what_came_of_it", "takes what came of another proposal", _takes_any_outcome
    ),
    "withdraw.correlates": sends(
        "proposals.a_withdrawal_names_its_proposal",
        "expected it to name the proposal",
        when("mcp/withdraw", correlation_id=["nothing"]),
    ),
    "reject.proposer-gives-up": Wrong(
        "proposals.it_may_give_up", "it gave the proposal up, and takes its outcome", _changes_its_mind
    ),
    "reject.proposer-waits-on": Wrong(
        "proposals.it_may_wait_on", "which was rejected and then fulfilled", _sulks
    ),
    "reject.several": sends(
        "proposals.a_second_rejection_is_coped_with", "it withdraws 2 times", twice("mcp/withdraw")
    ),
    "reason-code.unknown-handled": takes(
        "proposals.an_unknown_reason_is_a_reason", "with a listed reason it sends", _unheard_of
    ),
    "reason-code.other": takes(
        "proposals.an_unknown_reason_is_a_reason", "with a listed reason it sends", _unheard_of
    ),
    "reason-code.suggested": sends(
        "proposals.its_reasons_are_words", "`payload.reason` is a string", payload("mcp/withdraw", reason=7)
    ),
    "reject.explained-by-chat": Wrong(
        "proposals.an_explanation_is_no_second_answer", "once for the explanation", _withdraws_for_the_chat
    ),
    "reject.processed-at-once": Wrong("proposals.a_rejection_is_acted_on_at_once", "it hangs", _hangs),
    "reject.explanation-never-comes": Wrong(
        "proposals.a_rejection_is_acted_on_at_once",
        "expected that the participant sends an mcp/response to ping",
        _waits_for_the_explanation,
    ),
    "reject.explanation-awaited": Wrong(
        "proposals.it_may_use_an_explanation", "the explanation is told ", _quotes_it_twice
    ),
}

# Deciding.


def _explains_first(envelope: Envelope) -> Any:
    if envelope["kind"] != "mcp/reject":
        return envelope
    return [afresh(envelope, kind="chat", payload={"text": "I am afraid"}), envelope]


def _edits(envelope: Envelope) -> Envelope:
    if envelope["kind"] != "mcp/request" or tool_of(envelope) != "read_note":
        return envelope
    params = {"name": "read_note", "arguments": {"all": True}}
    return edit(envelope, payload={**envelope["payload"], "params": params})


FULFILLING: Final = {
    "fulfilment.is-a-request": sends(
        "proposals.a_fulfilment_is_the_request", "the params that were proposed are", _edits
    ),
    "fulfilment.correlates": sends(
        "proposals.a_fulfilment_names_its_proposal",
        "expected it to name the proposal",
        when("mcp/request", correlation_id=[]),
    ),
    "proposal.without-correlation": takes(
        "proposals.a_proposal_needs_no_correlation",
        "an mcp/request for a proposal with `correlation_id` []",
        drop("mcp/proposal", test=lambda e: e.get("correlation_id") == []),
    ),
    "withdraw.own": takes(
        "proposals.a_withdrawn_proposal_is_not_fulfilled", "was withdrawn before", drop("mcp/withdraw")
    ),
    "withdraw.only-proposer": takes(
        "proposals.a_forged_withdrawal_changes_nothing",
        "cannot withdraw",
        when("mcp/withdraw", **{"from": "novice"}),
    ),
    "reject.when-targeted": sends(
        "proposals.who_is_named_rejects_what_it_will_not_do",
        "mcp/reject for a proposal that names it",
        drop("mcp/reject"),
    ),
    "reject.correlates": sends(
        "proposals.a_rejection_names_its_proposal",
        "it names no proposal",
        when("mcp/reject", correlation_id=[]),
    ),
    "reject.sent-at-once": sends(
        "proposals.a_rejection_comes_before_its_explanation",
        "the explanation comes before the rejection",
        _explains_first,
    ),
}
