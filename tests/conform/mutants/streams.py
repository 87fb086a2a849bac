"""Gateways that open and close streams wrongly."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind
from mew.space import RefusalDetails, streams

from .breaks import Break, Mutant, Said, of, replaced, ruled, shown, wrapping
from .deciding import altered, changed, doubled, dropped, refusing
from .doors import show

__all__ = ["MUTANTS"]


REQUEST, OPEN, CLOSE = Kind.STREAM_REQUEST, Kind.STREAM_OPEN, Kind.STREAM_CLOSE


def opening(change: Callable[[Said], object]) -> Break:
    return changed(shown(OPEN), change)


def closing(change: Callable[[Said], object]) -> Break:
    """What the gateway itself says when it closes a stream."""
    return changed(lambda said: said["kind"] == CLOSE and said["from"] == "system:gateway", change)


def numbered(number: Callable[[str, int], object]) -> Break:
    """Another stream id: made from whose it is, and how many that one was given before."""
    given: Counter[str] = Counter()

    def change(said: Said) -> None:
        who = said["to"][0]
        said["payload"]["stream_id"] = f"stream-{number(who, given[who])}"
        given[who] += 1

    return opening(change)


def the_id_that_was_asked_for() -> Break:
    wanted: dict[str, str] = {}

    def alter(said: Said) -> list[Said]:
        if said["kind"] == REQUEST and "stream_id" in said["payload"]:
            wanted[said["id"]] = said["payload"]["stream_id"]
        if said["kind"] == OPEN and said["correlation_id"][0] in wanted:
            said["payload"]["stream_id"] = wanted[said["correlation_id"][0]]
        return [said]

    return altered(alter)


def the_cause_of_the_request() -> Break:
    causes: dict[str, list[str]] = {}

    def alter(said: Said) -> list[Said]:
        if said["kind"] == REQUEST and said.get("correlation_id"):
            causes[said["id"]] = said["correlation_id"]
        if said["kind"] == OPEN and said["correlation_id"][0] in causes:
            said["correlation_id"] = causes[said["correlation_id"][0]]
        return [said]

    return altered(alter)


def opened_though_refused(
    right: Any, room: Room, connection: RoomConnection, refused: RefusalDetails, *what: Any
) -> None:
    right(room, connection, refused, *what)
    if REQUEST in what:
        opened = {"kind": OPEN, "from": "gateway", "correlation_id": [what[0]]}
        show(room, encode_json({**opened, "payload": {"stream_id": "s"}}), (connection.id,))


def nothing(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    return []


def close_all_of_its_owner(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    for stream in [one for one in state.streams.values() if one.owner == sent.who]:
        del state.streams[stream.id]
    return []


def to_everyone(state: Any, at: Any, writer: Any, stream_id: str) -> streams.FrameRoute:
    """Frames go to everyone, whatever stream they are of."""
    return streams.FrameRoute(None)


def named_by_id_alone(state: Any, at: Any, envelope: Any, asked: Any) -> Any:
    if asked.stream_id is UNSET:
        return RefusalDetails(Refusal.UNKNOWN_STREAM, "which stream?")
    return streams.check_close(state, at, envelope, asked)


def ignored_without_id(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    return [] if asked.stream_id is UNSET else streams.close(state, entry, sent, asked)


ANSWERED = "streams.a_request_is_answered_with_a_stream"
ADDRESSED = "streams.a_stream_is_opened_whomever_the_request_names"
CORRELATED = "streams.a_stream_open_says_what_and_whom_it_is_for"
GONE = "streams.a_closed_stream_is_gone"

EVERY = "streams.every_request_is_answered"

MUTANTS = (
    Mutant(
        "stream.opened",
        EVERY,
        refusing(lambda e: e.kind == REQUEST and "direction" not in e.content),
        "a stream/request was refused",
    ),
    Mutant("stream.opened", ANSWERED, dropped(shown(OPEN)), "a stream/open for its stream/request"),
    Mutant("stream.opened", ANSWERED, doubled(shown(OPEN)), "was answered with 2 stream/open"),
    Mutant(
        "stream.opened", ANSWERED, opening(lambda said: said.update({"from": said["to"][0]})), "from 'owner'"
    ),
    Mutant("stream.opened", ANSWERED, opening(lambda said: said["payload"].pop("stream_id")), "has None"),
    Mutant(
        "stream.opened",
        ANSWERED,
        opening(lambda said: said["payload"].update(stream_id="a#b")),
        "can stand between two '#'",
    ),
    Mutant(
        "stream.opened",
        ANSWERED,
        numbered(lambda who, given: f"{who}-{given % 4}"),
        "another stream did that is open",
    ),
    Mutant(
        "stream.opened",
        ANSWERED,
        wrapping(Room, "reject", opened_though_refused),
        "refused and answered with a stream/open",
    ),
    Mutant(
        "stream.opened",
        ANSWERED,
        refusing(lambda e: e.kind == REQUEST and e.content["direction"] == "download"),
        "a stream/request was refused",
    ),
    Mutant(
        "stream.any-addressee",
        ADDRESSED,
        refusing(lambda e: e.kind == REQUEST and e.to != ("gateway",)),
        "a stream/request was refused",
    ),
    Mutant(
        "stream.any-addressee",
        ADDRESSED,
        refusing(lambda e: e.kind == REQUEST and not e.to),
        "a stream/request was refused",
    ),
    Mutant("stream.any-addressee", ADDRESSED, the_id_that_was_asked_for(), "the gateway took the stream id"),
    Mutant(
        "stream.id-unique",
        "streams.streams_that_are_open_together_have_ids_of_their_own",
        numbered(lambda who, given: given),
        "have the id 'stream-0'",
    ),
    Mutant(
        "stream.id-unique",
        "streams.streams_that_are_open_together_have_ids_of_their_own",
        numbered(lambda who, given: f"{who}-{given % 5}"),
        "have the id 'stream-owner-0'",
    ),
    Mutant(
        "stream.open-correlates", CORRELATED, opening(lambda said: said.pop("correlation_id")), "it is None"
    ),
    Mutant(
        "stream.open-correlates",
        CORRELATED,
        opening(lambda said: said.update(to=["owner", "peer"])),
        "is the requester",
    ),
    Mutant("stream.open-correlates", CORRELATED, opening(lambda said: said.pop("to")), "is the requester"),
    Mutant(
        "stream.metadata",
        "streams.a_stream_open_may_say_more",
        opening(lambda said: said["payload"].update(encoding=1)),
        "encoding of a stream/open is a word",
    ),
    Mutant(
        "stream.metadata",
        "streams.a_stream_open_may_say_more",
        opening(lambda said: said["payload"].update(compression=None)),
        "compression of a stream/open is a word",
    ),
    Mutant(
        "stream.request-correlates",
        "streams.a_stream_request_may_say_what_it_is_for",
        refusing(lambda e: e.kind == REQUEST and len(e.correlation_id) > 1),
        "a stream/request was refused",
    ),
    Mutant(
        "stream.request-correlates",
        "streams.a_stream_request_may_say_what_it_is_for",
        the_cause_of_the_request(),
        "a stream/open for its stream/request",
    ),
    Mutant("stream.close-terminates", GONE, ruled(CLOSE, act=nothing), "which was closed"),
    Mutant("stream.close-terminates", GONE, replaced(streams, "route", to_everyone), "must reach no one"),
    Mutant("stream.close-terminates", GONE, ruled(CLOSE, act=close_all_of_its_owner), "of owner, bare"),
    Mutant(
        "stream.close-correlates",
        "streams.a_close_may_name_the_stream_by_its_open",
        ruled(CLOSE, check=named_by_id_alone),
        "the gateway refused it",
    ),
    Mutant(
        "stream.close-correlates",
        "streams.a_close_may_name_the_stream_by_its_open",
        ruled(CLOSE, act=ignored_without_id),
        "must reach no one",
    ),
    Mutant(
        "stream.close-correlates",
        "streams.the_gateway_names_the_stream_that_it_closes",
        closing(lambda said: said.pop("correlation_id")),
        "and names None",
    ),
    Mutant(
        "stream.close-either-side",
        "streams.who_asked_for_a_stream_may_close_it",
        refusing(of(CLOSE)),
        "the gateway refused it",
    ),
    Mutant(
        "stream.close-either-side",
        "streams.who_asked_for_a_stream_may_close_it",
        dropped(shown(CLOSE)),
        "the stream/close",
    ),
    Mutant(
        "stream.close-either-side",
        "streams.the_gateway_may_close_a_stream",
        closing(lambda said: said["payload"].update(stream_id="stream-0")),
        "'stream-0' was closed",
    ),
    Mutant(
        "stream.close-reason",
        "streams.the_reason_of_a_close_is_passed_on",
        changed(shown(CLOSE), lambda said: said["payload"].update(reason="closed")),
        "with another payload",
    ),
    Mutant(
        "stream.close-reason",
        "streams.the_gateway_says_why_it_closes_a_stream",
        closing(lambda said: said["payload"].pop("reason")),
        "gives no reason",
    ),
    Mutant(
        "stream.close-reason",
        "streams.the_gateway_says_why_it_closes_a_stream",
        closing(lambda said: said["payload"].update(reason="Complete")),
        "it is closed as 'Complete'",
    ),
)
