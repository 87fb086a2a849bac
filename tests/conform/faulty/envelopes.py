"""Wrong participants: their envelopes, how they answer, and what they take for right."""

from typing import Any, Final

from .faults import (
    Envelope,
    Fault,
    Say,
    Wrong,
    afresh,
    drop,
    edit,
    payload,
    sends,
    spoken,
    takes,
    tool_of,
    twice,
    when,
)

__all__ = ["ENVELOPES", "REQUESTS", "VALIDATION"]


def _method(envelope: Envelope) -> str:
    return str((envelope.get("payload") or {}).get("method"))


# The envelope.

ENVELOPES: Final = {
    "envelope.one-json-object": sends(
        "audits.each_frame_is_an_envelope", "no JSON object, but an array", lambda e: [e, "[]"]
    ),
    "envelope.protocol": sends(
        "audits.each_envelope_names_the_protocol", "`protocol` is mew/v0.4", when("chat", protocol="mew/v0.3")
    ),
    "envelope.id-unique": sends(
        "audits.each_envelope_has_its_own_id",
        "two envelopes have the id",
        when("participant/status", id="same"),
    ),
    "envelope.ts-rfc3339": sends(
        "audits.each_time_is_a_time", "no RFC 3339 time", when("chat", ts="2026-13-01")
    ),
    "envelope.to-array": sends(
        "audits.each_to_is_an_array", "`to` is an array", when("mcp/response", to="owner")
    ),
    "kind.vocabulary": sends(
        "audits.each_kind_is_written_as_it_is", "the kind is chat", when("chat", kind="Chat")
    ),
    "correlation.array": sends(
        "audits.each_correlation_is_an_array",
        "`correlation_id` is an array",
        when("mcp/response", correlation_id=lambda e: e["correlation_id"][0]),
    ),
    "envelope.payload-object": sends(
        "audits.each_payload_is_an_object", "`payload` is an object", when("chat", payload=["text"])
    ),
    "system.not-sent-by-participants": sends(
        "audits.nothing_is_said_as_the_gateway",
        "is the gateway's to say",
        twice("chat", kind="system/presence"),
    ),
    "mcp.method-in-payload": sends(
        "audits.a_method_is_in_the_payload",
        "a response has no method",
        payload("mcp/response", method="ping"),
    ),
    "mcp.payload-unchanged": sends(
        "audits.payloads_are_json_rpc",
        "the request has the id",
        when("mcp/response", payload=lambda e: {**e["payload"], "id": str(e["payload"]["id"])}),
    ),
}

# Context, correlation and MCP.


def _also_the_proposal() -> Fault:
    proposed: list[str] = []

    def shown(envelope: Envelope) -> Envelope:
        proposed.extend([envelope["id"]] if envelope.get("kind") == "mcp/proposal" else [])
        return envelope

    return Fault(
        shown=shown, sent=when("mcp/response", correlation_id=lambda e: [*e["correlation_id"], *proposed])
    )


def _capabilities_lost(envelope: Envelope) -> Envelope:
    result = (envelope.get("payload") or {}).get("result")
    if not isinstance(result, dict) or "serverInfo" not in result:
        return envelope
    return edit(envelope, payload=edit(envelope["payload"], result=edit(result, capabilities=...)))


