"""Streams: asked for, opened and closed, and their frames (§3.10)."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import CHAT, unique_word
from mew.conform.expectations import expect_delivered, expect_refused, expect_shown, expect_unheard
from mew.conform.fixtures import OpenStream, in_bytes, open_of, opened, somebody
from mew.conform.match import answers, is_id, is_kind
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.runner import check

_DONE: Final = frozenset({"complete", "completed", "done", "finished", "normal", "ok", "success"})


@check("stream.opened")
async def a_request_is_answered_with_a_stream(ctx: CheckContext) -> None:
    """Every stream/request is answered by the gateway, once, with a stream id that no open stream has."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    people = {owner.id, peer.id, listener.id}
    ids: set[str] = set()
    for turn in range(4):
        for client, direction in ((owner, "upload"), (peer, "upload"), (owner, "download")):
            stream = await opened(ctx, client, direction=direction, description="Large dataset export")
            sender = stream.opened.get("from")
            demand(sender not in people, f"a stream/open comes from the gateway, this one from {sender!r}")
            demand(
                stream.id not in ids,
                f"a stream/open names {stream.id!r}, as one for another stream did that is open",
            )
            ids.add(stream.id)
            if turn % 2:
                await stream.close()  # and its id may be given again (§3.10.2)
                ids.remove(stream.id)
            await ctx.barrier(client, listener)
            await ctx.barrier(listener, client)
            times = _times_opened(client, stream.request)
            demand(times < 2, f"a stream/request was answered with {times} stream/open")
    forbidden = await listener.send("stream/request", {"direction": "upload"}, to=["gateway"])
    await expect_refused(ctx, listener, forbidden, owner)
    demand(
        not _times_opened(listener, forbidden),
        "a stream/request was refused and answered with a stream/open all the same",
    )


def _times_opened(client: ScriptedClient, request: Mapping[str, Any]) -> int:
    return len(client.matching(lambda e: e.get("kind") == "stream/open" and answers(e, request)))


