"""The envelope, as in everything that the participant ever sent (§3, §4.1): played when all else is over."""

import re
from collections.abc import Iterator
from typing import Any, Final

from mew.conform.match import causes, moment, payload_of, to_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import every, needs_mcp, some
from mew.conform.participant.subject import Frame, FrameDirection, stream_of

KINDS: Final = frozenset(
    {
        *("mcp/request", "mcp/response", "mcp/proposal", "mcp/withdraw", "mcp/reject"),
        *("reasoning/start", "reasoning/thought", "reasoning/conclusion", "reasoning/cancel"),
        *("capability/grant", "capability/revoke", "capability/grant-ack", "space/invite", "space/kick"),
        *("participant/pause", "participant/resume", "participant/status", "participant/request-status"),
        *("participant/forget", "participant/compact", "participant/compact-done", "participant/clear"),
        *("participant/restart", "participant/shutdown", "stream/request", "stream/open", "stream/close"),
        *("chat", "chat/acknowledge", "chat/cancel"),
        *("system/presence", "system/welcome", "system/error"),
    }
)
_NEEDED: Final = ("protocol", "id", "from", "kind")
_SNAKE_CASE: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def _sent(ctx: ParticipantContext) -> Iterator[tuple[Frame, dict[str, Any]]]:
    """Each envelope that it ever sent.

    Raises:
        NotOffered: it never sent any.
    """
    found = [
        (frame, frame.envelope)
        for frame in ctx.subject.frames
        if frame.way is FrameDirection.SENT and frame.envelope is not None
    ]
    if not found:
        raise NotOffered("the participant never sent an envelope")
    return iter(found)


@check("envelope.one-json-object")
async def each_frame_is_an_envelope(ctx: ParticipantContext) -> None:
    """Every text frame that is no stream frame is one JSON object with the fields of an envelope."""
    for frame in ctx.subject.frames:
        if frame.way is FrameDirection.SENT and stream_of(frame.data) is None:
            demand(not frame.fault, f"{frame.fault}: {frame.data[:200]!r}")
    for frame, envelope in _sent(ctx):
        missing = [name for name in _NEEDED if name not in envelope]
        demand(not missing, f"no `{'`, `'.join(missing)}` in {frame.data[:400]!r}")


@check("envelope.protocol")
async def each_envelope_names_the_protocol(ctx: ParticipantContext) -> None:
    """`protocol` of every envelope is exactly `mew/v0.4`."""
    for frame, envelope in _sent(ctx):
        demand(envelope.get("protocol") == "mew/v0.4", f"`protocol` is mew/v0.4: {frame.data[:400]!r}")


@check("envelope.id-unique")
async def each_envelope_has_its_own_id(ctx: ParticipantContext) -> None:
    """`id` is a non-empty string, and neither it nor anybody else has used it for another envelope."""
    seen: dict[Any, str | bytes] = {}
    for frame, envelope in _sent(ctx):
        own = envelope.get("id")
        demand(isinstance(own, str) and own, f"`id` is a non-empty string: {frame.data[:400]!r}")
        before = seen.setdefault(own, frame.data)
        again = before != frame.data  # after a lost connection the same envelope may be sent again
        demand(not again, f"two envelopes have the id {own!r}: {before[:300]!r} and {frame.data[:300]!r}")
    others = {
        (frame.envelope or {}).get("id"): frame
        for frame in ctx.subject.frames
        if frame.way is FrameDirection.SHOWN and (frame.envelope or {}).get("from") != ctx.subject.id
    }
    for frame, envelope in _sent(ctx):
        demand(envelope.get("id") not in others, f"this id was used by somebody else: {frame.data[:400]!r}")


@check("envelope.ts-rfc3339")
async def each_time_is_a_time(ctx: ParticipantContext) -> None:
    """`ts`, where there is one, is an RFC 3339 date and time with an offset."""
    for frame, envelope in _sent(ctx):
        if "ts" in envelope:
            demand(moment(envelope["ts"]), f"`ts` is no RFC 3339 time: {frame.data[:400]!r}")


@check("envelope.to-array")
async def each_to_is_an_array(ctx: ParticipantContext) -> None:
    """`to`, where there is one, is an array of strings."""
    for frame, envelope in _sent(ctx):
        demand(_are_strings(envelope.get("to", [])), f"`to` is an array of strings: {frame.data[:400]!r}")


@check("correlation.array")
async def each_correlation_is_an_array(ctx: ParticipantContext) -> None:
    """`correlation_id`, where there is one, is an array of strings."""
    for frame, envelope in _sent(ctx):
        named = envelope.get("correlation_id", [])
        demand(_are_strings(named), f"`correlation_id` is an array of strings: {frame.data[:400]!r}")


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)


@check("envelope.payload-object")
async def each_payload_is_an_object(ctx: ParticipantContext) -> None:
    """`payload`, where there is one, is a JSON object."""
    for frame, envelope in _sent(ctx):
        demand(isinstance(envelope.get("payload", {}), dict), f"`payload` is an object: {frame.data[:400]!r}")


