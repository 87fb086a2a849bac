"""What was shown: kept within bounds, found again by cursor, filter and correlation."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.correlations import Correlations
from mew.gateway.history import History
from mew.gateway.pages import PAGE_BYTES_MAX, Page, Query, Record
from mew.protocol.capability import Capability
from mew.protocol.codec import encode
from mew.protocol.envelope import PROTOCOL, Envelope, EnvelopeId, ParticipantId

START = datetime(2026, 1, 1, tzinfo=UTC)
ANN, BOT = ParticipantId("ann"), ParticipantId("bot")


def record(
    number: int,
    *,
    sender: str = "ann",
    kind: str = "chat",
    about: tuple[str, ...] = (),
    only: tuple[ParticipantId, ...] | None = None,
    raw: bytes | None = None,
) -> Record:
    envelope = Envelope(protocol=PROTOCOL, id=f"e{number}", sender=sender, kind=kind, correlation_id=about)
    at = START + timedelta(seconds=number)
    return Record.of(envelope, encode(envelope) if raw is None else raw, at=at, only=only, seq=number + 1)


def history_of(*records: Record, envelopes_max: int = 100, bytes_max: int = 1 << 30) -> History:
    history = History(envelopes_max, bytes_max)
    for each in records:
        history.append(each)
    return history


def ids(page: Page) -> list[str]:
    return [each.id for each in page.records]


def test_the_oldest_go_first_when_there_are_too_many_or_too_large() -> None:
    many = history_of(*(record(n) for n in range(5)), envelopes_max=3)
    assert [each.id for each in many] == ["e2", "e3", "e4"]
    large = history_of(*(record(n, raw=b"x" * 10) for n in range(5)), bytes_max=25)
    assert (len(large), large.bytes) == (2, 20)
    assert not large.knows("e2")
    assert large.knows("e3")


@given(st.integers(0, 30), st.integers(1, 12), st.integers(-2, 35), st.integers(-2, 35))
def test_a_range_of_numbers_is_what_a_list_would_give(count: int, kept: int, first: int, end: int) -> None:
    history = history_of(*(record(n) for n in range(count)), envelopes_max=kept)
    expected = [n for n in range(max(0, count - kept), count) if first <= n < end]
    assert [each.id for each in history.between(first, end)] == [f"e{n}" for n in expected]


def test_after_an_envelope_come_those_after_it_and_all_when_it_is_gone() -> None:
    history = history_of(*(record(n) for n in range(5)), envelopes_max=3)
    assert [each.id for each in history.after(EnvelopeId("e3"))] == ["e4"]
    assert [each.id for each in history.after(EnvelopeId("e0"))] == ["e2", "e3", "e4"]
    assert [each.id for each in history.after(None)] == ["e2", "e3", "e4"]


def test_cursors_give_page_after_page_in_both_directions() -> None:
    history = history_of(*(record(n) for n in range(5)))
    first = history.select(Query(who=ANN, limit=2))
    assert (ids(first), first.more) == (["e0", "e1"], True)
    last = history.select(Query(who=ANN, limit=3, after="e1"))
    assert (ids(last), last.more) == (["e2", "e3", "e4"], False)
    newest = history.select(Query(who=ANN, limit=2, newest_first=True))
    assert (ids(newest), newest.more) == (["e4", "e3"], True)
    assert ids(history.select(Query(who=ANN, before="e3", newest_first=True))) == ["e2", "e1", "e0"]
    assert ids(history.select(Query(who=ANN, after="e0", before="e3"))) == ["e1", "e2"]


def test_a_page_says_whether_anything_asked_for_is_gone() -> None:
    history = history_of(*(record(n) for n in range(5)), envelopes_max=3)
    assert not history.select(Query(who=ANN)).complete
    assert not history.select(Query(who=ANN, after="e1")).complete
    assert history.select(Query(who=ANN, after="e2")).complete
    assert not history.select(Query(who=ANN, since=START + timedelta(seconds=1))).complete
    assert history.select(Query(who=ANN, since=START + timedelta(seconds=2))).complete
    gone = history.select(Query(who=ANN, before="e0"))
    assert (ids(gone), gone.complete) == ([], False)
    assert history_of(record(0)).select(Query(who=ANN)).complete


def test_since_and_until_are_the_moments_they_were_shown_both_included() -> None:
    history = history_of(*(record(n) for n in range(5)))
    asked = Query(who=ANN, since=START + timedelta(seconds=1), until=START + timedelta(seconds=3))
    assert ids(history.select(asked)) == ["e1", "e2", "e3"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [("chat", ["e0"]), ("mcp/*", ["e1", "e2"]), ("mcp/request", ["e1"]), ("!chat", ["e1", "e2"])],
)
def test_a_kind_may_be_a_pattern_of_a_capability(kind: str, found: list[str]) -> None:
    history = history_of(record(0), record(1, kind="mcp/request"), record(2, kind="mcp/response"))
    assert ids(history.select(Query(who=ANN, kind=Capability.parse({"kind": kind})))) == found


def test_the_sender_can_be_asked_for() -> None:
    history = history_of(record(0), record(1, sender="bot"), record(2))
    assert ids(history.select(Query(who=ANN, participant="bot"))) == ["e1"]


def test_a_correlation_chain_is_followed_both_ways_and_to_its_ends() -> None:
    history = history_of(
        record(0, kind="mcp/proposal"),
        record(1),
        record(2, kind="mcp/request", about=("e0",)),
        record(3, about=("e1",)),
        record(4, kind="mcp/response", about=("e2",)),
    )
    for one_of_them in ("e0", "e2", "e4"):
        assert ids(history.select(Query(who=ANN, correlation=one_of_them))) == ["e0", "e2", "e4"]
    assert ids(history.select(Query(who=ANN, correlation="e3"))) == ["e1", "e3"]
    assert ids(history.select(Query(who=ANN, correlation="e9"))) == []


def test_what_was_for_others_is_neither_shown_nor_a_link_of_a_chain() -> None:
    history = history_of(
        record(0), record(1, about=("e0",), only=(ANN,)), record(2, about=("e1",)), record(3, only=(BOT,))
    )
    assert ids(history.select(Query(who=BOT))) == ["e0", "e2", "e3"]
    assert ids(history.select(Query(who=BOT, correlation="e0"))) == ["e0"]
    assert ids(history.select(Query(who=ANN, correlation="e0"))) == ["e0", "e1", "e2"]


def test_a_page_stays_within_its_bytes_but_is_never_empty_for_that() -> None:
    large = b"x" * (PAGE_BYTES_MAX - 1)
    page = history_of(record(0, raw=large), record(1, raw=large)).select(Query(who=ANN))
    assert (ids(page), page.more) == (["e0"], True)
    assert ids(history_of(record(0, raw=large + b"xx")).select(Query(who=ANN))) == ["e0"]


def test_names_count_for_what_they_take_in_memory() -> None:
    history = history_of(*(record(n, about=("e0",) * 100) for n in range(10)), bytes_max=50_000)
    assert len(history) < 5
    assert history.bytes <= 50_000
    history.append(record(10, raw=b"x" * 50_000))
    assert (len(history), history.bytes) == (1, 50_000)


LINKED = st.lists(
    st.tuples(
        st.lists(st.integers(0, 12), max_size=3), st.sampled_from([None, (ANN,), (BOT,)]), st.booleans()
    ),
    max_size=12,
)


@given(LINKED, st.integers(1, 12), st.integers(0, 12))
def test_a_chain_is_the_same_whenever_it_was_asked_for_before(
    links: list[tuple[list[int], tuple[ParticipantId, ...] | None, bool]], kept: int, start: int
) -> None:
    history = history_of(envelopes_max=kept)
    for number, (named, only, asks) in enumerate(links):
        history.append(record(number, about=tuple(f"e{n}" for n in named), only=only))
        if asks:
            history.select(Query(who=ANN, correlation="e0"))
    seen = [each.envelope for each in history if each.is_for(ANN)]
    chain = {f"e{start}"}
    while True:  # by the definition: whatever has or names one of them
        touching = [one for one in seen if not chain.isdisjoint((one.id, *one.correlation_id))]
        wider = chain.union(*((one.id, *one.correlation_id) for one in touching))
        if wider == chain:
            break
        chain = wider
    page = history.select(Query(who=ANN, correlation=f"e{start}"))
    assert ids(page) == [one.id for one in seen if one.id in chain]


def test_a_second_question_about_correlation_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []
    add = Correlations.add

    def counted(self: Correlations, envelopes: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        envelopes = list(envelopes)
        added.append(len(envelopes))
        add(self, envelopes)

    monkeypatch.setattr(Correlations, "add", counted)
    history = history_of(*(record(n, about=(f"e{n - 1}",)) for n in range(1000)), envelopes_max=900)
    assert added == []
    history.select(Query(who=ANN, correlation="e950"))
    history.append(record(1000, about=("e950",)))
    history.select(Query(who=ANN, correlation="e950"))
    assert added == [900, 1]


def test_a_chain_too_long_to_follow_is_cut_and_says_so() -> None:
    hubs = tuple(f"hub{n}" for n in range(400))
    history = history_of(*(record(n, about=hubs) for n in range(400)), envelopes_max=1000)
    page = history.select(Query(who=ANN, correlation="e7"))
    assert page.records
    assert not page.complete
    few = history_of(*(record(n, about=hubs[:5]) for n in range(100)))
    assert few.select(Query(who=ANN, correlation="e7", limit=200)).complete
