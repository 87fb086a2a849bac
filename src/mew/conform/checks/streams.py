"""How a stream is asked for, opened and closed (§3.10.1, §3.10.2, §3.10.4); its frames are in frames.py."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.guests import somebody
from mew.conform.matching import answers, is_kind
from mew.conform.passing import arrive, shown
from mew.conform.refusing import refused, unheard
from mew.conform.sayings import CHAT, fresh
from mew.conform.stage import Stage
from mew.conform.streaming import Stream, open_of, opened
from mew.conform.verdicts import NotOffered, Violation, demand
from mew.conform.wire import Actor

_DONE: Final = frozenset({"complete", "completed", "done", "finished", "normal", "ok", "success"})


@check("stream.opened")
async def a_request_is_answered_with_a_stream(stage: Stage) -> None:
    """Every stream/request is answered by the gateway, once, with a stream id that no open stream has."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    people = {owner.id, peer.id, listener.id}
    ids: set[str] = set()
    for turn in range(4):
        for actor, direction in ((owner, "upload"), (peer, "upload"), (owner, "download")):
            stream = await opened(stage, actor, direction=direction, description="Large dataset export")
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
            await stage.settle(actor, listener)
            await stage.settle(listener, actor)
            times = _times_opened(actor, stream.request)
            demand(times < 2, f"a stream/request was answered with {times} stream/open")
    forbidden = await listener.send("stream/request", {"direction": "upload"}, to=["gateway"])
    await refused(stage, listener, forbidden, owner)
    demand(
        not _times_opened(listener, forbidden),
        "a stream/request was refused and answered with a stream/open all the same",
    )


def _times_opened(actor: Actor, request: Mapping[str, Any]) -> int:
    return len(actor.heard(lambda e: e.get("kind") == "stream/open" and answers(e, request)))


@check("stream.any-addressee")
async def a_stream_is_opened_whomever_the_request_names(stage: Stage) -> None:
    """The gateway opens a stream with `to` gateway, another, several, nobody or no `to`, and under an id of its own."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for to in (["gateway"], [peer.id], [peer.id, listener.id], ["nobody-of-this-name"], [], ...):
        stream = await opened(stage, owner, to=to)
        wish = fresh()
        for wanted in (wish, stream.id):
            again = await opened(stage, owner, to=to, stream_id=wanted)
            demand(again.id != wanted, f"the gateway took the stream id {wanted!r} from the request")


@check("stream.id-unique")
async def streams_that_are_open_together_have_ids_of_their_own(stage: Stage) -> None:
    """Streams asked for at the same time, by one and by several, have different ids."""
    actors = await stage.enter_all("owner", "peer")
    asked = [
        (actor, await actor.send("stream/request", {"direction": "upload"}, to=["gateway"]))
        for _ in range(8)
        for actor in actors
    ]
    owners: dict[str, str] = {}
    for actor, request in asked:
        stream = await open_of(stage, actor, request)
        demand(
            stream.id not in owners,
            f"two open streams, of {owners.get(stream.id)} and of {actor.name}, have the id {stream.id!r}",
        )
        owners[stream.id] = actor.name


@check("stream.open-correlates")
async def a_stream_open_says_what_and_whom_it_is_for(stage: Stage) -> None:
    """A stream/open names the request in `correlation_id`, and the requester, and nobody else, in `to`."""
    actors = await stage.enter_all("owner", "peer")
    asked = [
        (actor, await actor.send("stream/request", {"direction": "upload", "description": text}))
        for text in ("first", "second")
        for actor in actors
    ]
    for actor, request in asked:
        stream = await open_of(stage, actor, request)
        causes, to = stream.opened.get("correlation_id"), stream.opened.get("to")
        demand(
            answers(stream.opened, request),
            f"correlation_id of a stream/open names the request, {request['id']!r}; it is {causes!r}",
        )
        demand(to == [actor.id], f"`to` of a stream/open is the requester, {[actor.id]}; it is {to!r}")


@check("stream.opened")
async def every_request_is_answered(stage: Stage) -> None:
    """A `stream/request` that leaves out what it may, or says more than is known, is answered like any other."""
    owner, peer = await stage.enter_all("owner", "peer")
    payloads: tuple[Any, ...] = (
        {},
        ...,
        {"description": "notes"},
        {"direction": "download"},
        {"x-more": [1]},
    )
    for payload in payloads:
        for actor in (owner, peer):
            sent = await actor.send("stream/request", payload, to=["gateway"])
            await open_of(stage, actor, sent)


@check("stream.metadata")
async def a_stream_open_may_say_more(stage: Stage) -> None:
    """What a stream/open says beside the stream id, such as its encoding, is well-formed."""
    owner = await stage.enter("owner")
    more = False
    for request in ({}, {"encoding": "text"}, {"compression": "gzip", "encoding": "binary"}):
        stream = await opened(stage, owner, **request)
        payload = stream.opened["payload"]
        more |= len(payload) > 1
        for name in ("encoding", "compression"):
            said = payload.get(name, "none")
            demand(isinstance(said, str) and said, f"{name} of a stream/open is a word; it is {said!r}")
    if not more:
        raise NotOffered("a stream/open of this gateway says the stream id and no more")


@check("stream.request-correlates")
async def a_stream_request_may_say_what_it_is_for(stage: Stage) -> None:
    """A stream is opened for a request that names a proposal, something unknown, several, or nothing."""
    owner, peer = await stage.enter_all("owner", "peer")
    proposal = await peer.send("mcp/proposal", {"method": "tools/list"})
    await shown(proposal, owner)
    for causes in ([proposal["id"]], ["unheard-of"], [proposal["id"], "unheard-of"], [], ...):
        for actor in (owner, peer):
            stream = await opened(stage, actor, correlation_id=causes)
            demand(
                not stream.opened.get("correlation_id") or answers(stream.opened, stream.request),
                f"a stream/open names {stream.opened.get('correlation_id')!r}, not the request that it answers",
            )


async def _ended(stage: Stage, stream: Stream, *hearers: Actor) -> None:
    """Of what its writer sends on a closed stream nothing reaches anyone."""
    mark = fresh()
    await stream.write(mark)
    await stream.write(mark.encode())
    await unheard(stage, stream.actor, mark, f"a frame of the closed stream {stream.id}", *hearers)


@check("stream.close-terminates")
async def a_closed_stream_is_gone(stage: Stage) -> None:
    """A closed stream is in no welcome, and its frames reach no one; one beside it goes on, whoever else leaves."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    doomed, lasting = await opened(stage, owner), await opened(stage, owner)
    await doomed.carries("one", peer, listener)
    closing = await doomed.close()
    await arrive(stage, owner, [closing], peer, listener)
    await lasting.carries("two", peer, listener)
    newcomer = await stage.enter("proposer")
    demand(
        doomed.id not in _values(newcomer.welcome),
        f"the welcome of a newcomer has the stream {doomed.id!r}, which was closed",
    )
    await stage.rejoin(newcomer)
    await lasting.carries("three", peer, listener)
    await _ended(stage, doomed, peer, listener, newcomer)