@check("kind.vocabulary")
async def each_kind_is_written_as_it_is(ctx: ParticipantContext) -> None:
    """Each kind of the list is written exactly so, letter by letter."""
    plain = {re.sub(r"[^a-z]", "", kind): kind for kind in KINDS}
    for frame, envelope in _sent(ctx):
        kind = envelope.get("kind")
        demand(isinstance(kind, str) and kind, f"`kind` is a non-empty string: {frame.data[:400]!r}")
        meant = plain.get(re.sub(r"[^a-z]", "", str(kind).lower()), kind)
        demand(meant == kind, f"the kind is {meant}, not {kind!r}: {frame.data[:400]!r}")


@check("system.not-sent-by-participants")
async def nothing_is_said_as_the_gateway(ctx: ParticipantContext) -> None:
    """It never sends a kind that starts with `system/`."""
    for frame, envelope in _sent(ctx):
        kind = str(envelope.get("kind"))
        demand(not kind.startswith("system/"), f"{kind} is the gateway's to say: {frame.data[:400]!r}")


@check("mcp.method-in-payload")
async def a_method_is_in_the_payload(ctx: ParticipantContext) -> None:
    """MCP goes under the five `mcp/…` kinds, without a method in the kind; the method is `payload.method`."""
    needs_mcp(ctx)
    for frame, envelope in _sent(ctx):
        kind, payload = str(envelope.get("kind")), payload_of(envelope)
        demand(
            kind in KINDS or not kind.startswith("mcp"), f"there is no kind {kind!r}: {frame.data[:400]!r}"
        )
        if kind in ("mcp/request", "mcp/proposal"):
            method = payload.get("method")
            demand(isinstance(method, str) and method, f"{kind} has a `payload.method`: {frame.data[:400]!r}")
        elif kind == "mcp/response":
            demand("method" not in payload, f"a response has no method: {frame.data[:400]!r}")


@check("mcp.payload-unchanged")
async def payloads_are_json_rpc(ctx: ParticipantContext) -> None:
    """Requests and responses are JSON-RPC 2.0 as MCP has it, and a response has the `id` of its request."""
    needs_mcp(ctx)
    asked: dict[Any, Any] = {}
    for frame in ctx.subject.frames:
        envelope = frame.envelope or {}
        if frame.way is FrameDirection.SHOWN and envelope.get("kind") == "mcp/request":
            asked[envelope.get("id")] = payload_of(envelope).get("id")
        elif frame.way is FrameDirection.SENT and envelope.get("kind") == "mcp/request":
            _is_request(frame, payload_of(envelope))
        elif frame.way is FrameDirection.SENT and envelope.get("kind") == "mcp/response":
            _is_response(frame, payload_of(envelope))
            numbers = [asked[one] for one in causes(envelope) if one in asked]
            own = payload_of(envelope).get("id")
            same = not numbers or any(own == one and type(own) is type(one) for one in numbers)
            demand(same, f"the request has the id {numbers[:1]}, the response {own!r}: {frame.data[:400]!r}")


def _is_request(frame: Frame, payload: Any) -> None:
    demand(payload.get("jsonrpc") == "2.0", f'`jsonrpc` is "2.0": {frame.data[:400]!r}')
    demand(isinstance(payload.get("params", {}), dict), f"`params` is an object: {frame.data[:400]!r}")
    if "id" in payload:
        demand(_is_number(payload["id"]), f"`id` is a string or a number: {frame.data[:400]!r}")
    else:
        notes = str(payload.get("method")).startswith("notifications/")
        demand(notes, f"a request has an `id`, a notification none: {frame.data[:400]!r}")


def _is_response(frame: Frame, payload: Any) -> None:
    demand(payload.get("jsonrpc") == "2.0", f'`jsonrpc` is "2.0": {frame.data[:400]!r}')
    one = ("result" in payload) != ("error" in payload)
    demand(one, f"a response has either `result` or `error`: {frame.data[:400]!r}")
    if "error" in payload:
        error = payload["error"]
        whole = isinstance(error, dict) and isinstance(error.get("code"), int) and "message" in error
        demand(whole, f"an error has a `code` and a `message`: {frame.data[:400]!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


@check("status.snake-case")
async def metrics_are_named_in_snake_case(ctx: ParticipantContext) -> None:
    """Every key of every status that it sent is in snake_case."""
    for status in await some(ctx, "participant/status"):
        wrong = [key for key in payload_of(status) if not _SNAKE_CASE.fullmatch(key)]
        demand(not wrong, f"{wrong[0] if wrong else ''!r} is not in snake_case: {status}")


@check("status.proactive")
async def a_status_may_come_unasked(ctx: ParticipantContext) -> None:
    """A status that nobody asked for has no `correlation_id`, and all that every status has."""
    unasked = [e for e in every(ctx, "participant/status") if not causes(e)]
    if not unasked:
        raise NotOffered("the participant sent no status unasked")
    for status in unasked:
        demand("messages_in_context" in payload_of(status), f"a status lacks messages_in_context: {status}")


@check("status.broadcast")
async def a_status_may_go_to_all(ctx: ParticipantContext) -> None:
    """A status may be for everyone; where it names somebody, it is an array of participants."""
    broadcast = [e for e in await some(ctx, "participant/status") if not to_of(e)]
    if not broadcast:
        raise NotOffered("the participant sends each status to who asked")
    wrong = [e for e in broadcast if e.get("to", []) != []]
    demand(not wrong, f"to everyone is an empty `to`, or none: {wrong[:1]}")
