"""Wrong participants: how they stand in the space, stream, and end."""

import json
from typing import Any, Final

from mew.client.connection.websocket import Via

from .faults import Envelope, Fault, Wrong, afresh, drop, payload, sends, spoken, takes, when

__all__ = ["ENDINGS", "STANDING", "STREAMS"]


# How it stands in the space.


def _oversteps(envelope: Envelope) -> Any:
    if envelope["kind"] != "chat":
        return envelope
    return [envelope, afresh(envelope, kind="space/kick", payload={"participant_id": "stranger"})]


STANDING: Final = {
    "connect.participant-brings-token": Wrong(
        "connection.it_connects_with_its_token",
        "it came in no place",
        lambda: Fault(via=Via.FIRST_FRAME),
    ),
    "welcome.processed": sends(
        "connection.it_is_who_its_welcome_says", "it speaks as another", when("chat", **{"from": "owner"})
    ),
    "welcome.of-others-ignored": takes(
        "connection.anothers_welcome_is_not_its_own",
        "expected that the participant sends an mcp/response to ping",
        when("system/welcome", to=...),
    ),
    "welcome.capabilities-respected": sends(
        "connection.it_tries_only_what_it_may", "it tried what it may not", _oversteps
    ),
    "presence.tracked": takes(
        "connection.it_knows_who_is_there",
        "it turns to somebody who has left",
        drop("system/presence", test=lambda e: e["payload"]["event"] == "leave"),
    ),
    "grant-ack.sent": sends(
        "connection.a_grant_is_acknowledged",
        "capability/grant-ack after a grant",
        drop("capability/grant-ack"),
    ),
    "grant-ack.correlates": sends(
        "connection.an_acknowledgement_names_the_grant",
        "expected it to name the grant",
        when("capability/grant-ack", correlation_id=[]),
    ),
    "grant-ack.status": sends(
        "connection.an_acknowledgement_says_accepted",
        "`payload.status` of a grant that is taken",
        payload("capability/grant-ack", status="ok"),
    ),
    "grant.payload": sends(
        "connection.its_grants_are_whole",
        "a grant names its `recipient`",
        payload("capability/grant", recipient=...),
    ),
    "invite.reason": sends(
        "connection.its_invitations_say_why", "an invitation says why", payload("space/invite", reason=...)
    ),
    "invite.email-optional": sends(
        "connection.its_invitations_may_have_an_address",
        "`email` is an address or left out",
        payload("space/invite", email=7),
    ),
}

# Streams.


def _wrapped(frame: bytes) -> bytes:
    name, _, data = frame[1:].partition(b"#")
    said = {"stream_id": name.decode(), "data": data.decode(errors="replace")}
    return json.dumps(spoken("subject", "stream/data", said)).encode()


def _mixed() -> Fault:
    first: list[bytes] = []

    def frame(data: bytes) -> bytes:
        name, _, content = data[1:].partition(b"#")
        first.append(name)
        return b"#" + first[0] + b"#" + content

    return Fault(frame=frame)


def _writes_on(envelope: Envelope) -> Any:
    if envelope["kind"] != "stream/close":
        return envelope
    return [envelope, f"#{envelope['payload']['stream_id']}#late"]


STREAMS: Final = {
    "stream.direction": sends(
        "streams.a_stream_has_a_direction",
        "`direction` is upload or download",
        payload("stream/request", direction="up"),
    ),
    "stream.size-omitted": sends(
        "streams.a_size_is_a_number_or_left_out",
        "`expected_size_bytes` is a number",
        payload("stream/request", expected_size_bytes="9"),
    ),
    "stream.request-correlates": sends(
        "streams.a_stream_may_say_what_it_is_for",
        "it names what there never was",
        when("stream/request", correlation_id=["nothing"]),
    ),
    "stream.metadata": takes(
        "streams.more_about_a_stream_upsets_nothing",
        "nothing was written to the stream",
        drop("stream/open", test=lambda e: "compression" in e["payload"]),
    ),
    "stream.same-socket": Wrong(
        "streams.data_travels_bare", "travels without an envelope", lambda: Fault(frame=_wrapped)
    ),
    "stream.frame-prefix": Wrong(
        "streams.a_frame_begins_with_its_stream",
        "the frame of no stream that was opened",
        lambda: Fault(frame=lambda frame: b"#stream-0#" + frame),
    ),
    "stream.boundaries": Wrong("streams.streams_can_be_told_apart", "no frame is under", _mixed),
    "stream.close-correlates": sends(
        "streams.a_close_names_the_open", "it names no stream/open", when("stream/close", correlation_id=[])
    ),
    "stream.close-either-side": takes(
        "streams.a_close_of_the_gateway_is_the_end",
        "the gateway closed the stream, and it goes on",
        drop("stream/close", test=lambda e: e["from"] == "system:gateway"),
    ),
    "stream.close-reason": sends(
        "streams.a_close_says_how_it_ended",
        "are both closed with",
        payload("stream/close", reason="complete"),
    ),
    "stream.closed-is-silent": sends(
        "streams.nothing_is_written_after_a_close", "came after its stream was closed", _writes_on
    ),
}

# Its end.


def _hinted(envelope: Envelope) -> bool:
    return "conform_hint" in str(envelope.get("payload"))


ENDINGS: Final = {
    "restart.baseline": takes(
        "shutdown.a_restart_leads_back_to_the_beginning",
        "when it first joined it retained",
        drop("participant/restart"),
    ),
    "restart.hints": takes(
        "shutdown.a_restart_may_have_hints",
        "participant/restart with the payload {'reason'",
        drop("participant/restart", test=_hinted),
    ),
    "restart.terminates": takes(
        "shutdown.a_restart_ends_what_goes_on",
        "it was restarted, and reasons on",
        drop("participant/restart"),
    ),
    "shutdown.ceases": takes(
        "shutdown.a_shutdown_ends_all_activity", "it answers nothing any more", drop("participant/shutdown")
    ),
    "shutdown.context": takes(
        "shutdown.a_shutdown_may_say_more",
        "or that it leaves; neither came",
        drop("participant/shutdown", test=_hinted),
    ),
    "shutdown.acknowledged": takes(
        "shutdown.a_shutdown_is_acknowledged", "or that it leaves; neither came", drop("participant/shutdown")
    ),
}
