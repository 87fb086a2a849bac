"""Who holds what, from whom and until when; and what became of every grant there was."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from tests.audit.kept import as_indexed, drop_until, opened, save_snapshot
from tests.audit.office import OFFICE, Office, office
from tests.space.table import EPOCH, START, capabilities, envelope_of

from mew.audit.queries.effective_capabilities import (
    CapabilityOrigin,
    DelegationStep,
    EffectiveCapability,
    effective_capabilities,
    state_at,
)
from mew.audit.queries.grant_history import GrantEnd, GrantRecord, grant_history
from mew.audit.queries.search import facts_of_grants
from mew.audit.record.facts import Fact
from mew.audit.record.index import Index
from mew.journal.files.database import Damaged
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.journal.record import ChainLink
from mew.protocol.capability import short_text
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.space import Configured, Identified, Sent
from mew.space.state import ActiveGrant, SpaceState

Open = Callable[[], tuple[JournalReader, Index]]
READ = "mcp/request:tools/call:read_*"


@pytest.fixture
def table() -> Office:
    return office()


@pytest.fixture
def open_record(table: Office, tmp_path: Path) -> Iterator[Open]:
    """The journal of the table, when it is full, and its index."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(as_indexed(table.keep(tmp_path), OFFICE))


def held_by(state: SpaceState, who: str) -> dict[str, EffectiveCapability]:
    (holder,) = effective_capabilities(state, who)
    return {short_text(held.capability): held for held in holder.held}


# Who holds what.


def test_what_one_holds_without_a_grant_says_where_it_is_from(table: Office) -> None:
    held = held_by(table.space.state, "bob")
    assert {name: one.origin for name, one in held.items()} == {
        "chat": CapabilityOrigin.CONFIGURATION,
        "mcp/*": CapabilityOrigin.CONFIGURATION,
        "capability/*": CapabilityOrigin.CONFIGURATION,
        "mcp/response": CapabilityOrigin.BASELINE,
        "capability/grant-ack": CapabilityOrigin.BASELINE,
    }


def test_a_grant_is_followed_up_to_who_held_it_of_itself(table: Office) -> None:
    assert held_by(table.space.state, "bot")[READ].chain == (DelegationStep("ann"),)
    passed_on = held_by(table.space.state, "aide")[f"{READ}file"]
    assert passed_on.origin is CapabilityOrigin.GRANT
    assert passed_on.grant_id == "grant-aide"
    assert passed_on.chain == (DelegationStep("bot", "grant-bot"), DelegationStep("ann"))
    assert passed_on.until is None


def test_a_grant_with_an_end_says_when(table: Office) -> None:
    given = {"recipient": "aide", "capabilities": ["stream/*"], "ttl_seconds": 60}
    table.say("g", "ann", "capability/grant", given)
    assert held_by(table.space.state, "aide")["stream/*"].until == table.now + timedelta(seconds=60)


def test_what_was_revoked_of_the_configuration_is_gone_or_less(table: Office) -> None:
    assert "chat" not in held_by(table.space.state, "files")
    revoked = {"recipient": "bob", "capabilities": ["mcp/request"]}
    table.say("r", "ann", "capability/revoke", revoked)
    narrowed = [held for held in held_by(table.space.state, "bob").values() if held.narrowed]
    assert [(held.capability["kind"], held.origin) for held in narrowed] == [
        ("mcp/*", CapabilityOrigin.CONFIGURATION)
    ]


def test_who_was_invited_and_who_was_vouched_for(table: Office) -> None:
    table.say("i", "ann", "space/invite", {"participant_id": "eva", "initial_capabilities": ["chat"]})
    table.apply(Identified(ParticipantId("sso"), capabilities(["chat"])))
    (eva,) = effective_capabilities(table.space.state, "eva")
    assert eva.invited_by == "ann"
    assert held_by(table.space.state, "eva")["chat"].chain == (DelegationStep("ann"),)
    assert held_by(table.space.state, "sso")["chat"].origin is CapabilityOrigin.IDENTITY


