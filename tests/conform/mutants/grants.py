"""Gateways that grant and revoke wrongly."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec import UNSET, Struct
from msgspec.structs import replace

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.capability import Capability, ProofBudget
from mew.protocol.envelope import ParticipantId
from mew.protocol.json import decode_json
from mew.protocol.kinds import Grant, Kind, Revoke
from mew.space import grants, holdings, presence

from .breaks import Break, Mutant, of, ruled
from .deciding import allowing, allowing_again
from .doors import arriving, leaking

__all__ = ["MUTANTS"]


# Wrong ways to grant.


class Loose(Struct):
    """A grant of which nothing is required."""

    recipient: Any = None
    capabilities: Any = None


def to_the_addressees(state: Any, entry: Any, sent: Any, asked: Loose) -> Any:
    for who in sent.envelope.to:
        grants.give(state, entry, sent, who, [one for one in asked.capabilities or () if one])
        holdings.changed(state, who)
    return []


def something_by_default(state: Any, entry: Any, sent: Any, asked: Loose) -> Any:
    if asked.recipient in state.members and not asked.capabilities:
        grants.give(state, entry, sent, asked.recipient, [{"kind": "mcp/proposal"}])
        holdings.changed(state, asked.recipient)
    return []


def to_everyone(state: Any, entry: Any, sent: Any, asked: Grant) -> Any:
    for who in state.members:
        grants.give(state, entry, sent, who, asked.capabilities)
        granted = replace(state.grants.pop(sent.envelope.id), id=f"{sent.envelope.id} {who}")
        state.grants[granted.id] = granted
        holdings.changed(state, who)
    return []


def when_it_comes_back(state: Any, entry: Any, sent: Any, asked: Grant) -> Any:
    grants.give(state, entry, sent, asked.recipient, asked.capabilities)  # type: ignore[arg-type]
    return []


def instead_of_the_last(state: Any, entry: Any, sent: Any, asked: Grant) -> Any:
    for granted in [one for one in state.grants.values() if one.recipient == asked.recipient][1:]:
        del state.grants[granted.id]  # the first is what it was invited with
    return grants.grant(state, entry, sent, asked)


def by_kind_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    right = grants.give

    def give(state: Any, entry: Any, sent: Any, who: Any, written: Any, *more: Any) -> None:
        right(state, entry, sent, who, [{"kind": one["kind"]} for one in written], *more)

    monkeypatch.setattr(grants, "give", give)


def without_wildcards(monkeypatch: pytest.MonkeyPatch) -> None:
    right = grants.give

    def give(state: Any, entry: Any, sent: Any, who: Any, written: Any, *more: Any) -> None:
        right(state, entry, sent, who, [one for one in written if "*" not in str(one)], *more)

    monkeypatch.setattr(grants, "give", give)


def anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "check_gift", lambda *_: None)


def any_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    right = grants.check_gift

    def check_gift(state: Any, envelope: Any, recipient: Any, written: Any) -> Any:
        held = {one.source["kind"] for one in holdings.held(state, envelope.sender)}
        return (
            None if {one["kind"] for one in written} <= held else right(state, envelope, recipient, written)
        )

    monkeypatch.setattr(grants, "check_gift", check_gift)


def told_and_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses a grant that is too wide, and then it counts all the same."""
    right = grants.check_gift

    def check_gift(state: Any, envelope: Any, recipient: Any, written: Any) -> Any:
        refused = right(state, envelope, recipient, written)
        if refused is not None:
            capabilities = (*holdings.held(state, recipient), *map(Capability.parse, written))
            state.held[recipient] = type(holdings.held(state, recipient))(capabilities)
        return refused

    monkeypatch.setattr(grants, "check_gift", check_gift)


def breaking_down(room: Room, connection: RoomConnection, text: bytes) -> bytes | None:
    """What reads a grant fails where its recipient is an object, and with it the connection."""
    if b"capability/grant" in text and isinstance(decode_json(text)["payload"].get("recipient"), dict):
        connection.close(1011, "internal error")
        return None
    return text


