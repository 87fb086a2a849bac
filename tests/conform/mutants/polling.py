"""Gateways that show something else over HTTP."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec import Raw
from msgspec.structs import replace

from mew.gateway import answers, http
from mew.gateway.pages import Query, Record
from mew.gateway.room import Room
from mew.gateway.shapes import MessagesQuery
from mew.protocol.codec import decode, encode
from mew.protocol.envelope import Envelope
from mew.space import Answer, Invite

from .breaks import Break, Mutant, replaced

__all__ = ["MUTANTS"]


FETCHED: Final = "polling.envelopes_can_be_fetched"
SINCE: Final = "polling.since_says_from_when_on"
WHOLE: Final = "polling.fetched_envelopes_are_whole"
PRIVATE: Final = "polling.what_is_anothers_is_not_fetched"


def asking(change: Callable[[Query], Query]) -> Break:
    """Another question than was asked."""
    right = MessagesQuery.asked_by
    return replaced(MessagesQuery, "asked_by", lambda self, who: change(right(self, who)))


def unzoned(query: Query) -> Query:
    """Whatever the offset, it is read as UTC."""
    return query if query.since is None else replace(query, since=query.since.replace(tzinfo=UTC))


def reversed_in_time(query: Query) -> Query:
    return replace(query, since=None, until=query.since)


def listing(change: Callable[[dict[str, Any]], Any]) -> Break:
    """Other envelopes than were shown; changed in place, or left out where that comes to False."""

    def raw(page: Any) -> list[Raw]:
        envelopes = [json.loads(record.raw) for record in page.records]
        return [Raw(json.dumps(one).encode()) for one in envelopes if change(one) is not False]

    return replaced(http, "_raw", raw)


def as_text(envelope: dict[str, Any]) -> None:
    payload = envelope["payload"]
    envelope["payload"] = {k: str(v) if isinstance(v, int) else v for k, v in payload.items()}


def keeping(room: Room, envelope: Envelope) -> None:
    """In the history, for everyone."""
    room.history.append(Record.of(envelope, encode(envelope), at=datetime.now(UTC), seq=room.space.seq))


def keeping_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Room._refuse

    def refuse(room: Room, who: Any, connection: Any, refused: Any, envelope_id: Any, kind: str) -> None:
        right(room, who, connection, refused, envelope_id, kind)
        now = room._shell.now()
        told = answers.error(now, who, room.space, refused, envelope_id=envelope_id, kind=kind)
        keeping(room, told)

    monkeypatch.setattr(Room, "_refuse", refuse)


def keeping_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Welcomes, and the answers to invitations."""
    right = Room._carry_out

    def carry_out(room: Room, entry: Any, decision: Any) -> None:
        if isinstance(decision, Answer):
            keeping(room, decision.envelope)
        elif isinstance(decision, Invite) and (ack := room._invitations.ack(entry, decision)) is not None:
            keeping(room, ack)
        right(room, entry, decision)

    monkeypatch.setattr(Room, "_carry_out", carry_out)


def keeping_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Room._take_envelope

    def receive(room: Room, guest: Any, received: bytes) -> None:
        if b"mcp/request" in received:
            keeping(room, decode(received))
        right(room, guest, received)

    monkeypatch.setattr(Room, "_take_envelope", receive)


MUTANTS: Final = (
    Mutant("http.polling-offered", FETCHED, listing(lambda one: False), "is not fetched: []"),
    Mutant(
        "http.polling-offered", FETCHED, replaced(http, "_raw", lambda page: "none"), "no list of envelopes"
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
    Mutant("http.unseen-omitted", PRIVATE, keeping_errors, "peer fetched what it was not shown"),
    Mutant("http.unseen-omitted", PRIVATE, keeping_answers, "fetched the welcome of reader"),
    Mutant("http.unseen-omitted", PRIVATE, keeping_refused, "fetched an envelope that was refused"),
)
