"""Batches: what is judged together, and what several nodes judged that did not know of each other's."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.table import EPOCH, START, capabilities, envelope_of

from mew.protocol.envelope import ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Entry,
    Event,
    Joined,
    RefusalDetails,
    Refuse,
    Rules,
    Sent,
    Space,
)

PEOPLE = {"ann": ["*"], "bob": ["chat", "mcp/*", "capability/grant", "stream/*"], "cid": ["chat"]}
PAYLOADS: dict[str, list[Any]] = {
    "chat": [{"text": "hi"}],
    "mcp/request": [{"method": "tools/call", "params": {"name": "read_file"}}],
    "capability/grant": [
        {"recipient": to, "capabilities": given}
        for to in ("cid", "bob")
        for given in (["mcp/request"], ["chat", "capability/grant"], ["space/kick"])
    ],
    "capability/revoke": [{"recipient": of, "capabilities": ["chat"]} for of in ("bob", "cid")]
    + [{"recipient": "bob", "capabilities": ["mcp/*"]}],
    "space/kick": [{"participant_id": "cid"}],
    "space/invite": [{"participant_id": "cid", "initial_capabilities": ["chat"]}],
    "participant/pause": [{"timeout_seconds": 60}],
    "participant/resume": [None],
    "stream/request": [{"direction": "upload"}],
    "stream/close": [{"stream_id": "stream-5"}, {"stream_id": "stream-6"}],
    "system/presence": [{}],
}

NONE = Envelopes((), (), (), (), (), ())

said = st.builds(
    lambda who, kind, n, envelope_id, to: (
        who,
        kind,
        PAYLOADS[kind][n % len(PAYLOADS[kind])],
        envelope_id,
        to,
    ),
    st.sampled_from(list(PEOPLE)),
    st.sampled_from(["chat", "chat", "chat", "mcp/request", *PAYLOADS]),
    st.integers(0, 5),
    st.integers(0, 40).map(lambda n: f"e{n}"),
    st.lists(st.sampled_from(list(PEOPLE)), max_size=2),
)


def envelopes_of(messages: Sequence[Any]) -> Envelopes:
    together = NONE
    for who, kind, payload, envelope_id, to in messages:
        envelope, raw = envelope_of(who, kind, payload, id=envelope_id, to=to)
        together = together.joined(Envelopes.of(envelope, raw))
    return together


def opened() -> tuple[list[Entry], Space]:
    """A space in which everyone is connected, and the entries that led there."""
    profiles = {ParticipantId(who): capabilities(held) for who, held in PEOPLE.items()}
    log, space = Log(), Space()
    configured = Configured(Rules(id="desk", profiles=profiles), EPOCH)
    events: list[Event] = [configured, *(Joined(ParticipantId(who), ConnectionId(who)) for who in PEOPLE)]
    for event in events:
        space.apply(log.append(event))
    return log.entries, space


class Log:
    """Numbers what is appended."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)

    def append(self, event: Event) -> Entry:
        size = len(event.envelopes) if isinstance(event, Sent) else 1
        last = self.entries[-1].last if self.entries else 0
        entry = Entry(last + 1, START, event, size)
        self.entries.append(entry)
        return entry


def batch(space: Space, envelopes: Envelopes, origins: Sequence[str]) -> Sent:
    return Sent(envelopes, tuple(map(ConnectionId, origins)), space.state.changed_at)


def heard(space: Space, envelopes: Envelopes) -> Envelopes:
    """What came over connections that are in the space: the others are closed, and nobody listens to them."""
    parts = [envelopes.part(place, place + 1) for place in range(len(envelopes))]
    return reduce(Envelopes.joined, [one for one in parts if one.senders[0] in space.state.connected], NONE)