def test_who_was_kicked_holds_nothing_and_is_not_listed(table: Office) -> None:
    table.say("k", "ann", "space/kick", {"participant_id": "aide"})
    assert "aide" not in [holder.participant for holder in effective_capabilities(table.space.state)]
    assert effective_capabilities(table.space.state, "nobody") == []


def test_a_chain_of_any_length_and_in_any_circle_ends() -> None:
    who, chat = ParticipantId, capabilities(["chat"])
    state = SpaceState()
    state.rules = office().rules
    for n in range(200):
        via = EnvelopeId(f"g{(n + 1) % 200}")
        state.grants[EnvelopeId(f"g{n}")] = ActiveGrant(
            EnvelopeId(f"g{n}"), who(f"p{n}"), who("bot"), chat, START, via=(via,)
        )
    chain = held_by(state, "bot")["chat"].chain
    assert len(chain) <= 65


def test_of_several_grants_that_were_needed_one_in_force_is_followed(table: Office) -> None:
    state = table.space.state
    two = (EnvelopeId("gone"), EnvelopeId("grant-bot"))
    state.grants[EnvelopeId("x")] = ActiveGrant(
        EnvelopeId("x"), ParticipantId("bot"), ParticipantId("files"), capabilities(["own"]), START, via=two
    )
    assert held_by(state, "files")["own"].chain == (
        DelegationStep("bot", "grant-bot", others=1),
        DelegationStep("ann"),
    )
    state.grants[EnvelopeId("x")] = ActiveGrant(
        EnvelopeId("x"),
        ParticipantId("bot"),
        ParticipantId("files"),
        capabilities(["own"]),
        START,
        via=two[:1],
    )
    assert held_by(state, "files")["own"].chain == (DelegationStep("bot", "gone", in_force=False),)


# At some time.


def test_at_every_moment_it_was_what_the_space_itself_held(table: Office, open_record: Open) -> None:
    journal, index = open_record()
    replica = Office()
    for entry, following in zip(table.entries, [*table.entries[1:], None], strict=True):
        replica.now = entry.at
        replica.apply(entry.event)
        if following is None or following.at > entry.at:
            assert effective_capabilities(state_at(journal, index, entry.at)) == effective_capabilities(
                replica.space.state
            )


def test_before_anything_happened_nobody_held_anything(
    open_record: Open,
) -> None:
    assert effective_capabilities(state_at(*open_record(), START - timedelta(days=1))) == []


def test_a_grant_is_over_when_its_time_is_whoever_noticed(table: Office, open_record: Open) -> None:
    given = {"recipient": "aide", "capabilities": ["stream/*"], "ttl_seconds": 60}
    table.say("g", "ann", "capability/grant", given)
    record = open_record()
    assert "stream/*" in held_by(state_at(*record, table.now + timedelta(seconds=59)), "aide")
    assert "stream/*" not in held_by(state_at(*record, table.now + timedelta(seconds=60)), "aide")


def test_of_a_time_that_is_no_longer_kept_it_says_so(table: Office, tmp_path: Path) -> None:
    with as_indexed(table.keep(tmp_path), OFFICE):
        pass
    drop_until(tmp_path, 12, OFFICE)
    with (
        opened(tmp_path, OFFICE) as (journal, index),
        pytest.raises(JournalUnavailable, match="no longer kept"),
    ):
        state_at(journal, index, table.now)


def test_a_snapshot_stands_for_what_is_no_longer_kept(table: Office, tmp_path: Path) -> None:
    replica = Office()
    for entry in table.entries[:24]:
        replica.now = entry.at
        replica.apply(entry.event)
    with as_indexed(table.keep(tmp_path), OFFICE) as (journal, _):
        row = journal.row(24)
    assert row is not None
    save_snapshot(tmp_path, ChainLink(24, row.hash), replica.space.state.snapshot(), OFFICE)
    drop_until(tmp_path, 24, OFFICE)
    with opened(tmp_path, OFFICE) as (journal, index):
        assert effective_capabilities(state_at(journal, index, table.now)) == effective_capabilities(
            table.space.state
        )