# Wrong ways to revoke.


def all_there_are(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
    for granted in [one for one in state.grants.values() if one.recipient == asked.recipient][1:]:
        del state.grants[granted.id]
    return presence.rewelcome(state, entry, asked.recipient)  # type: ignore[arg-type]


def the_last(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
    for granted in [one for one in state.grants.values() if one.recipient == asked.recipient][-1:]:
        del state.grants[granted.id]
    return presence.rewelcome(state, entry, asked.recipient)  # type: ignore[arg-type]


def all_that_are_equal(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
    gone = state.grants[asked.grant_id].capabilities
    for granted in [one for one in state.grants.values() if one.capabilities == gone]:
        del state.grants[granted.id]
    return presence.rewelcome(state, entry, asked.recipient)  # type: ignore[arg-type]


def the_first_capability(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
    if isinstance(asked.grant_id, str):
        granted = state.grants[asked.grant_id]
        state.grants[granted.id] = replace(granted, capabilities=granted.capabilities[1:])
    return presence.rewelcome(state, entry, asked.recipient)  # type: ignore[arg-type]


def when_it_goes(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
    if isinstance(asked.grant_id, str):
        del state.grants[asked.grant_id]
    return []


def with_the_next_change(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
    kept = holdings.held(state, asked.recipient)  # type: ignore[arg-type]
    decisions = grants.revoke(state, entry, sent, asked)
    state.held[asked.recipient] = kept
    return decisions


def cutting(cut: Callable[[Any, list[Any], tuple[Capability, ...]], None]) -> Break:
    """Take a pattern from the grants of somebody in another way."""

    def revoke(state: Any, entry: Any, sent: Any, asked: Revoke) -> Any:
        if asked.capabilities is UNSET:
            return grants.revoke(state, entry, sent, asked)
        cuts = tuple(map(Capability.parse, asked.capabilities))
        cut(state, [one for one in state.grants.values() if one.recipient == asked.recipient], cuts)
        return grants.settle(state, entry, [ParticipantId(asked.recipient)], cuts=cuts)

    return _revoking(revoke)


def what_is_written_alike(state: Any, given: list[Any], cuts: tuple[Capability, ...]) -> None:
    for granted in given:
        kept = tuple(one for one in granted.capabilities if one not in cuts)
        state.grants[granted.id] = replace(granted, capabilities=kept)


def from_one_grant(state: Any, given: list[Any], cuts: tuple[Capability, ...]) -> None:
    for granted in given:
        kept = holdings.narrowed(granted.capabilities, cuts, ProofBudget(STEPS))
        if kept != granted.capabilities:
            state.grants[granted.id] = replace(granted, capabilities=kept)
            return


def whole_grants(state: Any, given: list[Any], cuts: tuple[Capability, ...]) -> None:
    for granted in given:
        if holdings.narrowed(granted.capabilities, cuts, ProofBudget(STEPS)) != granted.capabilities:
            del state.grants[granted.id]


def _revoking(act: Any) -> Break:
    return ruled(Kind.REVOKE, act=act)


def _granting(act: Any, **parts: Any) -> Break:
    return ruled(Kind.GRANT, act=act, **parts)


NEEDS = "grants.only_who_may_grant_does"
LACKS = "grants.nobody_grants_a_kind_that_it_lacks"
LACKS_PAYLOAD = "grants.nobody_grants_a_payload_that_it_lacks"
PAYLOAD = "grants.a_grant_names_recipient_and_capabilities"
ADDS = "grants.a_grant_counts_on_the_connections_there_are"
PATTERNS = "grants.granted_capabilities_are_patterns"
BY_ID = "grants.a_grant_is_revoked_by_the_id_of_its_envelope"
ONLY_THAT = "grants.only_the_grant_of_that_id_is_revoked"
ITS_RECIPIENT = "grants.a_revocation_concerns_its_recipient_alone"
BY_PATTERN = "grants.a_pattern_revokes_all_that_matches"
AT_ONCE = "grants.a_revocation_counts_at_once"
GRANT, REVOKE = "capability/grant", "capability/revoke"
STEPS: Final = 100_000

MUTANTS: Final = (
    Mutant(
        "grant.needs-capability", NEEDS, allowing(of(GRANT, sender="peer")), "refuses the capability/grant"
    ),
    Mutant(
        "grant.needs-capability", NEEDS, allowing(of(GRANT, sender="guest")), "refuses the capability/grant"
    ),
    Mutant("grant.needs-capability", NEEDS, leaking(of(GRANT)), "refuses the capability/grant"),
    Mutant("grant.only-what-you-hold", LACKS, anything, "who may not send it (§3.6.6)"),
    Mutant("grant.only-what-you-hold", LACKS, told_and_done, "who may not send it (§3.6.6)"),
    Mutant("grant.only-what-you-hold", LACKS_PAYLOAD, any_payload, "who may not send it (§3.6.6)"),
    Mutant(
        "grant.only-what-you-hold",
        "grants.nobody_invites_with_what_it_lacks",
        ruled(Kind.INVITE, check=None),
        "by an invitation of",
    ),
    Mutant(
        "grant.payload",
        PAYLOAD,
        _granting(to_the_addressees, shape=Loose, check=None),
        "by a grant with the payload {'capabilities'",
    ),
    Mutant(
        "grant.payload",
        PAYLOAD,
        _granting(something_by_default, shape=Loose, check=None),
        "by a grant with the payload {'recipient'",
    ),
    Mutant("grant.payload", PAYLOAD, arriving(breaking_down), "closed with code {1011}"),
    Mutant("grant.adds", ADDS, _granting(lambda *_: []), "after it was granted {'kind': 'mcp/proposal'}"),
    Mutant("grant.adds", ADDS, _granting(when_it_comes_back), "after it was granted"),
    Mutant("grant.adds", ADDS, _granting(to_the_addressees), "after it was granted"),
    Mutant("grant.adds", ADDS, _granting(to_everyone), "by a grant to guest-"),
    Mutant("grant.patterns", PATTERNS, by_kind_alone, "may not send by a grant of tools/call with read_file"),
    Mutant("grant.patterns", PATTERNS, without_wildcards, "by a grant of list_* and reasoning/*"),
    Mutant(
        "grant.cumulative", "grants.grants_add_up", _granting(instead_of_the_last), "may send mcp/proposal"
    ),
    Mutant("grant.id-is-grant-id", BY_ID, _revoking(all_there_are), "after another grant than the one of it"),
    Mutant("grant.id-is-grant-id", BY_ID, _revoking(the_last), "after the grant of it was revoked"),
    Mutant("grant.id-is-grant-id", ONLY_THAT, _revoking(all_that_are_equal), "by a second grant of it"),
    Mutant("grant.id-is-grant-id", ONLY_THAT, ruled(Kind.REVOKE, check=None, act=the_last), "no grant of it"),
    Mutant("revoke.by-grant-id", BY_ID, _revoking(lambda *_: []), "after the grant of it was revoked"),
    Mutant(
        "revoke.by-grant-id", ITS_RECIPIENT, _revoking(the_first_capability), "the grant of it was revoked"
    ),
    Mutant(
        "revoke.by-grant-id",
        ITS_RECIPIENT,
        allowing(of(REVOKE, sender="peer")),
        "refuses the capability/revoke",
    ),
    Mutant("revoke.by-pattern", BY_PATTERN, cutting(what_is_written_alike), "'tools/*'}}] was revoked"),
    Mutant("revoke.by-pattern", BY_PATTERN, cutting(from_one_grant), "may not send after"),
    Mutant("revoke.by-pattern", BY_PATTERN, cutting(whole_grants), "was revoked, which it does not fit"),
    Mutant("revoke.immediate", AT_ONCE, _revoking(when_it_goes), "a third was shown that it was revoked"),
    Mutant(
        "revoke.immediate", AT_ONCE, _revoking(with_the_next_change), "a third was shown that it was revoked"
    ),
    Mutant("revoke.immediate", AT_ONCE, allowing_again(), "a third was shown that it was revoked"),
)