def decide(space: Space, envelopes: Envelopes) -> Iterator[Sent | RefusalDetails]:
    """As a room does: accepted batches, each to be applied before the next is asked for, and refusals."""
    while len(envelopes := heard(space, envelopes)):
        accepted, refused = space.judge(START, envelopes)
        if accepted:
            some = envelopes.part(0, accepted)
            yield batch(space, some, some.senders)
        if refused is not None:
            yield refused
        envelopes = envelopes.part(accepted + (refused is not None), len(envelopes))


def outcomes(decisions: Sequence[Decision]) -> list[Any]:
    """What everyone is told, envelope by envelope, however they were batched."""
    told: list[Any] = []
    for decision in decisions:
        if isinstance(decision, Deliver):
            told += [
                (raw, decision.only and decision.only[n]) for n, raw in enumerate(decision.envelopes.raws)
            ]
        elif isinstance(decision, Refuse):
            told.append((decision.envelope_id, decision.refused.refusal))
        else:
            told.append(decision)
    return told


def one_by_one(entries: Sequence[Entry], space: Space) -> list[Any]:
    """The outcomes where every envelope of every batch is judged alone, at its place."""
    told: list[Any] = []
    for entry in entries:
        sent = entry.event
        assert isinstance(sent, Sent)
        for place in range(entry.size):
            alone = Sent(sent.envelopes.part(place, place + 1), (sent.origins[place],))
            told += outcomes(space.apply(Entry(entry.seq + place, entry.at, alone)))
    return told


@settings(deadline=None)
@given(st.lists(said, max_size=12))
def test_what_is_accepted_is_carried_out_and_what_is_refused_changes_nothing(messages: list[Any]) -> None:
    past, space = opened()
    log = Log(past)
    for decided in decide(space, envelopes_of(messages)):
        before = space.state.snapshot()
        if isinstance(decided, RefusalDetails):
            assert space.state.snapshot() == before
            continue
        decisions = space.apply(log.append(decided))
        assert not any(isinstance(decision, Refuse) for decision in decisions)
        assert isinstance(decisions[0], Deliver)
        assert decisions[0].envelopes == decided.envelopes, "byte for byte what was accepted"


@settings(deadline=None)
@given(st.lists(said, max_size=12))
def test_a_batch_is_the_same_as_its_envelopes_one_by_one(messages: list[Any]) -> None:
    past, together = opened()
    _, apart = opened()
    log = Log(past)
    in_batches: list[Any] = []
    for decided in decide(together, envelopes_of(messages)):
        if isinstance(decided, Sent):
            in_batches += outcomes(together.apply(log.append(decided)))
    assert one_by_one(log.entries[len(past) :], apart) == in_batches
    assert apart.state == together.state


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(said, max_size=4), st.integers(0, 6)), max_size=8))
def test_a_batch_that_was_judged_against_an_older_state_is_judged_at_its_place(
    turns: list[tuple[int, list[Any], int]],
) -> None:
    """Three nodes over one log, each as far behind as it happens to be: all decide alike, and as one would."""
    past, _ = opened()
    log = Log(past)
    nodes = [opened()[1] for _ in range(3)]
    decided: list[list[Any]] = [[] for _ in nodes]

    def follow(node: int, most: int) -> None:
        for entry in [entry for entry in log.entries if entry.seq > nodes[node].seq][:most]:
            decided[node] += outcomes(nodes[node].apply(entry))

    for node, messages, behind in turns:
        envelopes = envelopes_of(messages)
        while len(
            envelopes := heard(nodes[node], envelopes)
        ):  # judged as this node knows it, and not applied yet
            accepted, refused = nodes[node].judge(START, envelopes)
            if accepted:
                some = envelopes.part(0, accepted)
                log.append(batch(nodes[node], some, some.senders))
            envelopes = envelopes.part(accepted + (refused is not None), len(envelopes))
        for other in range(len(nodes)):
            follow(other, behind)
    for node in range(len(nodes)):
        follow(node, len(log.entries))
    _, alone = opened()
    expected = one_by_one(log.entries[len(past) :], alone)
    for node, space in enumerate(nodes):
        assert decided[node] == expected
        assert space.state == alone.state