def test_an_index_that_says_otherwise_than_the_journal_is_found_out(open_record: Open, table: Office) -> None:
    vain = envelope_of("aide", "capability/grant", {"recipient": "bob", "capabilities": ["chat"]}, id="vain")
    table.apply(Sent(Envelopes.of(*vain), (None,)))  # as another node would have it, and refused at its place
    journal, index = open_record()
    index.rows("UPDATE all_facts SET refusal = '' WHERE id = 'vain'")
    with pytest.raises(Damaged, match="was accepted, and would not be now"):
        state_at(journal, index, table.now)


# What became of it.


def history(table: Office, open_record: Open) -> dict[str, GrantRecord]:
    _, index = open_record()
    found = grant_history(facts_of_grants(index, 0, 1000), table.space.state.grants)
    return {given.fact.id: given for given in found}


def test_every_grant_says_how_it_ended(table: Office, open_record: Open) -> None:
    found = history(table, open_record)
    assert {name: given.end for name, given in found.items()} == {
        "grant-bot": GrantEnd.IN_FORCE,
        "grant-aide": GrantEnd.IN_FORCE,
        "grant-short": GrantEnd.EXPIRED,
        "grant-old": GrantEnd.REVOKED,
        "grant-on": GrantEnd.TAKEN_BACK,
        "invite-dan": GrantEnd.REMOVED,
    }
    ended = {name: given.ended and given.ended.id for name, given in found.items()}
    assert (ended["grant-old"], ended["invite-dan"]) == ("revoke-old", "kick-dan")
    assert ended["grant-bot"] is None


def test_a_pattern_may_have_cut_it(table: Office, open_record: Open) -> None:
    table.say("cut", "ann", "capability/revoke", {"recipient": "bot", "capabilities": ["mcp/*"]})
    found = history(table, open_record)
    assert (found["grant-bot"].end, found["grant-aide"].end) == (GrantEnd.CUT, GrantEnd.TAKEN_BACK)
    assert found["grant-bot"].ended is not None
    assert found["grant-bot"].ended.id == "cut"


def test_a_pattern_ends_no_grant_whose_id_it_looks_like(table: Office, open_record: Open) -> None:
    table.say("x/y", "ann", "capability/grant", {"recipient": "bot", "capabilities": ["stream/*"]})
    table.say("looks", "ann", "capability/revoke", {"recipient": "bot", "capabilities": ["x/y"]})
    assert history(table, open_record)["x/y"].end is GrantEnd.IN_FORCE


def test_of_grants_with_one_id_each_has_its_end() -> None:
    def of(seq: int, kind: str, grant: str = "") -> Fact:
        return Fact(seq, 0, seq, f"capability/{kind}", "ann", "g", "chat", whom=("bot",), grant=grant)

    facts = [of(1, "grant"), of(2, "revoke", grant="g"), of(3, "grant"), of(4, "revoke", grant="other")]
    assert [given.end for given in grant_history(facts, ["g"])] == [GrantEnd.REVOKED, GrantEnd.IN_FORCE]
    assert [given.end for given in grant_history(facts, [])] == [GrantEnd.REVOKED, GrantEnd.UNKNOWN]


def test_who_leaves_the_configuration_loses_it(table: Office, open_record: Open) -> None:
    rules = table.rules
    profiles = {who: held for who, held in rules.profiles.items() if who != "aide"}
    table.apply(Configured(type(rules)(id=OFFICE, profiles=profiles, baseline=rules.baseline), EPOCH))
    assert history(table, open_record)["grant-aide"].end is GrantEnd.REMOVED


def test_what_ended_in_no_way_that_is_recorded_is_unknown(table: Office, open_record: Open) -> None:
    _, index = open_record()
    (first, *_) = grant_history(facts_of_grants(index, 0, 1000), [])
    assert first.end is GrantEnd.UNKNOWN
