"""Streams that a participant opens, writes and closes (§3.10)."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.match import causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import every, some
from mew.conform.participant.subject import Frame, FrameDirection, stream_of

Envelope = dict[str, Any]
_GATEWAYS: Final = {"stream/request", "stream/open", "stream/close"}
_METADATA: Final = {"encoding": "binary", "compression": "none", "conform_extra": {"a": [1, None]}}


def _frames(ctx: ParticipantContext, since: int = 0) -> list[Frame]:
    """The stream frames that it sent."""
    return [
        frame
        for frame in ctx.subject.frames[since:]
        if frame.way is FrameDirection.SENT and stream_of(frame.data) is not None
    ]


def _id_of(opened: Mapping[str, Any]) -> str:
    return str(payload_of(opened).get("stream_id"))


def _opened(ctx: ParticipantContext, since: int = 0) -> list[Envelope]:
    """Each `stream/open` that answers a request of its own."""
    requests = [e.get("id") for e in every(ctx, "stream/request")]
    shown = ctx.subject.was_shown(is_kind("stream/open"), since=since)
    return [
        frame.envelope
        for frame in shown
        if frame.envelope is not None and any(one in requests for one in causes(frame.envelope))
    ]


def _closes(opened: Mapping[str, Any]) -> Any:
    """It closes this stream, however it names it."""
    return lambda e: (
        e.get("kind") == "stream/close"
        and (opened["id"] in causes(e) or payload_of(e).get("stream_id") == _id_of(opened))
    )


async def _streamed(ctx: ParticipantContext, times: int = 1) -> list[Envelope]:
    """Have it stream something; the streams that were opened for it, each waited for until it is closed.

    Raises:
        NotOffered: it streams nothing.
    """
    since = ctx.subject.place
    for _ in range(times):
        await ctx.prompt("stream")
    if await ctx.expect_optional(is_kind("stream/request"), since=since) is None:
        raise NotOffered("the prompt 'stream' does not make the participant ask for a stream")
    await ctx.barrier()
    await ctx.subject.wait(lambda: len(_opened(ctx, since)) >= times or None, ctx.config.timeout_s)
    for opened in _opened(ctx, since):
        await ctx.expect_optional(_closes(opened), since=since)
    return _opened(ctx, since)


async def _poured(ctx: ParticipantContext) -> Envelope:
    """A stream that it writes to without an end, with a frame at least."""
    since = ctx.subject.place
    await ctx.prompt("pour")
    await ctx.subject.wait(lambda: _frames(ctx, since) or None, ctx.config.timeout_s)
    opened = _opened(ctx, since)
    if not opened or not _frames(ctx, since):
        raise NotOffered("the prompt 'pour' does not make the participant write to a stream")
    return opened[0]


async def _close(ctx: ParticipantContext, opened: Mapping[str, Any]) -> None:
    """The gateway closes it, as far as the participant is shown."""
    await ctx.show(
        "stream/close",
        {"stream_id": _id_of(opened), "reason": "cancelled"},
        correlation_id=[opened["id"]],
        **{"from": "system:gateway"},
    )


@check("stream.direction")
async def a_stream_has_a_direction(ctx: ParticipantContext) -> None:
    """A `stream/request` says in `payload.direction` whether it will `upload` or `download`."""
    for envelope in await some(ctx, "stream/request", "stream"):
        direction = payload_of(envelope).get("direction")
        demand(direction in ("upload", "download"), f"`direction` is upload or download: {envelope}")


@check("stream.size-omitted")
async def a_size_is_a_number_or_left_out(ctx: ParticipantContext) -> None:
    """`expected_size_bytes` is a number of bytes, or left out."""
    for envelope in await some(ctx, "stream/request", "stream"):
        size = payload_of(envelope).get("expected_size_bytes", 0)
        number = isinstance(size, int) and not isinstance(size, bool) and size >= 0
        demand(number, f"`expected_size_bytes` is a number of bytes: {envelope}")


@check("stream.request-correlates")
async def a_stream_may_say_what_it_is_for(ctx: ParticipantContext) -> None:
    """A `stream/request` may name in `correlation_id` what it is for: something that there was."""
    named = [e for e in await some(ctx, "stream/request", "stream") if causes(e)]
    if not named:
        raise NotOffered("the participant's stream requests name nothing in `correlation_id`")
    known = {(frame.envelope or {}).get("id") for frame in ctx.subject.frames}
    for envelope in named:
        demand(known.issuperset(causes(envelope)), f"it names what there never was: {envelope}")


@check("stream.metadata")
async def more_about_a_stream_upsets_nothing(ctx: ParticipantContext) -> None:
    """A `stream/open` with `encoding`, `compression` and what nobody knows is coped with."""

    def more(envelope: Envelope) -> Envelope:
        if envelope.get("kind") != "stream/open":
            return envelope
        return {**envelope, "payload": {**payload_of(envelope), **_METADATA}}

    ctx.subject.rewrite = more
    since = ctx.subject.place
    for opened in await _streamed(ctx):
        written = [frame for frame in _frames(ctx, since) if _names(frame) == _id_of(opened)]
        demand(written, f"nothing was written to the stream that was opened with {_METADATA}")


def _names(frame: Frame) -> str:
    parts = stream_of(frame.data)
    return "" if parts is None else parts[0]


@check("stream.same-socket")
async def data_travels_bare(ctx: ParticipantContext) -> None:
    """What it streams comes as bare frames on the WebSocket of its envelopes, not in envelopes."""
    since = ctx.subject.place
    opened = await _streamed(ctx)
    demand(opened, "its stream/request was not answered")
    wrapped = ctx.said(lambda e: _is_data(e, {_id_of(one) for one in opened}), since=since)
    demand(not wrapped, f"data of a stream travels without an envelope: {wrapped[:1]}")
    demand(_frames(ctx, since), "it opened a stream, and no frame of it came over the WebSocket")


def _is_data(envelope: Mapping[str, Any], streams: set[str]) -> bool:
    kind, payload = str(envelope.get("kind")), payload_of(envelope)
    about_it = payload.get("stream_id") in streams and kind not in _GATEWAYS
    return about_it and any(name in payload for name in ("data", "chunk", "content", "bytes"))


@check("stream.frame-prefix")
async def a_frame_begins_with_its_stream(ctx: ParticipantContext) -> None:
    """Each frame is `#`, the id of a stream that was opened, `#`, and the data."""
    await _streamed(ctx)
    known: set[str] = set()
    for frame in ctx.subject.frames:
        if frame.way is FrameDirection.SHOWN:
            known |= _streams_in(frame.envelope or {})
            continue
        if frame.envelope is None and frame.fault and frame.data[:1] in ("#", b"#"):
            demand(False, f"a stream frame is #stream id#data: {frame.data[:80]!r}")  # noqa: FBT003
        if stream_of(frame.data) is not None:
            demand(
                _names(frame) in known, f"this is the frame of no stream that was opened: {frame.data[:80]!r}"
            )


def _streams_in(envelope: Mapping[str, Any]) -> set[str]:
    payload = payload_of(envelope)
    if envelope.get("kind") == "stream/open":
        return {str(payload.get("stream_id"))}
    active = payload.get("active_streams") if envelope.get("kind") == "system/welcome" else None
    return {str(one.get("stream_id")) for one in active or () if isinstance(one, dict)}


@check("stream.boundaries")
async def streams_can_be_told_apart(ctx: ParticipantContext) -> None:
    """Of several streams at once, each has frames under its own id, and none after its close."""
    since = ctx.subject.place
    opened = await _streamed(ctx, 2)
    if len(opened) < 2:
        raise NotOffered("the participant does not open several streams")
    written = {_names(frame) for frame in _frames(ctx, since)}
    empty = [_id_of(one) for one in opened if _id_of(one) not in written]
    demand(not empty, f"of the streams {[_id_of(one) for one in opened]}, no frame is under {empty}")
    glued = [frame for frame in _frames(ctx, since) if _glued(frame, opened)]
    demand(not glued, f"two frames in one: {glued[0].data[:120] if glued else b''!r}")


def _glued(frame: Frame, opened: list[Envelope]) -> bool:
    parts = stream_of(frame.data)
    return parts is not None and any(f"#{_id_of(one)}#".encode() in parts[1] for one in opened)


@check("stream.close-correlates")
async def a_close_names_the_open(ctx: ParticipantContext) -> None:
    """A `stream/close` names the `stream/open` of its stream in `correlation_id`."""
    await _streamed(ctx)
    opens = {(frame.envelope or {}).get("id") for frame in ctx.subject.was_shown(is_kind("stream/open"))}
    for envelope in await some(ctx, "stream/close"):
        demand(opens.intersection(causes(envelope)), f"it names no stream/open: {envelope}")


@check("stream.close-either-side")
async def a_close_of_the_gateway_is_the_end(ctx: ParticipantContext) -> None:
    """It closes what it opened, and takes a `stream/close` of the gateway as the end."""
    if "pour" not in ctx.test_run.prompts.said:
        for opened in await _streamed(ctx):
            await ctx.expect(_closes(opened), f"stream/close for {_id_of(opened)}")
        return
    opened = await _poured(ctx)
    await _close(ctx, opened)
    await ctx.barrier()
    await _silent(ctx, opened, "the gateway closed the stream, and it goes on writing")


async def _silent(ctx: ParticipantContext, opened: Mapping[str, Any], why: str) -> None:
    """No frame of this stream comes from here on."""
    since = ctx.subject.place
    await ctx.barrier()
    await ctx.barrier()
    late = [frame for frame in _frames(ctx, since) if _names(frame) == _id_of(opened)]
    demand(not late, f"{why}: {late[0].data[:80] if late else b''!r}")


@check("stream.close-reason")
async def a_close_says_how_it_ended(ctx: ParticipantContext) -> None:
    """A `stream/close` has a reason, and not the same for a stream that failed as for one that is complete."""
    for envelope in await _closed(ctx, "stream"):
        reason = payload_of(envelope).get("reason")
        demand(isinstance(reason, str) and reason, f"a stream/close says how it ended: {envelope}")
    if "spill" in ctx.test_run.prompts.said:
        complete = {payload_of(e).get("reason") for e in await _closed(ctx, "stream")}
        failed = {payload_of(e).get("reason") for e in await _closed(ctx, "spill")}
        same = complete.intersection(failed)
        demand(not same, f"a stream that failed and one that is complete are both closed with {same}")
    for envelope in every(ctx, "stream/close"):
        demand(payload_of(envelope).get("reason"), f"a stream/close says how it ended: {envelope}")


async def _closed(ctx: ParticipantContext, prompt: str) -> list[Envelope]:
    """The `stream/close` of what it streams when prompted so."""
    since = ctx.subject.place
    await ctx.prompt(prompt)
    await ctx.expect_optional(is_kind("stream/close"), since=since)
    await ctx.barrier()
    found = ctx.said(is_kind("stream/close"), since=since)
    if not found:
        raise NotOffered(f"the prompt {prompt!r} does not make the participant close a stream")
    return found


@check("stream.closed-is-silent")
async def nothing_is_written_after_a_close(ctx: ParticipantContext) -> None:
    """After a stream is closed, by it or by the gateway, it sends no frame with its id."""
    await _streamed(ctx)
    if "pour" in ctx.test_run.prompts.said:
        opened = await _poured(ctx)
        await _close(ctx, opened)
        await ctx.barrier()
        await _silent(ctx, opened, "the stream is closed, and it goes on writing")
    closed: set[str] = set()
    by_open: dict[Any, str] = {}
    for frame in ctx.subject.frames:
        envelope = frame.envelope or {}
        if envelope.get("kind") == "stream/open":
            by_open[envelope.get("id")] = _id_of(envelope)
        elif frame.way is FrameDirection.SENT and envelope.get("kind") == "stream/close":
            closed |= {str(payload_of(envelope).get("stream_id"))}
            closed |= {by_open[one] for one in causes(envelope) if one in by_open}
        elif frame.way is FrameDirection.SENT and stream_of(frame.data) is not None:
            demand(_names(frame) not in closed, f"this came after its stream was closed: {frame.data[:80]!r}")