def _values(json: Any) -> list[Any]:
    if isinstance(json, dict):
        return [value for one in json.values() for value in _values(one)]
    if isinstance(json, list):
        return [value for one in json for value in _values(one)]
    return [json]


@check("stream.close-correlates")
async def a_close_may_name_the_stream_by_its_open(stage: Stage) -> None:
    """A stream/close that names the stream/open in `correlation_id`, as §3.10.4 shows it, closes that stream."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    other, stream = await opened(stage, owner), await opened(stage, owner)
    closing = await owner.send(
        "stream/close", {"reason": "complete"}, to=[peer.id], correlation_id=[stream.opened["id"]]
    )
    await arrive(stage, owner, [closing], peer)
    await other.carries("this goes on", peer, listener)
    await _ended(stage, stream, peer, listener)


@check("stream.close-either-side")
async def who_asked_for_a_stream_may_close_it(stage: Stage) -> None:
    """A stream/close from who asked for the stream is accepted and shown to the others, frames or none."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for actor, others in ((owner, (peer, listener)), (peer, (owner, listener))):
        for frames in (0, 2):
            stream = await opened(stage, actor)
            for number in range(frames):
                await stream.carries(f"frame {number}", *others)
            await arrive(stage, actor, [await stream.close()], *others)
            await _ended(stage, stream, *others)


@check("stream.close-reason")
async def the_reason_of_a_close_is_passed_on(stage: Stage) -> None:
    """The reason that a stream/close gives reaches the others in its own words."""
    owner, peer = await stage.enter_all("owner", "peer")
    for reason in ("complete", "cancelled", "timeout", "error: disk full", "vendor:voll 🐱"):
        stream = await opened(stage, owner)
        await arrive(stage, owner, [await stream.close(reason)], peer)


async def _left_behind(stage: Stage) -> tuple[Stream, dict[str, Any]]:
    """A stream whose owner broke off, and the stream/close with which the gateway ends it.

    Raises:
        NotOffered: it ends none.
    """
    peer = await stage.enter("peer")
    guest = await somebody(stage, CHAT, {"kind": "stream/*"})
    stream = await opened(stage, guest)
    await stage.settle(guest, peer)
    guest.cut()
    try:
        closed = await peer.hear(is_kind("stream/close"), "a stream/close of the gateway")
    except Violation as error:
        raise NotOffered("the gateway closes no stream whose owner is gone") from error
    return stream, closed


@check("stream.close-correlates")
async def the_gateway_names_the_stream_that_it_closes(stage: Stage) -> None:
    """A stream/close of the gateway names the stream/open in `correlation_id`."""
    stream, closed = await _left_behind(stage)
    demand(
        answers(closed, stream.opened),
        f"the gateway closes a stream whose stream/open is {stream.opened['id']!r}, "
        f"and names {closed.get('correlation_id')!r}",
    )


@check("stream.close-either-side")
async def the_gateway_may_close_a_stream(stage: Stage) -> None:
    """A stream/close of the gateway is its own word, about the stream that it ends and no other."""
    other = await opened(stage, await stage.enter("owner"))
    stream, closed = await _left_behind(stage)
    demand(closed.get("from") != stream.actor.id, "a stream/close was made in the name of one who is gone")
    named = (closed.get("payload") or {}).get("stream_id", stream.id)
    demand(named == stream.id, f"the owner of stream {stream.id!r} is gone, and {named!r} was closed")
    await other.carries("this goes on", await stage.enter("peer"))


@check("stream.close-reason")
async def the_gateway_says_why_it_closes_a_stream(stage: Stage) -> None:
    """A stream/close of the gateway says in `reason` why, and that of an interrupted stream is no completion."""
    _, closed = await _left_behind(stage)
    reason = (closed.get("payload") or {}).get("reason")
    demand(isinstance(reason, str) and reason, f"a stream/close of the gateway gives no reason: {closed}")
    demand(
        str(reason).lower() not in _DONE, f"the owner of a stream broke off, and it is closed as {reason!r}"
    )