@check("stream.any-addressee")
async def a_stream_is_opened_whomever_the_request_names(ctx: CheckContext) -> None:
    """The gateway opens a stream with `to` gateway, another, several, nobody or no `to`, and under an id of its own."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for to in (["gateway"], [peer.id], [peer.id, listener.id], ["nobody-of-this-name"], [], ...):
        stream = await opened(ctx, owner, to=to)
        wish = unique_word()
        for wanted in (wish, stream.id):
            again = await opened(ctx, owner, to=to, stream_id=wanted)
            demand(again.id != wanted, f"the gateway took the stream id {wanted!r} from the request")


@check("stream.id-unique")
async def streams_that_are_open_together_have_ids_of_their_own(ctx: CheckContext) -> None:
    """Streams asked for at the same time, by one and by several, have different ids."""
    actors = await ctx.clients("owner", "peer")
    asked = [
        (client, await client.send("stream/request", {"direction": "upload"}, to=["gateway"]))
        for _ in range(8)
        for client in actors
    ]
    owners: dict[str, str] = {}
    for client, request in asked:
        stream = await open_of(ctx, client, request)
        demand(
            stream.id not in owners,
            f"two open streams, of {owners.get(stream.id)} and of {client.name}, have the id {stream.id!r}",
        )
        owners[stream.id] = client.name


@check("stream.open-correlates")
async def a_stream_open_says_what_and_whom_it_is_for(ctx: CheckContext) -> None:
    """A stream/open names the request in `correlation_id`, and the requester, and nobody else, in `to`."""
    actors = await ctx.clients("owner", "peer")
    asked = [
        (client, await client.send("stream/request", {"direction": "upload", "description": text}))
        for text in ("first", "second")
        for client in actors
    ]
    for client, request in asked:
        stream = await open_of(ctx, client, request)
        causes, to = stream.opened.get("correlation_id"), stream.opened.get("to")
        demand(
            answers(stream.opened, request),
            f"correlation_id of a stream/open names the request, {request['id']!r}; it is {causes!r}",
        )
        demand(to == [client.id], f"`to` of a stream/open is the requester, {[client.id]}; it is {to!r}")


@check("stream.opened")
async def every_request_is_answered(ctx: CheckContext) -> None:
    """A `stream/request` that leaves out what it may, or says more than is known, is answered like any other."""
    owner, peer = await ctx.clients("owner", "peer")
    payloads: tuple[Any, ...] = (
        {},
        ...,
        {"description": "notes"},
        {"direction": "download"},
        {"x-more": [1]},
    )
    for payload in payloads:
        for client in (owner, peer):
            sent = await client.send("stream/request", payload, to=["gateway"])
            await open_of(ctx, client, sent)


@check("stream.metadata")
async def a_stream_open_may_say_more(ctx: CheckContext) -> None:
    """What a stream/open says beside the stream id, such as its encoding, is well-formed."""
    owner = await ctx.client("owner")
    more = False
    for request in ({}, {"encoding": "text"}, {"compression": "gzip", "encoding": "binary"}):
        stream = await opened(ctx, owner, **request)
        payload = stream.opened["payload"]
        more |= len(payload) > 1
        for name in ("encoding", "compression"):
            said = payload.get(name, "none")
            demand(isinstance(said, str) and said, f"{name} of a stream/open is a word; it is {said!r}")
    if not more:
        raise NotOffered("a stream/open of this gateway says the stream id and no more")


@check("stream.request-correlates")
async def a_stream_request_may_say_what_it_is_for(ctx: CheckContext) -> None:
    """A stream is opened for a request that names a proposal, something unknown, several, or nothing."""
    owner, peer = await ctx.clients("owner", "peer")
    proposal = await peer.send("mcp/proposal", {"method": "tools/list"})
    await expect_shown(proposal, owner)
    for causes in ([proposal["id"]], ["unheard-of"], [proposal["id"], "unheard-of"], [], ...):
        for client in (owner, peer):
            stream = await opened(ctx, client, correlation_id=causes)
            demand(
                not stream.opened.get("correlation_id") or answers(stream.opened, stream.request),
                f"a stream/open names {stream.opened.get('correlation_id')!r}, not the request that it answers",
            )


async def _ended(ctx: CheckContext, stream: OpenStream, *receivers: ScriptedClient) -> None:
    """Of what its writer sends on a closed stream nothing reaches anyone."""
    mark = unique_word()
    await stream.write(mark)
    await stream.write(mark.encode())
    await expect_unheard(ctx, stream.client, mark, f"a frame of the closed stream {stream.id}", *receivers)


@check("stream.close-terminates")
async def a_closed_stream_is_gone(ctx: CheckContext) -> None:
    """A closed stream is in no welcome, and its frames reach no one; one beside it goes on, whoever else leaves."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    closing_soon, lasting = await opened(ctx, owner), await opened(ctx, owner)
    await closing_soon.carries("one", peer, listener)
    closing = await closing_soon.close()
    await expect_delivered(ctx, owner, [closing], peer, listener)
    await lasting.carries("two", peer, listener)
    newcomer = await ctx.client("proposer")
    demand(
        closing_soon.id not in _values(newcomer.welcome),
        f"the welcome of a newcomer has the stream {closing_soon.id!r}, which was closed",
    )
    await ctx.rejoin(newcomer)
    await lasting.carries("three", peer, listener)
    await _ended(ctx, closing_soon, peer, listener, newcomer)


def _values(json: Any) -> list[Any]:
    if isinstance(json, dict):
        return [value for one in json.values() for value in _values(one)]
    if isinstance(json, list):
        return [value for one in json for value in _values(one)]
    return [json]


@check("stream.close-correlates")
async def a_close_may_name_the_stream_by_its_open(ctx: CheckContext) -> None:
    """A stream/close that names the stream/open in `correlation_id`, as §3.10.4 shows it, closes that stream."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    other, stream = await opened(ctx, owner), await opened(ctx, owner)
    closing = await owner.send(
        "stream/close", {"reason": "complete"}, to=[peer.id], correlation_id=[stream.opened["id"]]
    )
    await expect_delivered(ctx, owner, [closing], peer)
    await other.carries("this goes on", peer, listener)
    await _ended(ctx, stream, peer, listener)


@check("stream.close-either-side")
async def who_asked_for_a_stream_may_close_it(ctx: CheckContext) -> None:
    """A stream/close from who asked for the stream is accepted and shown to the others, frames or none."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for client, others in ((owner, (peer, listener)), (peer, (owner, listener))):
        for frames in (0, 2):
            stream = await opened(ctx, client)
            for number in range(frames):
                await stream.carries(f"frame {number}", *others)
            await expect_delivered(ctx, client, [await stream.close()], *others)
            await _ended(ctx, stream, *others)


@check("stream.close-reason")
async def the_reason_of_a_close_is_passed_on(ctx: CheckContext) -> None:
    """The reason that a stream/close gives reaches the others in its own words."""
    owner, peer = await ctx.clients("owner", "peer")
    for reason in ("complete", "cancelled", "timeout", "error: disk full", "vendor:voll 🐱"):
        stream = await opened(ctx, owner)
        await expect_delivered(ctx, owner, [await stream.close(reason)], peer)


