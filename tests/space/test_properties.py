"""Whatever happens in a space, in whatever order: what must hold after every entry."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.space.model import Model
from tests.space.table import EPOCH, START, capabilities, envelope_of

from mew.protocol.capability import Capability, CapabilitySet
from mew.protocol.envelope import GATEWAY, Envelope, EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.protocol.json import decode_payload, encode_json
from mew.protocol.kinds import Grant, Invite, Kick, Revoke
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    Refuse,
    Reply,
    Rules,
    Sent,
    Space,
    TimePassed,
    Violated,
    WakeAt,
)
from mew.space.state import SpaceState

CONFIGURED = ("ann", "bob", "cid", "dan")
EVERYONE = (*CONFIGURED, "zoe", "eve")  # the last two are invited or vouched for, if at all
CAPABILITIES: tuple[Any, ...] = (
    "*",
    "chat",
    "mcp/*",
    "mcp/request",
    "mcp/request:tools/call:read_*",
    "mcp/request:tools/call:read_file",
    "mcp/proposal",
    "capability/*",
    "capability/grant",
    "capability/revoke",
    "space/*",
    "participant/*",
    "participant/pause",
    "stream/*",
    {"kind": "chat", "to": "bob"},
    {"kind": ["chat", "mcp/proposal"]},
    {"kind": "!chat"},
    {"kind": "/^mcp/"},
    {"kind": "mcp/*", "except": ["mcp/request"]},
    {"kind": "capability/grant", "payload": {"recipient": "bob"}},
    {"kind": "mcp/request", "payload": {"$.params.name": "read_*"}},
)
WRONG: tuple[Any, ...] = ({"kind": "/(/"}, {"payload": {}}, 5, None, "", {"kind": "chat", "except": "chat"})
PASS_PAUSE = {  # ruling 13
    "chat/acknowledge",
    "chat/cancel",
    "reasoning/cancel",
    "mcp/withdraw",
    "mcp/reject",
    "capability/grant-ack",
    "participant/status",
    "participant/compact-done",
}
PASS_SHUTDOWN = {"chat/acknowledge", "capability/grant-ack", "participant/status"}
PLAIN_KINDS = (
    "chat",
    "mcp/request",
    "mcp/proposal",
    "mcp/response",
    "reasoning/thought",
    "stream/open",
    "participant/restart",
    *sorted(PASS_PAUSE),
)

who = st.sampled_from(EVERYONE)
sender = st.sampled_from(("ann", "ann", "ann", "bob", "cid", *EVERYONE))
whom = st.lists(st.sampled_from((*EVERYONE, "gateway")), max_size=3)
capability = st.sampled_from(CAPABILITIES)
written = st.lists(capability | capability | st.sampled_from(WRONG), min_size=1, max_size=3)
given_to = st.lists(capability, max_size=4)
connection = st.sampled_from([f"c{n}" for n in range(8)])
seconds = st.sampled_from([0, 1, 5, 60])
number = st.integers(0, 11)
odd = st.sampled_from(
    [{}, {"recipient": 5}, {"participant_id": []}, {"direction": "up"}, {"timeout_seconds": -1}]
)


def _seldom(history: "AnyHistory") -> bool:
    """What ends most of a history is done now and then only."""
    return len(history.entries) % 5 == 0


class AnyHistory(RuleBasedStateMachine):
    """One space, a twin that was restored from a snapshot at some point, and a model of who may send what."""

    def __init__(self) -> None:
        super().__init__()
        self.space = Space()
        self.twin = Space()
        self.model = Model()
        self.now = START
        self.entries: list[Entry] = []
        self.decided: list[list[Decision]] = []
        self.made: set[str] = set()
        self.wake: datetime | None = None

    # What happens.

    @initialize(first=st.lists(given_to, min_size=4, max_size=4), baseline=given_to)
    def begin(self, first: list[list[Any]], baseline: list[Any]) -> None:
        profiles = {
            ParticipantId(name): capabilities(caps) for name, caps in zip(CONFIGURED, first, strict=True)
        }
        profiles[ParticipantId("ann")] = capabilities(["*"])
        for name in ("bob", "cid"):
            given = ["capability/grant", "space/invite", "stream/*", *first[1]]
            profiles[ParticipantId(name)] = capabilities(given)
        self.apply(
            Configured(Rules(id="desk", profiles=profiles, baseline=capabilities(baseline[:1])), EPOCH)
        )
        for name in CONFIGURED:
            self.apply(Joined(ParticipantId(name), ConnectionId(f"of-{name}")))

    @rule(who=who, connection=connection)
    def join(self, who: str, connection: str) -> None:
        self.apply(Joined(ParticipantId(who), ConnectionId(connection)))

    @rule(connection=connection | st.sampled_from([f"of-{name}" for name in CONFIGURED]))
    def leave(self, connection: str) -> None:
        self.apply(Left(ConnectionId(connection)))

    @rule(seconds=seconds)
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.apply(TimePassed())

    @rule(seconds=seconds)
    def later(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @precondition(_seldom)
    @rule(who=st.sampled_from(CONFIGURED), given=given_to)
    def configure(self, who: str, given: list[Any]) -> None:
        profiles = {**self.in_force.profiles, ParticipantId(who): capabilities(given)}
        self.apply(Configured(msgspec.structs.replace(self.in_force, profiles=profiles), EPOCH))

    @precondition(_seldom)
    @rule(who=st.sampled_from(CONFIGURED))
    def unconfigure(self, who: str) -> None:
        profiles = {name: given for name, given in self.in_force.profiles.items() if name != who}
        self.apply(Configured(msgspec.structs.replace(self.in_force, profiles=profiles), EPOCH))

    @rule(
        baseline=given_to, delivery=st.sampled_from(["everyone", "addressed"]), streams_max=st.integers(0, 4)
    )
    def set_rules(self, baseline: list[Any], delivery: Any, streams_max: int) -> None:
        rules = msgspec.structs.replace(
            self.in_force, baseline=capabilities(baseline), delivery=delivery, streams_max=streams_max
        )
        self.apply(Configured(rules, EPOCH))

    @rule(who=who, given=given_to)
    def identify(self, who: str, given: list[Any]) -> None:
        self.apply(Identified(ParticipantId(who), capabilities(given)))

    @rule(who=who)
    def violate(self, who: str) -> None:
        self.apply(Violated(ParticipantId(who), EnvelopeId("v"), "chat", Refusal.CAPABILITY_VIOLATION))

    @rule()
    def restart(self) -> None:
        self.twin = Space(SpaceState.restore(self.space.state.snapshot()))

    @rule(who=sender, kind=st.sampled_from(PLAIN_KINDS), to=whom, about=number)
    def say(self, who: str, kind: str, to: list[str], about: int) -> None:
        payload = {"method": "tools/call", "params": {"name": "read_file"}}
        self.send(who, kind, payload, to=to, correlation_id=[self.sent_id(about)])

    @rule(who=sender, n=number, lenient=st.booleans())
    def say_again(self, who: str, n: int, lenient: bool) -> None:  # noqa: FBT001  # hypothesis passes by name
        self.send(who, "chat", {"text": "hi"}, lenient=lenient, id=self.sent_id(n))

    @rule(who=sender, connection=connection)
    def say_through_any_socket(self, who: str, connection: str) -> None:
        self.send(who, "chat", via=ConnectionId(connection))

    @rule(
        who=sender, kind=st.sampled_from(["capability/grant", "space/invite", "stream/request"]), payload=odd
    )
    def say_nonsense(self, who: str, kind: str, payload: dict[str, Any]) -> None:
        self.send(who, kind, payload)

    @rule(who=sender, to=who, given=written, ttl=st.none() | seconds)
    def grant(self, who: str, to: str, given: list[Any], ttl: int | None) -> None:
        ends = {} if ttl is None else {"ttl_seconds": ttl}
        self.send(who, "capability/grant", {"recipient": to, "capabilities": given, **ends})

    @rule(who=sender, to=who, given=capability, n=number)
    def grant_under_an_old_id(self, who: str, to: str, given: Any, n: int) -> None:
        payload = {"recipient": to, "capabilities": [given]}
        self.send(who, "capability/grant", payload, lenient=True, id=self.grant_id(n))

    @rule(
        given=capability,
        chain=st.lists(who, min_size=1, max_size=4),
        ttls=st.tuples(*[st.none() | seconds] * 4),
    )
    def delegate(self, given: Any, chain: list[str], ttls: tuple[int | None, ...]) -> None:
        """From ann to one after the other, and perhaps back: each passes on what it was just granted."""
        for giver, to, ttl in zip(("ann", *chain), chain, ttls, strict=False):
            self.grant(giver, to, [given, "capability/grant"], ttl)

    @rule(giver=st.sampled_from(("bob", "cid")), guest=st.sampled_from(("zoe", "eve")), given=capability)
    def launder(self, giver: str, guest: str, given: Any) -> None:
        """Somebody invites a guest with what it was granted for a second, and is granted it back."""
        self.grant("ann", giver, [given], 1)
        self.invite(giver, guest, [given, "capability/grant"])
        self.grant(guest, giver, [given], None)

    @precondition(lambda self: self.space.state.grants)
    @rule(n=number, kind=st.sampled_from(PLAIN_KINDS), to=whom)
    def use_grant(self, n: int, kind: str, to: list[str]) -> None:
        self.say(self.space.state.grants[EnvelopeId(self.grant_id(n))].recipient, kind, to, 0)

    @rule(who=sender, n=number)
    def revoke_grant(self, who: str, n: int) -> None:
        grant = self.space.state.grants.get(EnvelopeId(self.grant_id(n)))
        recipient = "bob" if grant is None else grant.recipient
        self.send(who, "capability/revoke", {"recipient": recipient, "grant_id": self.grant_id(n)})

    @precondition(_seldom)
    @rule(who=sender, of=who, patterns=written)
    def revoke_pattern(self, who: str, of: str, patterns: list[Any]) -> None:
        self.send(who, "capability/revoke", {"recipient": of, "capabilities": patterns})

    @rule(who=sender, whom=who, given=written)
    def invite(self, who: str, whom: str, given: list[Any]) -> None:
        self.send(who, "space/invite", {"participant_id": whom, "initial_capabilities": given})

    @precondition(_seldom)
    @rule(who=sender, whom=who)
    def kick(self, who: str, whom: str) -> None:
        self.send(who, "space/kick", {"participant_id": whom})

    @precondition(_seldom)
    @rule(who=sender, to=whom, timeout=st.none() | seconds)
    def pause(self, who: str, to: list[str], timeout: int | None) -> None:
        self.send(who, "participant/pause", {} if timeout is None else {"timeout_seconds": timeout}, to=to)

    @rule(who=sender, to=whom, n=number)
    def resume(self, who: str, to: list[str], n: int) -> None:
        self.send(who, "participant/resume", to=to, correlation_id=[self.sent_id(n)])

    @precondition(_seldom)
    @rule(who=sender, to=whom)
    def shut_down(self, who: str, to: list[str]) -> None:
        self.send(who, "participant/shutdown", to=to)

    @rule(who=sender, to=whom, direction=st.sampled_from(["upload", "download"]))
    def request_stream(self, who: str, to: list[str], direction: str) -> None:
        self.send(who, "stream/request", {"direction": direction, "owner": "eve", "x": [1, None]}, to=to)

    @rule(who=sender, n=number, kind=st.sampled_from(["close", "grant-write", "revoke-write"]), other=who)
    def change_stream(self, who: str, n: int, kind: str, other: str) -> None:
        self.send(who, f"stream/{kind}", {"stream_id": self.stream_id(n), "participant_id": other})

    @rule(who=sender, n=number, new_owner=who)
    def hand_over_stream(self, who: str, n: int, new_owner: str) -> None:
        self.send(who, "stream/transfer-ownership", {"stream_id": self.stream_id(n), "new_owner": new_owner})

    # What must hold of each entry.

    def send(
        self,
        who: str,
        kind: str,
        payload: Any = None,
        *,
        via: ConnectionId | None = None,
        lenient: bool = False,
        **fields: Any,
    ) -> None:
        fields.setdefault("id", f"e{len(self.entries) + 1}")
        envelope, raw = envelope_of(who, kind, payload, **fields)
        envelopes = Envelopes.of(envelope, raw)
        state = self.space.state
        is_due, before = self.space.is_due(self.now), state.snapshot()
        accepted, foreseen = self.space.judge(self.now, envelopes, lenient)
        assert accepted == (foreseen is None)
        assert state.snapshot() == before, "to judge changes nothing"
        silent = self.must_be_silent(who, kind)
        known_ids, owner = set(state.recent), state.recent.get(envelope.id)
        # Judged by a node that is up to date, or by one that is not: it makes no difference.
        judged_at = state.changed_at if foreseen is None and via is None and len(self.entries) % 2 else -1
        sent = Sent(envelopes, (via,), judged_at, lenient, f"hash-of-{envelope.id}")
        decisions = self.apply(sent)
        refusals = [d.refused for d in decisions if isinstance(d, Refuse)]
        shown = [d for d in decisions if isinstance(d, Deliver) and d.envelopes.senders[0] != GATEWAY]
        assert len(refusals) + len(shown) == 1
        if refusals:
            assert set(state.recent) == known_ids, "a refused envelope leaves no trace"
            if (
                not state.cuts.get(ParticipantId(who))
                and via is None
                and self.model.has_of_itself(who, envelope)
            ):
                assert refusals[0].refusal is not Refusal.CAPABILITY_VIOLATION
        else:
            assert shown[0].envelopes == envelopes
            assert self.model.may_send(envelope, self.now), f"{who} was never given {kind}"
            assert not silent, f"{who} is paused or shut down"
            assert owner is None or (lenient and owner == who), "an id belongs to whoever used it first"
            assert via is None or state.connections.get(via) in (who, None), "spoke through another's socket"
            self.accepted(envelope)
        if not is_due and via is None:
            assert foreseen == (refusals[0] if refusals else None)

    def must_be_silent(self, who: str, kind: str) -> bool:
        state, name = self.space.state, ParticipantId(who)
        pause = state.paused.get(name)
        is_paused = pause is not None and (pause.until is None or pause.until > self.now)
        return (is_paused and kind not in PASS_PAUSE) or (
            name in state.shut_down and kind not in PASS_SHUTDOWN
        )

    def apply(self, event: Event) -> list[Decision]:
        entry = Entry(len(self.entries) + 1, self.now, event)
        decisions = self.space.apply(entry)
        assert self.twin.apply(entry) == decisions, "a restored space decides otherwise"
        self.entries.append(entry)
        self.decided.append(decisions)
        if isinstance(event, Configured):
            self.model.configured(event.rules)
        elif isinstance(event, Identified):
            self.model.identified(event.who, event.capabilities)
        elif isinstance(event, TimePassed):
            self.wake = None
        for decision in decisions:
            if isinstance(decision, WakeAt):
                self.wake = min(decision.at, self.wake or decision.at)
            made = [decision.envelope] if isinstance(decision, Reply) else []
            made += decision.envelopes if isinstance(decision, Deliver) else []
            for envelope in made:
                if envelope.sender == GATEWAY:
                    assert envelope.id not in self.made, "the gateway used an id twice"
                    self.made.add(envelope.id)
        return decisions

    def accepted(self, envelope: Envelope) -> None:
        match envelope.kind:
            case "capability/grant":
                grant = decode_payload(envelope.payload, Grant)
                until = None
                if not isinstance(grant.ttl_seconds, msgspec.UnsetType):
                    until = self.now + timedelta(seconds=grant.ttl_seconds)
                self.model.granted(envelope, self.now, grant.recipient, grant.capabilities, until)
            case "capability/revoke":
                revoke = decode_payload(envelope.payload, Revoke)
                patterns = () if isinstance(revoke.capabilities, msgspec.UnsetType) else revoke.capabilities
                by_id = None if isinstance(revoke.grant_id, msgspec.UnsetType) else revoke.grant_id
                self.model.revoked(revoke.recipient, by_id, patterns)
            case "space/invite":
                invite = decode_payload(envelope.payload, Invite)
                self.model.invited.add(invite.participant_id)
                self.model.granted(
                    envelope, self.now, invite.participant_id, invite.initial_capabilities, None
                )
            case "space/kick":
                self.model.was_kicked(decode_payload(envelope.payload, Kick).participant_id)

    # What must hold at all times.

    @invariant()
    def a_snapshot_is_the_whole(self) -> None:
        snapshot = self.space.state.snapshot()
        restored = SpaceState.restore(snapshot)
        assert restored == self.space.state == self.twin.state
        assert restored.snapshot() == self.twin.state.snapshot() == snapshot  # the order of things too

    @invariant()
    def what_is_derived_is_right(self) -> None:
        state = self.space.state
        assert state.members == Counter(state.connections.values())
        for one in (state, SpaceState.restore(state.snapshot())):
            assert one.connected.keys() == state.members.keys()
            for name, connections in one.connected.items():
                assert connections == tuple(
                    each for each, whose in state.connections.items() if whose == name
                )
        for name, held in state.held.items():
            assert held == CapabilitySet(self.held_before(name, None))
        for name, shown in state.shown.items():
            listed = [c.source for c in CapabilitySet(self.held_before(name, None))]
            assert bytes(shown) == encode_json({"id": name, "capabilities": listed})

    @invariant()
    def nobody_gave_what_they_do_not_hold(self) -> None:
        for grant in self.space.state.grants.values():
            own = CapabilitySet(self.held_before(grant.by, grant.id))
            assert all(map(own.covers, grant.capabilities)), grant

    @invariant()
    def nothing_belongs_to_strangers(self) -> None:
        state = self.space.state
        named = [*state.connections.values(), *state.paused, *state.shut_down, *state.cuts, *state.invited]
        for grant in state.grants.values():
            named += [grant.by, grant.recipient]
        for stream in state.streams.values():
            named += [stream.owner, *stream.writers]
        for name in named:
            assert self.space.is_known(name), name
            assert self.model.knows(name), name

    @invariant()
    def time_will_be_told(self) -> None:
        state = self.space.state
        moments = [g.expires_at for g in state.grants.values() if g.expires_at is not None]
        assert not moments or (state.expires_next is not None and state.expires_next <= min(moments))
        moments += [pause.until for pause in state.paused.values() if pause.until is not None]
        assert not moments or (self.wake is not None and self.wake <= min(moments))
        assert not self.entries or all(
            g.expires_at is None or g.expires_at > self.entries[-1].at for g in state.grants.values()
        )

    def teardown(self) -> None:
        replica = Space()
        assert [replica.apply(entry) for entry in self.entries] == self.decided
        assert replica.state == self.space.state

    # Names for what there is.

    @property
    def in_force(self) -> Rules:
        return self.space.state.rules

    def held_before(self, who: str, grant_id: str | None) -> list[Capability]:
        """What the state says that somebody holds, without asking the code that is under test."""
        state, name = self.space.state, ParticipantId(who)
        held: list[Capability] = []
        if self.model.knows(who):
            own = (
                self.model.rules.profiles.get(name, ())
                if name not in state.identities
                else state.identities[name]
            )
            for given in (*(() if name in state.invited else own), *self.in_force.baseline):
                left: Capability | None = given
                for cut in state.cuts.get(name, ()):
                    left = None if left is None else left.without(cut)
                held += [] if left is None else [left]
        for grant in state.grants.values():
            if grant.id == grant_id:
                break
            held += grant.capabilities if grant.recipient == who else ()
        return held

    def sent_id(self, n: int) -> str:
        recent = list(self.space.state.recent)
        return recent[-1 - n % len(recent)] if recent else "none"

    def grant_id(self, n: int) -> str:
        grants = list(self.space.state.grants)
        return grants[n % len(grants)] if grants else "none"

    def stream_id(self, n: int) -> str:
        streams = list(self.space.state.streams)
        return streams[n % len(streams)] if streams else "none"


def test_whatever_happens() -> None:
    run_state_machine_as_test(
        AnyHistory, settings=settings(max_examples=30, stateful_step_count=40, deadline=None)
    )


@pytest.mark.slow
def test_whatever_happens_for_long() -> None:
    run_state_machine_as_test(
        AnyHistory, settings=settings(max_examples=100, stateful_step_count=80, deadline=None)
    )
