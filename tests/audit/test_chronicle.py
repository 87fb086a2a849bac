"""What a space showed, told again without going through it: the same envelopes, to the same people, in order."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.gateway.past import SPACE, WHO, eventful, past
from tests.space.table import Table, capabilities, envelope_of

from mew.audit.chronicle import Chronicle, Part
from mew.audit.picking import Picking, Wanted
from mew.protocol.capability import Capability
from mew.protocol.codec import decode, encode
from mew.protocol.envelope import ParticipantId
from mew.space import Deliver, Rules, Sent

RULES = Rules(
    id=SPACE, profiles={ParticipantId(who): capabilities(["*"]) for who in WHO}, delivery="addressed"
)


def decided(table: Table) -> list[tuple[int, list[Deliver]]]:
    """What the space itself decided to show, with the bytes."""
    return [
        (
            entry.seq,
            [
                Deliver(d.envelope, d.raw or encode(d.envelope), d.only)
                for d in some
                if isinstance(d, Deliver)
            ],
        )
        for entry, some in zip(table.entries, table.decided, strict=True)
    ]


def told(parts: Iterable[Part]) -> list[tuple[int, list[Deliver]]]:
    return [(entry.seq, shown) for part in parts for entry, shown in part.told]


@pytest.mark.parametrize("seed", range(5))
def test_it_tells_what_the_space_decided(tmp_path: Path, seed: int) -> None:
    table = eventful(seed, 120)
    with past(tmp_path / "past") as space:
        space.happen(table.entries, table.decided, turn=4)
        space.index()
        with Chronicle(space.folder) as chronicle:
            assert chronicle.covered(0, 120) == [(0, 120)]
            assert told(chronicle.forwards(0, 120)) == decided(table)
            assert told(chronicle.backwards(0, 120)) == decided(table)[::-1]
            assert told(chronicle.forwards(17, 30)) == decided(table)[17:30]


def test_where_nobody_knows_the_rules_any_more_what_has_addressees_was_for_them_alone(tmp_path: Path) -> None:
    table = Table(RULES)
    table.send("ann", "chat", {}, to=["bob"])
    table.send("ann", "chat", {})
    with past(tmp_path / "past") as space:
        space.happen(table.entries, table.decided)
        space.index()
        with Chronicle(space.folder) as chronicle:
            chronicle.index.rows("DELETE FROM facts WHERE kind = 'configured'")
            assert told(chronicle.forwards(0, 3)) == decided(table)


def test_nobody_can_send_other_rules(tmp_path: Path) -> None:
    """Of a kind that is refused there is a fact; it is not the operator's."""
    table = Table(RULES)
    table.send("zoe", "configured", {"note": "delivery: everyone"})
    table.send("ann", "configured", {"note": "delivery: everyone"})
    table.send("ann", "chat", {}, to=["bob"])
    with past(tmp_path / "past") as space:
        space.happen(table.entries, table.decided)
        space.index()
        with Chronicle(space.folder) as chronicle:
            assert chronicle.index.rows("SELECT count(*) FROM facts WHERE kind = 'configured'") == [(2,)]
            assert told(chronicle.forwards(0, 4)) == decided(table)
            assert decided(table)[-1][1][0].only == ("bob", "ann")


def test_an_envelope_is_found_by_its_id(tmp_path: Path) -> None:
    table = Table(RULES)
    joined = table.join("ann")
    table.send("ann", "chat", {"text": '"e9"'}, id="talk", correlation_id=["later"])
    table.send("ann", "mcp/request", {}, id="request")
    table.send("zoe", "chat", {}, id="refused")
    table.send("ann", "chat", {}, id='quoted "é"')
    table.send("ann", "chat", {}, id="again")
    table.send("ann", "chat", {}, id="again", lenient=True)
    (presence,) = [one.envelope.id for one in joined if isinstance(one, Deliver)]
    with past(tmp_path / "past") as space:
        space.happen(table.entries, table.decided)
        space.index()
        with Chronicle(space.folder) as chronicle:
            found = {
                one: chronicle.find(one, 8)
                for one in (
                    presence,
                    "talk",
                    "request",
                    "refused",
                    'quoted "é"',
                    "again",
                    "e9",
                    "later",
                    "gw-t-3.9",
                )
            }
            assert found == {
                presence: (2, 0),
                "talk": (3, 0),
                "request": (4, 0),
                "refused": None,
                'quoted "é"': (6, 0),
                "again": (8, 0),
                "e9": None,
                "later": None,
                "gw-t-3.9": None,
            }
            assert chronicle.find("again", 7) == (7, 0)
            assert chronicle.find("request", 3) is None


def test_who_writes_a_name_in_another_way_does_not_hide(tmp_path: Path) -> None:
    table = Table(RULES)
    table.send("ann", "chat", {})
    _, raw = envelope_of("bob", "weather/report", {}, id="e3")
    raw = raw.replace(b'"bob"', rb'"\u0062ob"').replace(b"weather/", rb"weather\/")
    table.apply(Sent(decode(raw), raw))
    with past(tmp_path / "past") as space:
        space.happen(table.entries, table.decided, turn=1)
        space.index()
        with Chronicle(space.folder) as chronicle:
            for wanted in (Wanted(sender="bob"), Wanted(kind=Capability.parse({"kind": "weather/*"}))):
                numbers = [number for number, _ in told(Picking(chronicle, wanted).parts(0, 3))]
                assert 3 in numbers
                assert 2 not in numbers