async def _left_behind(ctx: CheckContext) -> tuple[OpenStream, dict[str, Any]]:
    """A stream whose owner broke off, and the stream/close with which the gateway ends it.

    Raises:
        NotOffered: it ends none.
    """
    peer = await ctx.client("peer")
    guest = await somebody(ctx, CHAT, {"kind": "stream/*"})
    stream = await opened(ctx, guest)
    await ctx.barrier(guest, peer)
    guest.abort()
    try:
        closed = await peer.expect(is_kind("stream/close"), "a stream/close of the gateway")
    except Violation as error:
        raise NotOffered("the gateway closes no stream whose owner is gone") from error
    return stream, closed


@check("stream.close-correlates")
async def the_gateway_names_the_stream_that_it_closes(ctx: CheckContext) -> None:
    """A stream/close of the gateway names the stream/open in `correlation_id`."""
    stream, closed = await _left_behind(ctx)
    demand(
        answers(closed, stream.opened),
        f"the gateway closes a stream whose stream/open is {stream.opened['id']!r}, "
        f"and names {closed.get('correlation_id')!r}",
    )


@check("stream.close-either-side")
async def the_gateway_may_close_a_stream(ctx: CheckContext) -> None:
    """A stream/close of the gateway is its own word, about the stream that it ends and no other."""
    other = await opened(ctx, await ctx.client("owner"))
    stream, closed = await _left_behind(ctx)
    demand(closed.get("from") != stream.client.id, "a stream/close was made in the name of one who is gone")
    named = (closed.get("payload") or {}).get("stream_id", stream.id)
    demand(named == stream.id, f"the owner of stream {stream.id!r} is gone, and {named!r} was closed")
    await other.carries("this goes on", await ctx.client("peer"))


@check("stream.close-reason")
async def the_gateway_says_why_it_closes_a_stream(ctx: CheckContext) -> None:
    """A stream/close of the gateway says in `reason` why, and that of an interrupted stream is no completion."""
    _, closed = await _left_behind(ctx)
    reason = (closed.get("payload") or {}).get("reason")
    demand(isinstance(reason, str) and reason, f"a stream/close of the gateway gives no reason: {closed}")
    demand(
        str(reason).lower() not in _DONE, f"the owner of a stream broke off, and it is closed as {reason!r}"
    )


_LARGE_BYTES: Final = 200_000


@check("stream.same-socket")
async def frames_travel_bare_and_whole(ctx: CheckContext) -> None:
    """Frames, text and binary, small and large, reach the others beside the envelopes, with every byte."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    looks_like_one = '{"protocol": "mew/v0.4", "id": "x", "from": "owner", "kind": "chat", "payload": {}}'
    for writer, others in ((owner, (peer, listener)), (peer, (owner, listener))):
        stream = await opened(ctx, writer)
        frames: list[str | bytes] = [
            "plain",
            "zu spät \u2028 \x00 🐱",
            looks_like_one,
            bytes(range(256)),
            b"\xff\xfe\x00#",
            looks_like_one.encode(),
            "x" * _LARGE_BYTES,
            bytes(range(256)) * (_LARGE_BYTES // 256),
        ]
        for data in frames:
            await stream.carries(data, *others)
        await ctx.barrier(writer, *others)
        for receiver in others:
            fakes = receiver.matching(is_id("x"))
            demand(not fakes, f"{receiver.name} received a frame as an envelope: {fakes[:1]}")
            times = len(stream.received_by(receiver))
            demand(times == len(frames), f"{receiver.name} received {times} frames of {len(frames)}")


@check("stream.binary-unchanged")
async def a_binary_frame_stays_binary(ctx: CheckContext) -> None:
    """A binary frame is received as a binary frame of the same bytes, text or not."""
    owner, peer = await ctx.clients("owner", "peer")
    stream = await opened(ctx, owner)
    for data in (bytes(range(256)), b"\xff\xfe", b"\xef\xbb\xbfmark", b"plain", b"\x00"):
        await stream.carries(data, peer)
        came_as = type(peer.frames[-1])
        demand(came_as is bytes, f"the binary frame {stream.frame(data)[:80]!r} came to {peer.name} as text")


@check("stream.frame-prefix")
async def a_frame_is_told_by_its_prefix(ctx: CheckContext) -> None:
    """What follows `#id#` is data whatever it is, `#` or nothing; what begins otherwise belongs to no stream."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    stream = await opened(ctx, owner)
    texts = ("", "#", "##", "a#b", "#a#b#", f"#{stream.id}#", " ", "\n", "\t x ", "{}", "é")
    for data in texts:
        await stream.carries(data, peer, listener)
        await stream.carries(data.encode(), peer, listener)
    mark = unique_word()
    other_case = {stream.id.upper(), stream.id.lower(), stream.id.swapcase()} - {stream.id}
    near = (f"{stream.id}x", stream.id[:-1], f" {stream.id}", "", unique_word(), "*", *sorted(other_case))
    for prefix in (f"#{name}#" for name in near):
        for frame in (f"{prefix}{mark}", f"{prefix}{mark}".encode()):
            if isinstance(frame, str):
                await owner.send_text(frame)
            else:
                await owner.send_binary(frame)
            await expect_unheard(ctx, owner, mark, f"a frame of no open stream, {prefix}…,", peer, listener)


