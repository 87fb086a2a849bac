"""An entry as it is kept: it comes back as it was, and the chain shows what was done to it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import groupby

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.journal.journals import batch, decided, entries
from tests.space.table import Table, capabilities, envelope_of

from mew.journal.record import (
    ChainBreak,
    ChainLink,
    Record,
    RecordRow,
    find_break,
    genesis_link,
    is_indexed,
    join_record,
    pack,
    read_header,
    split_record,
    to_microseconds,
    unpack,
)
from mew.protocol.capability import Capability
from mew.protocol.envelope import GATEWAY, EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.space import (
    NEVER_JUDGED,
    Audiences,
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    RefusalDetails,
    Refuse,
    Rules,
    Sent,
    TimePassed,
    Violated,
)

START = genesis_link("desk")

# Entries, and what a space could decide of them.

moments = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5.5))]))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
people = st.sampled_from([ParticipantId(name) for name in ("ann", "bob", "zoe@x.org", "Ω")])
connections = st.builds(ConnectionId, texts)
held = st.sampled_from(
    [Capability.parse(one) for one in ("chat", {"kind": "mcp/*", "except": ["mcp/request"]})]
)
holdings = st.lists(held, max_size=2).map(tuple)
audiences = st.none() | st.lists(people, max_size=3, unique=True).map(tuple)

others: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Configured,
        st.builds(
            Rules,
            id=texts,
            profiles=st.dictionaries(people, holdings, max_size=2),
            baseline=holdings,
            delivery=st.sampled_from(["everyone", "addressed"]),
            streams_max=st.integers(0, 300),
        ),
        texts,
    ),
    st.builds(Identified, people, st.none() | holdings),
    st.builds(Joined, people, connections, st.none() | st.booleans()),
    st.builds(Left, connections),
    st.builds(Violated, people, st.builds(EnvelopeId, texts), texts, st.sampled_from(Refusal), texts),
    st.just(TimePassed()),
)


@st.composite
def envelopes(draw: st.DrawFn, senders: st.SearchStrategy[str] = people, count_max: int = 5) -> Envelopes:
    found = Envelopes((), (), (), (), (), ())
    for _ in range(draw(st.integers(1, count_max))):
        fields: dict[str, object] = {"id": draw(texts)}  # lenient senders use one twice
        if draw(st.booleans()):
            fields["to"] = draw(st.lists(people, max_size=3))
        if draw(st.booleans()):
            fields["correlation_id"] = draw(st.lists(texts, max_size=2))
        made = envelope_of(draw(senders), draw(texts), draw(st.none() | st.just({"text": "x"})), **fields)
        found = found.joined(Envelopes.of(*made))
    return found


@st.composite
def batches(draw: st.DrawFn) -> tuple[Sent, list[Decision], tuple[int, ...]]:
    """A batch, what became of its envelopes, and the places of those that were refused."""
    several = draw(envelopes())
    origins = draw(
        st.lists(st.none() | connections, min_size=len(several), max_size=len(several)).map(tuple)
        | st.just((ConnectionId("c1"),) * len(several))
    )
    judged_at = draw(st.sampled_from([NEVER_JUDGED, 0, 1 << 40]))
    sent = Sent(several, origins, judged_at, draw(st.booleans()), draw(st.sampled_from(["", "abc"])))
    are_refused = draw(st.lists(st.booleans(), min_size=len(several), max_size=len(several)))
    addressed = draw(st.booleans())
    decisions: list[Decision] = []
    place = 0
    for is_refused, group in groupby(are_refused):
        end = place + len(list(group))
        if is_refused:
            decisions += [refusal_of(several, at) for at in range(place, end)]
        else:
            part = several.part(place, end)
            decisions.append(Deliver(part, addressees(part) if addressed else None))
        place = end
    return sent, decisions, tuple(place for place, refused in enumerate(are_refused) if refused)


def refusal_of(several: Envelopes, place: int) -> Refuse:
    who, envelope_id = ParticipantId(several.senders[place]), EnvelopeId(several.ids[place])
    return Refuse(who, envelope_id, several.kinds[place], RefusalDetails(Refusal.PAUSED, "not now"))


def addressees(several: Envelopes) -> Audiences:
    pairs = zip(several.to, several.senders, strict=True)
    return tuple([tuple(map(ParticipantId, dict.fromkeys((*to, who)))) if to else None for to, who in pairs])


@st.composite
def notices(draw: st.DrawFn) -> list[Decision]:
    """What the gateway makes because of an entry."""
    made: list[Decision] = []
    for _ in range(draw(st.integers(0, 3))):
        several = draw(envelopes(st.just(GATEWAY), 2))
        only = draw(st.none() | st.lists(audiences, min_size=len(several), max_size=len(several)).map(tuple))
        made.append(Deliver(several, only))
    return made


def packed(entry: Entry, decisions: list[Decision], before: bytes = START.hash) -> bytes:
    body, _ = pack(entry, to_microseconds(entry.at), decisions, before)
    return body


def shown(decisions: list[Decision]) -> list[tuple[str, bytes, tuple[ParticipantId, ...] | None]]:
    """Each envelope delivered, in order, and whom it was for."""
    found: list[tuple[str, bytes, tuple[ParticipantId, ...] | None]] = []
    for decision in decisions:
        if isinstance(decision, Deliver):
            several, only = decision.envelopes, decision.only or (None,) * len(decision.envelopes)
            found += zip(several.ids, several.raws, only, strict=True)
    return found


def shown_again(record: Record) -> list[tuple[str, bytes, tuple[ParticipantId, ...] | None]]:
    found = record.delivered
    assert (found.seq, found.at, found.start) == (record.entry.seq, record.entry.at, 0)
    return list(zip(found.ids, found.raws, found.only or (None,) * len(found.ids), strict=True))


# What comes back.


@given(st.integers(1, 1 << 60), moments, others, notices())
def test_every_event_comes_back_with_what_was_made_of_it(
    seq: int, at: datetime, event: Event, made: list[Decision]
) -> None:
    entry = Entry(seq, at, event)
    record = unpack(packed(entry, made))
    assert record.entry == entry
    assert record.refused == ()
    assert shown_again(record) == shown(made)


@given(st.integers(1, 1 << 60), moments, batches(), notices())
def test_a_batch_comes_back_with_what_was_refused_of_it_and_what_was_made_of_it(
    seq: int, at: datetime, sent: tuple[Sent, list[Decision], tuple[int, ...]], made: list[Decision]
) -> None:
    event, decisions, refused = sent
    entry = Entry(seq, at, event, len(event.envelopes))
    body = packed(entry, [*decisions, *made])
    record = unpack(body)
    assert record.entry == entry
    assert record.refused == refused
    assert shown_again(record) == shown([*decisions, *made])
    assert read_header(body).last == entry.last


def test_what_a_space_delivers_is_read_back_without_it() -> None:
    rules = Rules(
        id="desk",
        profiles={ParticipantId("ann"): capabilities(["*"])},
        delivery="addressed",
        announce_violations=True,
    )
    table = Table(rules)
    table.join("ann")
    table.send("ann", "space/invite", {"participant_id": "bob", "initial_capabilities": [{"kind": "chat"}]})
    table.join("bob")
    table.send("ann", "capability/grant", {"recipient": "bob", "capabilities": [{"kind": "stream/*"}]})
    table.send("bob", "chat", {"text": "hi"}, to=["ann"])
    table.send("bob", "space/kick", {"participant_id": "ann"})
    table.send("bob", "stream/request", {"direction": "upload"}, to=["ann"])
    table.send("ann", "participant/pause", {"timeout_seconds": 5}, to=["bob"])
    table.send("bob", "chat", {"text": "too early"})
    table.wait(6)
    table.send("ann", "space/kick", {"participant_id": "bob"})
    kinds: set[str] = set()
    for entry, decisions in zip(table.entries, table.decided, strict=True):
        record = unpack(packed(entry, decisions))
        assert shown_again(record) == shown(decisions)
        kinds.update(Envelopes.decode(record.delivered.raws).kinds)
    assert kinds >= {"system/presence", "system/error", "stream/open", "chat", "space/kick"}


@given(batches(), notices())
def test_what_was_taken_apart_is_put_together_again_to_the_byte(
    sent: tuple[Sent, list[Decision], tuple[int, ...]], made: list[Decision]
) -> None:
    event, decisions, _ = sent
    body = packed(
        Entry(7, datetime(2026, 1, 1, tzinfo=UTC), event, len(event.envelopes)), [*decisions, *made]
    )
    parts = split_record(body)
    assert parts.raws == (*event.envelopes.raws, *(raw for _, raw, _ in shown(made)))
    assert join_record(*parts) == body


@given(st.binary(max_size=200))
def test_no_bytes_unpack_to_anything_but_a_record_or_a_value_error(body: bytes) -> None:
    read_or_refuse(body)


@given(st.data())
def test_no_spoilt_record_unpacks_to_anything_but_a_record_or_a_value_error(data: st.DataObject) -> None:
    event, decisions, _ = data.draw(batches())
    made = data.draw(notices())
    entry = Entry(7, datetime(2026, 1, 1, tzinfo=UTC), event, len(event.envelopes))
    body = bytearray(packed(entry, [*decisions, *made]))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read_or_refuse(bytes(body))
    read_or_refuse(bytes(body[: data.draw(st.integers(0, len(body)))]))


def read_or_refuse(body: bytes) -> None:
    try:
        record = unpack(body)
        assert isinstance(record, Record)
        assert record.delivered.seq == record.entry.seq
    except ValueError:
        pass


def test_only_accepted_talk_that_led_to_nothing_is_left_to_the_journal_alone() -> None:
    def batch_of(*kinds: str) -> Entry:
        several = Envelopes((), (), (), (), (), ())
        for place, kind in enumerate(kinds):
            several = several.joined(Envelopes.of(*envelope_of("ann", kind, id=f"e{place}")))
        sent = Sent(several, (None,) * len(several))
        return Entry(1, datetime(2026, 1, 1, tzinfo=UTC), sent, len(several))

    notice = Deliver(Envelopes.of(*envelope_of(GATEWAY, "system/error", id="g1")))
    talk, work = batch_of("chat", "reasoning/thought", "chat"), batch_of("chat", "mcp/request")
    assert isinstance(talk.event, Sent)
    assert not is_indexed(talk, decided(talk))
    assert not is_indexed(talk, decided(talk))
    assert is_indexed(talk, [*decided(talk), notice])
    assert is_indexed(talk, [refusal_of(talk.event.envelopes, 0)])
    assert is_indexed(work, decided(work))
    assert is_indexed(entries(1, 1)[0], [])


# The chain.


def rows(*written: Entry, after: ChainLink = START) -> list[RecordRow]:
    """As a database has them."""
    found: list[RecordRow] = []
    for entry in written:
        body, digest = pack(entry, to_microseconds(entry.at), decided(entry), after.hash)
        found.append(RecordRow(len(found) + 1, entry.last, to_microseconds(entry.at), body, digest))
        after = ChainLink(entry.last, digest)
    return found


def first_break(found: list[RecordRow], after: ChainLink = START) -> ChainBreak | None:
    for row in found:
        broken = find_break(row, after)
        if broken is not None:
            return broken
        after = ChainLink(row.last, row.hash)
    return None


CHAIN = (*entries(1, 2), batch(3, 6), *entries(7, 8))


def test_a_chain_that_was_left_alone_is_whole() -> None:
    whole = rows(*CHAIN)
    assert first_break(whole) is None
    assert first_break(whole[2:], ChainLink(2, whole[1].hash)) is None


def altered(row: RecordRow) -> RecordRow:
    return row._replace(body=row.body[:-1] + bytes([row.body[-1] ^ 1]))


def hashed_anew(row: RecordRow, entry: Entry, before: RecordRow) -> RecordRow:
    (anew,) = rows(entry, after=ChainLink(before.last, before.hash))
    return anew._replace(n=row.n)


DONE: dict[str, tuple[Callable[[list[RecordRow]], list[RecordRow]], int, str]] = {
    "one is altered": (lambda found: [found[0], altered(found[1]), *found[2:]], 2, "entry 2 is not what"),
    "one of a batch is altered": (
        lambda found: [*found[:2], altered(found[2]), *found[3:]],
        3,
        "one of the entries 3 to 6 is not what was written",
    ),
    "a hash is altered": (
        lambda found: [found[0], found[1]._replace(hash=bytes(32)), *found[2:]],
        2,
        "entry 2 is not what was written",
    ),
    "a number is altered": (
        lambda found: [found[0], found[1]._replace(last=9), *found[2:]],
        2,
        "entry 2 is not where it was written, but as entry 9",
    ),
    "a moment is altered": (
        lambda found: [found[0], found[1]._replace(at=found[1].at + 1), *found[2:]],
        2,
        "entry 2 is not what was written: the moment beside it is another",
    ),
    "one is altered and hashed anew": (
        lambda found: [found[0], hashed_anew(found[1], batch(2, 2), found[0]), *found[2:]],
        3,
        "one of the entries 3 to 6 is not what was written",
    ),
    "a batch loses its last": (
        lambda found: [*found[:2], hashed_anew(found[2], batch(3, 5), found[1]), *found[3:]],
        6,
        "entry 6 is missing, the next one is 7",
    ),
    "one is removed": (lambda found: [*found[:2], *found[3:]], 3, "entry 3 is missing, the next one is 7"),
    "the first is removed": (lambda found: found[1:], 1, "entry 1 is missing"),
    "one is put in": (lambda found: [*found[:2], found[1], *found[2:]], 3, "entry 3 is missing"),
    "two are exchanged": (lambda found: [found[1], found[0], *found[2:]], 1, "entry 1 is missing"),
    "one is cut off": (
        lambda found: [found[0], found[1]._replace(body=found[1].body[:20]), *found[2:]],
        2,
        "entry 2 is not what was written: a record breaks off",
    ),
}


@pytest.mark.parametrize("what", DONE)
def test_what_is_done_to_a_chain_is_found_where_it_was_done(what: str) -> None:
    spoil, seq, why = DONE[what]
    found = first_break(spoil(rows(*CHAIN)))
    assert found is not None
    assert found.seq == seq
    assert found.why.startswith(why)


@given(st.integers(0, 4), st.integers(0, 10_000), st.integers(1, 255))
@example(2, 0, 1)
def test_no_byte_can_be_changed_unnoticed(which: int, place: int, change: int) -> None:
    found = rows(*CHAIN)
    body = bytearray(found[which].body)
    body[place % len(body)] ^= change
    found[which] = found[which]._replace(body=bytes(body))
    broken = first_break(found)
    assert broken is not None
    assert broken.seq == (1, 2, 3, 7, 8)[which]


def test_a_chain_belongs_to_its_space() -> None:
    assert find_break(rows(*CHAIN)[0], genesis_link("other")) is not None
