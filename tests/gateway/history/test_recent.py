"""What was delivered last: kept within bounds, found again by cursor, filter and correlation."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.gateway.history.past import naive
from tests.space.table import envelope_of

from mew.gateway.history.correlation import CorrelationIndex
from mew.gateway.history.query import (
    PAGE_BYTES_MAX,
    DeliveredEnvelope,
    HistoryPage,
    HistoryQuery,
    envelopes_in,
)
from mew.gateway.history.recent import RecentHistory
from mew.journal.port import Delivered
from mew.protocol.capability import Capability
from mew.protocol.envelope import EnvelopeId, ParticipantId

START = datetime(2026, 1, 1, tzinfo=UTC)
ANN, BOT = ParticipantId("ann"), ParticipantId("bot")
OVERHEAD = 256  # what an envelope counts beside its bytes


def made(
    name: str,
    *,
    sender: str = "ann",
    kind: str = "chat",
    about: tuple[str, ...] = (),
    size: int = 0,
) -> bytes:
    fields = {"correlation_id": about} if about else {}
    return envelope_of(sender, kind, {"text": "x" * size}, id=name, **fields)[1]


def entry(
    number: int,
    *raws: bytes,
    only: tuple[tuple[ParticipantId, ...] | None, ...] | None = None,
    start: int = 0,
    seq: int | None = None,
) -> Delivered:
    """What one entry delivered; without envelopes it is a chat `e{number}`."""
    raws = raws or (made(f"e{number}"),)
    delivered = Delivered(
        number + 1 if seq is None else seq, START + timedelta(seconds=number), (), raws, only, start
    )
    return replace(delivered, ids=delivered.envelopes.ids)


def history_of(
    *entries: Delivered, envelopes_max: int = 100, bytes_max: int = 1 << 30, life: str = ""
) -> RecentHistory:
    history = RecentHistory(envelopes_max, bytes_max, life=life)
    for each in entries:
        add(history, each)
    return history


def add(history: RecentHistory, delivered: Delivered) -> None:
    history.append(delivered, sum(map(len, delivered.raws)))


def ids(page: HistoryPage | Iterable[DeliveredEnvelope]) -> list[str]:
    return [each.id for each in (page.envelopes if isinstance(page, HistoryPage) else page)]


def chats(count: int) -> list[Delivered]:
    return [entry(n) for n in range(count)]


# Bounds.


def test_the_oldest_go_first_when_there_are_too_many_or_too_large() -> None:
    many = history_of(*chats(5), envelopes_max=3)
    assert ids(many) == ["e2", "e3", "e4"]
    weight = len(made("e0")) + OVERHEAD
    large = history_of(*chats(5), bytes_max=3 * weight - 1)
    assert (ids(large), large.bytes) == (["e3", "e4"], 2 * weight)
    assert not large.knows("e2")
    assert large.knows("e3")


def test_one_that_is_larger_than_the_bound_is_not_kept() -> None:
    history = history_of(*chats(2), entry(2, made("large", size=5_000)), bytes_max=5_000)
    assert (ids(history), history.bytes, history.evicted) == ([], 0, 3)
    add(history, entry(3))
    assert ids(history) == ["e3"]


def test_a_history_of_nothing_keeps_nothing() -> None:
    history = history_of(*chats(3), envelopes_max=0)
    assert (ids(history), history.evicted, history.reaches_back_to(None)) == ([], 3, False)


def test_narrower_bounds_hold_at_once_and_wider_ones_bring_nothing_back() -> None:
    history = history_of(*chats(6))
    history.resize(2, 1 << 30)
    assert ids(history) == ["e4", "e5"]
    history.resize(100, 1 << 30)
    add(history, entry(6))
    assert ids(history) == ["e4", "e5", "e6"]


def test_what_is_older_than_a_moment_can_be_evicted() -> None:
    history = history_of(*chats(5))
    history.forget(START + timedelta(seconds=3))
    assert (ids(history), history.evicted) == (["e3", "e4"], 3)
    assert history.reaches_back_to(START + timedelta(seconds=3))
    assert not history.reaches_back_to(START + timedelta(seconds=2))


batches = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 300)), max_size=25)


@given(batches, st.integers(0, 12), st.integers(0, 6_000))
def test_what_is_kept_are_the_newest_entries_that_fit(
    batches: list[tuple[int, int]], envelopes_max: int, bytes_max: int
) -> None:
    """An entry goes as a whole: the oldest that is kept may have more than there is room for."""
    history = history_of(envelopes_max=envelopes_max, bytes_max=bytes_max)
    entries: list[Delivered] = []
    for number, (count, size) in enumerate(batches):
        raws = [made(f"e{number}.{n}", size=size) for n in range(count)]
        entries.append(entry(number, *raws, seq=1 + sum(len(one.ids) for one in entries)))
        add(history, entries[-1])
        kept: list[Delivered] = []
        while len(kept) < len(entries):
            wider = entries[-len(kept) - 1 :]
            weight = sum(OVERHEAD + len(raw) for one in wider for raw in one.raws)
            if sum(len(one.ids) for one in kept) >= envelopes_max or weight > bytes_max:
                break
            kept = wider
        assert ids(history) == [name for one in kept for name in one.ids]
        assert len(history) == sum(len(one.ids) for one in kept)
        assert history.bytes <= bytes_max
        gone = entries[: len(entries) - len(kept)]
        assert history.evicted == (gone[-1].seq if gone else 0)


@given(batches, st.integers(0, 12), st.integers(0, 6_000))
def test_one_that_is_filled_from_the_newest_on_is_the_same(
    batches: list[tuple[int, int]], envelopes_max: int, bytes_max: int
) -> None:
    history = history_of(envelopes_max=envelopes_max, bytes_max=bytes_max)
    again = history_of(envelopes_max=envelopes_max, bytes_max=bytes_max)
    entries = [
        entry(number, *[made(f"e{number}.{n}", size=size) for n in range(count)])
        for number, (count, size) in enumerate(batches)
    ]
    for one in entries:
        add(history, one)
    for one in reversed(entries):
        if not again.prepend(one):
            again.begin_after(one.seq, one.at, len(one.ids))
            break
    assert list(again) == list(history)
    assert (again.begin, again.end, again.bytes) == (history.begin, history.end, history.bytes)
    assert again.reaches_back_to(None) is history.reaches_back_to(None)


# Pages.


def test_after_an_envelope_come_those_after_it_and_all_when_it_is_gone() -> None:
    history = history_of(*chats(5), envelopes_max=3)
    assert ids(history.after(EnvelopeId("e3"))) == ["e4"]
    assert ids(history.after(EnvelopeId("e0"))) == ["e2", "e3", "e4"]


def test_after_an_id_that_was_used_again_comes_all_that_followed_its_first_use() -> None:
    again = [entry(n, made(f"envelope-{n % 3}"), made(f"e{n}")) for n in range(9)]
    history = history_of(*again)
    assert ids(history.after(EnvelopeId("envelope-1"))) == ids(history)[3:]
    history.forget(again[2].at)
    assert ids(history.after(EnvelopeId("envelope-1"))) == ids(history_of(*again))[9:]


def test_cursors_give_page_after_page_in_both_directions() -> None:
    history = history_of(*chats(5))
    first = history.select(HistoryQuery(who=ANN, limit=2))
    assert (ids(first), first.more) == (["e0", "e1"], True)
    last = history.select(HistoryQuery(who=ANN, limit=3, after="e1"))
    assert (ids(last), last.more) == (["e2", "e3", "e4"], False)
    newest = history.select(HistoryQuery(who=ANN, limit=2, newest_first=True))
    assert (ids(newest), newest.more) == (["e4", "e3"], True)
    assert ids(history.select(HistoryQuery(who=ANN, before="e3", newest_first=True))) == ["e2", "e1", "e0"]
    assert ids(history.select(HistoryQuery(who=ANN, after="e0", before="e3"))) == ["e1", "e2"]


queries = st.builds(
    HistoryQuery,
    who=st.sampled_from([ANN, BOT]),
    kind=st.none()
    | st.sampled_from(["chat", "mcp/*", "!chat"]).map(lambda kind: Capability.parse({"kind": kind})),
    participant=st.none() | st.sampled_from(["ann", "bot"]),
    newest_first=st.booleans(),
    limit=st.sampled_from([1, 2, 7, 100]),
    since=(moment := st.none() | st.integers(-1, 12).map(lambda late_s: START + timedelta(seconds=late_s))),
    until=moment,
)
envelopes = st.tuples(
    st.sampled_from(["chat", "mcp/request"]),
    st.sampled_from(["ann", "bot"]),
    st.sampled_from([None, (ANN,), (BOT,)]),
)


@given(
    st.lists(st.lists(envelopes, min_size=1, max_size=5), min_size=1, max_size=10),
    st.integers(1, 12),
    queries,
    st.tuples(st.integers(0, 60) | st.none(), st.integers(0, 60) | st.none()),
)
def test_all_pages_together_are_what_a_list_would_give(
    said: list[list[tuple[str, str, tuple[ParticipantId, ...] | None]]],
    envelopes_max: int,
    query: HistoryQuery,
    ends: tuple[int | None, int | None],
) -> None:
    history, seq = history_of(envelopes_max=envelopes_max), 1
    for number, batch in enumerate(said):
        raws = [made(f"e{number}.{n}", kind=kind, sender=sender) for n, (kind, sender, _) in enumerate(batch)]
        half = len(raws) // 2  # one entry may deliver twice
        only = tuple(audience for _, _, audience in batch)
        for start, end in ((0, half), (half, len(raws))):
            if raws[start:end]:
                add(history, entry(number, *raws[start:end], only=only[start:end], start=start, seq=seq))
        seq += len(raws)
    kept = list(history)
    names = [None if end is None else kept[end % len(kept)].id for end in ends]
    query = replace(query, after=names[0], before=names[1])
    found, asked = list[DeliveredEnvelope](), query
    while True:
        page = history.select(asked)
        assert len(page.envelopes) <= query.limit
        found += page.envelopes
        if page.next is None:
            break
        asked = replace(asked, **{"before" if query.newest_first else "after": page.next})
    assert found == naive(kept, query)


def test_a_page_says_whether_anything_asked_for_is_gone() -> None:
    history = history_of(*chats(5), envelopes_max=3)
    assert not history.select(HistoryQuery(who=ANN)).complete
    assert not history.select(HistoryQuery(who=ANN, after="e1")).complete
    assert history.select(HistoryQuery(who=ANN, after="e2")).complete
    assert not history.select(HistoryQuery(who=ANN, since=START + timedelta(seconds=1))).complete
    assert history.select(HistoryQuery(who=ANN, since=START + timedelta(seconds=2))).complete
    gone = history.select(HistoryQuery(who=ANN, before="e0"))
    assert (ids(gone), gone.complete) == ([], False)
    assert history_of(entry(0)).select(HistoryQuery(who=ANN)).complete


def test_since_and_until_are_the_moments_of_delivery_both_included() -> None:
    history = history_of(*chats(5))
    asked = HistoryQuery(who=ANN, since=START + timedelta(seconds=1), until=START + timedelta(seconds=3))
    assert ids(history.select(asked)) == ["e1", "e2", "e3"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [("chat", ["e0"]), ("mcp/*", ["e1", "e2"]), ("mcp/request", ["e1"]), ("!chat", ["e1", "e2"])],
)
def test_a_kind_may_be_a_pattern_of_a_capability(kind: str, found: list[str]) -> None:
    kinds = ("chat", "mcp/request", "mcp/response")
    history = history_of(entry(0, *(made(f"e{n}", kind=one) for n, one in enumerate(kinds))))
    assert ids(history.select(HistoryQuery(who=ANN, kind=Capability.parse({"kind": kind})))) == found


def test_the_sender_can_be_asked_for() -> None:
    history = history_of(entry(0), entry(1, made("e1", sender="bot"), made("e2")))
    assert ids(history.select(HistoryQuery(who=ANN, participant="bot"))) == ["e1"]


def test_a_page_stays_within_its_bytes_but_is_never_empty_for_that() -> None:
    large = [made(f"e{n}", size=PAGE_BYTES_MAX - 200) for n in range(2)]
    page = history_of(entry(0, *large)).select(HistoryQuery(who=ANN))
    assert (ids(page), page.more) == (["e0"], True)
    larger = made("e0", size=PAGE_BYTES_MAX)
    assert ids(history_of(entry(0, larger)).select(HistoryQuery(who=ANN))) == ["e0"]


# Correlation.


def linked(links: Sequence[tuple[str, ...]]) -> list[Delivered]:
    return [entry(n, made(f"e{n}", about=about)) for n, about in enumerate(links)]


def test_a_correlation_chain_is_followed_both_ways_and_to_its_ends() -> None:
    history = history_of(*linked([(), (), ("e0",), ("e1",), ("e2",)]))
    for one_of_them in ("e0", "e2", "e4"):
        assert ids(history.select(HistoryQuery(who=ANN, correlation=one_of_them))) == ["e0", "e2", "e4"]
    assert ids(history.select(HistoryQuery(who=ANN, correlation="e3"))) == ["e1", "e3"]
    assert ids(history.select(HistoryQuery(who=ANN, correlation="e9"))) == []


def test_what_was_for_others_is_neither_told_nor_a_link_of_a_chain() -> None:
    raws = [made("e0"), made("e1", about=("e0",)), made("e2", about=("e1",)), made("e3")]
    history = history_of(entry(0, *raws, only=(None, (ANN,), None, (BOT,))))
    assert ids(history.select(HistoryQuery(who=BOT))) == ["e0", "e2", "e3"]
    assert ids(history.select(HistoryQuery(who=BOT, correlation="e0"))) == ["e0"]
    assert ids(history.select(HistoryQuery(who=ANN, correlation="e0"))) == ["e0", "e1", "e2"]


LINKED = st.lists(
    st.lists(
        st.tuples(st.lists(st.integers(0, 12), max_size=3), st.sampled_from([None, (ANN,), (BOT,)])),
        min_size=1,
        max_size=3,
    ),
    max_size=8,
)


@given(LINKED, st.lists(st.booleans(), min_size=8, max_size=8), st.integers(1, 12), st.integers(0, 12))
def test_a_chain_is_the_same_whenever_it_was_asked_for_before(
    links: list[list[tuple[list[int], tuple[ParticipantId, ...] | None]]],
    asks: list[bool],
    envelopes_max: int,
    start: int,
) -> None:
    history, count = history_of(envelopes_max=envelopes_max), 0
    for number, batch in enumerate(links):
        raws = [
            made(f"e{count + n}", about=tuple(f"e{one}" for one in named))
            for n, (named, _) in enumerate(batch)
        ]
        count += len(raws)
        add(history, entry(number, *raws, only=tuple(audience for _, audience in batch)))
        if asks[number]:
            history.select(HistoryQuery(who=ANN, correlation="e0"))
    seen = [each for each in history if each.is_for(ANN)]
    chain = {f"e{start}"}
    while True:  # by the definition: whatever has or names one of them
        touching = [one for one in seen if not chain.isdisjoint((one.id, *one.correlation_id))]
        wider = chain.union(*((one.id, *one.correlation_id) for one in touching))
        if wider == chain:
            break
        chain = wider
    page = history.select(HistoryQuery(who=ANN, correlation=f"e{start}"))
    assert ids(page) == [one.id for one in seen if one.id in chain]


def test_a_second_question_about_correlation_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []
    add_all = CorrelationIndex.add

    def counted(self: CorrelationIndex, envelopes: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        envelopes = list(envelopes)
        added.append(len(envelopes))
        add_all(self, envelopes)

    monkeypatch.setattr(CorrelationIndex, "add", counted)
    history = history_of(*linked([(f"e{n - 1}",) for n in range(1000)]), envelopes_max=900)
    assert added == []
    history.select(HistoryQuery(who=ANN, correlation="e950"))
    assert sum(added) == 900
    add(history, entry(1000, made("e1000", about=("e950",))))
    history.select(HistoryQuery(who=ANN, correlation="e950"))
    assert sum(added) == 901


def test_a_chain_too_long_to_follow_is_cut_and_says_so() -> None:
    hubs = tuple(f"hub{n}" for n in range(400))
    history = history_of(*linked([hubs] * 400), envelopes_max=1000)
    page = history.select(HistoryQuery(who=ANN, correlation="e7"))
    assert page.envelopes
    assert not page.complete
    few = history_of(*linked([hubs[:5]] * 100))
    assert few.select(HistoryQuery(who=ANN, correlation="e7", limit=200)).complete


def test_the_envelopes_of_a_part_of_an_entry_know_their_places_in_it() -> None:
    delivered = entry(0, made("e0"), made("e1"), made("e2"), start=4)
    assert [one.cursor for one in envelopes_in(delivered)] == [(1, 4), (1, 5), (1, 6)]