@check("stream.boundaries")
async def frames_keep_their_boundaries_and_order(ctx: CheckContext) -> None:
    """Of several streams at once each frame is received once, neither joined nor split, in the order of its stream."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    streams = [await opened(ctx, writer) for writer in (owner, owner, peer)]
    written: dict[str, list[bytes]] = {stream.id: [] for stream in streams}
    for number in range(24):
        for place, stream in enumerate(streams):
            size = (0, 1, 125, 126, 1000, 70_000)[(number + place) % 6]
            data = b"%d:%d:" % (number, place) + b"." * size if size else b""
            await stream.write(data if number % 2 else data.decode())
            written[stream.id].append(data)
    for stream in streams:
        await stream.write(b"last")
        written[stream.id].append(b"last")
        for receiver in (owner, peer, listener):
            if receiver is not stream.client:
                await _the_same(ctx, stream, receiver, written[stream.id])


async def _the_same(
    ctx: CheckContext, stream: OpenStream, receiver: ScriptedClient, written: list[bytes]
) -> None:
    await stream.reaches(written[-1], receiver)
    await ctx.barrier(stream.client, receiver)
    received = stream.received_by(receiver)
    if received == written:
        return
    if sorted(received) == sorted(written):
        wrong = "in another order"
    elif b"".join(received) == b"".join(written):
        wrong = "joined or split"
    else:
        wrong = "not each once and as it was"
    sizes = f"{[len(data) for data in written]} bytes were sent, {[len(data) for data in received]} came"
    raise Violation(f"{receiver.name} received the frames of stream {stream.id} {wrong}: {sizes}")


@check("stream.size-omitted")
async def the_expected_size_binds_nobody(ctx: CheckContext) -> None:
    """A stream is opened without `expected_size_bytes`, and with it carries more, fewer or as many bytes."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for expected in (
        {},
        {"expected_size_bytes": 0},
        {"expected_size_bytes": 10},
        {"expected_size_bytes": 10**12},
    ):
        stream = await opened(ctx, owner, **expected)
        for data in (b"", b"0123456789", b"and more than was announced", "x" * 5000):
            await stream.carries(data, peer, listener)
        await stream.close()


@check("stream.closed-is-silent")
async def nothing_follows_the_close(ctx: CheckContext) -> None:
    """What was written before a close arrives before it; what is written after it, at once or later, never does."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for writer, others in ((owner, (peer, listener)), (peer, (owner, listener))):
        stream = await opened(ctx, writer)
        of_another = {
            receiver: len(stream.received_by(receiver)) for receiver in others
        }  # that had this id before
        before = [b"before %d" % number for number in range(5)]
        for data in before:
            await stream.write(data)
        closing = await stream.close()
        mark = unique_word()
        for late in (mark, mark.encode(), "", b""):
            await stream.write(late)
        await expect_unheard(
            ctx, writer, mark, f"a frame written after stream {stream.id} was closed", *others
        )
        for receiver in others:
            _silent_after(receiver, stream, closing["id"])
            received = stream.received_by(receiver)[of_another[receiver] :]
            demand(
                received == before,
                f"{receiver.name} received {received} of a stream on which {before} was written before the close",
            )


def _silent_after(receiver: ScriptedClient, stream: OpenStream, closing_id: str) -> None:
    closed, start = False, in_bytes(stream.frame(b""))
    for one in receiver.in_order:
        if isinstance(one, dict):
            closed |= one.get("id") == closing_id
        else:
            demand(
                not closed or not in_bytes(one).startswith(start),
                f"{receiver.name} received the stream/close of {stream.id}, and after it the frame {one[:80]!r}",
            )