REQUESTS: Final = {
    "context.addressed-is-handled": takes(
        "requests.what_is_addressed_is_handled_in_any_context",
        "a pause with a `context` does not pause it",
        drop("participant/pause", test=lambda e: "context" in e),
    ),
    "context.request-not-ignored": takes(
        "requests.a_request_in_a_context_is_answered",
        "expected that the participant sends an mcp/response",
        drop("mcp/request", test=lambda e: "/" in e.get("context", "")),
    ),
    "context.optional": sends(
        "requests.a_context_may_be_there_or_not", "`context` is a string", when("mcp/response", context=7)
    ),
    "context.path": sends(
        "requests.contexts_are_paths",
        "it answers in 'conform.child'",
        when("mcp/response", context=lambda e: e.get("context", "x").replace("/", ".")),
    ),
    "correlation.any-envelope": takes(
        "requests.what_names_unknown_envelopes_is_taken",
        "expected that the participant sends an mcp/response",
        drop("mcp/request", test=lambda e: bool(e.get("correlation_id"))),
    ),
    "correlation.several": takes(
        "requests.it_finds_its_request_among_several",
        "was not taken",
        drop("mcp/response", test=lambda e: len(e.get("correlation_id", ())) > 1),
    ),
    "mcp.server": sends(
        "requests.it_answers_as_an_mcp_server_does", "no capabilities in", _capabilities_lost
    ),
    "mcp.request-handled": sends(
        "requests.each_request_gets_one_answer", "expected one response", twice("mcp/response")
    ),
    "response.correlates": sends(
        "requests.an_answer_names_its_request",
        "expected `correlation_id` to name the request",
        lambda e: edit(e, correlation_id=[]) if "error" in e["payload"] else e,
    ),
    "response.addressed": sends(
        "requests.an_answer_goes_to_who_asked",
        "expected the response to be to owner",
        when("mcp/response", to=[]),
    ),
    "fulfilment.response-to-fulfiller": sends(
        "requests.the_answer_to_a_fulfilment_is_the_fulfillers",
        "to the fulfiller alone",
        when("mcp/response", to=lambda e: [*e["to"], "novice"]),
    ),
    "fulfilment.response-correlates": Wrong(
        "requests.the_answer_to_a_fulfilment_is_the_fulfillers", "names the proposal", _also_the_proposal
    ),
    "proposal.not-executed": takes(
        "requests.a_proposal_runs_nothing",
        "a proposal gets no mcp/response",
        when("mcp/proposal", kind="mcp/request", payload=lambda e: {"id": 1, **e["payload"]}),
    ),
}

# What is wrong, and is taken as if it were right.


def _repaired(envelope: Envelope) -> Envelope:
    return {"id": afresh(envelope)["id"], "from": "owner", "kind": "mcp/request", **envelope}


def _as_request(envelope: Envelope) -> Envelope:
    return edit(envelope, kind="mcp/request") if _method(envelope) == "tools/call" else envelope


def _made_to_fit(envelope: Envelope) -> Envelope:
    if tool_of(envelope) != "touch":
        return envelope
    params = {"name": "touch", "arguments": {"times": 1}}
    return edit(envelope, payload={**envelope["payload"], "params": params})


def _told_badly(envelope: Envelope) -> Any:
    if envelope.get("from") != "novice" or envelope.get("kind") != "mcp/request":
        return envelope
    return [
        envelope,
        Say(spoken(envelope["to"][0], "chat", {}, correlation_id=[envelope["id"]], payload="no")),
    ]


def _answered(envelope: Envelope) -> Any:
    if envelope.get("kind") != "mcp/response" or envelope.get("correlation_id") != ["conform-unknown"]:
        return envelope
    if "to" not in envelope:
        return envelope
    said = {"text": "thank you"}
    return [envelope, Say(spoken(envelope["to"][0], "chat", said, correlation_id=[envelope["id"]]))]


VALIDATION: Final = {
    "version.matching": takes(
        "validation.another_version_has_no_effect",
        "an envelope of protocol 'mew/v0.3' must have no effect",
        lambda e: edit(e, protocol="mew/v0.4"),
    ),
    "validate.structure": takes(
        "validation.what_is_no_envelope_is_not_acted_on", "with a missing or wrong `id`", _repaired
    ),
    "validate.kind-matches": takes(
        "validation.a_kind_that_its_payload_does_not_fit_has_no_effect",
        "an MCP request that comes as",
        _as_request,
    ),
    "validate.payload-schema": takes(
        "validation.arguments_that_do_not_fit_are_not_acted_on",
        "which the schema does not allow",
        _made_to_fit,
    ),
    "validate.dropped-or-reported": takes(
        "validation.malformed_and_forged_envelopes_do_not_upset_it",
        "expected that the participant sends an mcp/response to ping",
        lambda e: edit(e, to=..., **{"from": "system:gateway"}) if e.get("from") == "stranger" else e,
    ),
    "validate.track": takes(
        "validation.it_may_tell_of_misconduct", "a report without a payload", _told_badly
    ),
    "validate.unexpected-parameters": takes(
        "validation.other_fields_than_advertised_upset_nothing",
        "expected that the participant sends an mcp/response",
        drop("mcp/request", test=lambda e: "conform_extra" in str(e.get("payload"))),
    ),
    "validate.unknown-response": takes(
        "validation.a_response_to_nothing_has_no_effect", "has no effect", _answered
    ),
}
