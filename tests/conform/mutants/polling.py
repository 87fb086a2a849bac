"""Gateways that show something else over HTTP."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import replace

from mew.gateway.history.query import HistoryQuery
from mew.gateway.http import schemas as shapes
from mew.gateway.http.schemas import MessagesPage, MessagesQuery
from mew.gateway.room import replies
from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.journal.port import Delivered
from mew.protocol.codec import encode
from mew.protocol.envelope import EnvelopeId
from mew.protocol.envelopes import Envelopes
from mew.space import Decision, Entry, RefusalDetails, Reply

from .breaks import Break, Mutant, replaced, wrapping
from .doors import afterwards, arriving

__all__ = ["MUTANTS"]


FETCHED: Final = "http_api.envelopes_can_be_fetched"
SINCE: Final = "http_api.since_says_from_when_on"
WHOLE: Final = "http_api.fetched_envelopes_are_whole"
PRIVATE: Final = "http_api.what_is_anothers_is_not_fetched"


def asking(change: Callable[[HistoryQuery], HistoryQuery]) -> Break:
    """Another question than was asked."""
    right = MessagesQuery.asked_by
    return replaced(MessagesQuery, "asked_by", lambda self, who: change(right(self, who)))


def unzoned(query: HistoryQuery) -> HistoryQuery:
    """Whatever the offset, it is read as UTC."""
    return query if query.since is None else replace(query, since=query.since.replace(tzinfo=UTC))


def reversed_in_time(query: HistoryQuery) -> HistoryQuery:
    return replace(query, since=None, until=query.since)


def listing(change: Callable[[dict[str, Any]], Any]) -> Break:
    """Other envelopes than were shown; changed in place, or left out where that comes to False."""

    def page(envelopes: list[Raw], *more: Any) -> MessagesPage:
        said = map(json.loads, map(bytes, envelopes))
        return MessagesPage(
            [Raw(json.dumps(one).encode()) for one in said if change(one) is not False], *more
        )

    return replaced(shapes, "MessagesPage", page)


def as_text(envelope: dict[str, Any]) -> None:
    payload = envelope["payload"]
    envelope["payload"] = {k: str(v) if isinstance(v, int) else v for k, v in payload.items()}


def keep(room: Room, raw: bytes) -> None:
    """In the history, for everyone."""
    ids = Envelopes.decode((raw,)).ids
    room.history.append(Delivered(room.space.seq, datetime.now(UTC), ids, (raw,)), len(raw))


def keeping_errors(
    right: Any,
    room: Room,
    connection: RoomConnection,
    refused: RefusalDetails,
    envelope_id: EnvelopeId | None = None,
    kind: str = "",
) -> None:
    right(room, connection, refused, envelope_id, kind)
    now, who = datetime.now(UTC), connection.who
    keep(room, encode(replies.error(now, who, room.space, refused, envelope_id=envelope_id, kind=kind)))


def keeping_answers(room: Room, entry: Entry, decision: Decision) -> None:
    """Welcomes are kept as well."""
    if isinstance(decision, Reply):
        keep(room, encode(decision.envelope))


def keeping_refused(room: Room, connection: RoomConnection, text: bytes) -> bytes:
    if b"mcp/request" in text:
        keep(room, text)
    return text


MUTANTS: Final = (
    Mutant("http.polling-offered", FETCHED, listing(lambda one: False), "is not fetched: []"),
    Mutant(
        "http.polling-offered",
        FETCHED,
        replaced(shapes, "MessagesPage", lambda *_: {"messages": "none"}),
        "no list of envelopes",
    ),
    Mutant(
        "http.since",
        SINCE,
        asking(lambda query: replace(query, since=None)),
        "what was sent before is fetched",
    ),
    Mutant("http.since", SINCE, asking(unzoned), "since"),
    Mutant("http.since", SINCE, asking(reversed_in_time), "0 of 3 sent since"),
    Mutant(
        "http.complete-envelopes", WHOLE, listing(lambda one: one.pop("extra", None)), "with another extra"
    ),
    Mutant(
        "http.complete-envelopes",
        WHOLE,
        listing(lambda one: one.pop("payload", None)),
        "with another payload",
    ),
    Mutant("http.complete-envelopes", WHOLE, listing(lambda one: one.update(at="now")), "with another at"),
    Mutant("http.complete-envelopes", WHOLE, listing(as_text), "with another payload"),
    Mutant(
        "http.complete-envelopes",
        WHOLE,
        listing(lambda one: "to" not in one),
        "is not among what peer fetched",
    ),
    Mutant(
        "http.unseen-omitted",
        PRIVATE,
        wrapping(Room, "reject", keeping_errors),
        "peer fetched what it was not shown",
    ),
    Mutant("http.unseen-omitted", PRIVATE, afterwards(keeping_answers), "fetched the welcome of reader"),
    Mutant("http.unseen-omitted", PRIVATE, arriving(keeping_refused), "fetched an envelope that was refused"),
)
