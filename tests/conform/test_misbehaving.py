"""A gateway with the three faults of another implementation is accused of exactly these, and of nothing else."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from mew.conform import requirements
from mew.conform.ledger import Side
from mew.conform.outcome import CheckOutcome
from mew.conform.report import as_document, as_junit, requirement_verdicts
from mew.gateway.room import replies
from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room

from .mutants.breaks import Break, wrapping
from .mutants.deciding import refusing
from .mutants.members import forgetting_guests
from .wrong import gateway, outcomes

NEEDED: Final = {"chat": "text", "mcp/request": "method"}


async def deaf(right: Any, room: Room, connection: RoomConnection) -> None:
    """A new connection takes the place of the one there was, which stays open and hears nothing any more."""
    for other in room.connections.values():
        if other.who == connection.who:
            other.outbox.stop()
    await right(room, connection)


FAULTS: Final[dict[str, tuple[Break, set[str]]]] = {
    "guests lose their capabilities when they reconnect": (forgetting_guests, {"invite.capabilities-kept"}),
    "chats need a text, and requests a method": (
        refusing(lambda e: e.kind in NEEDED and not e.content.get(NEEDED[e.kind])),
        {"lazy.json-rpc-not-validated"},
    ),
    "a second connection deafens the first": (wrapping(Room, "enter", deaf), set()),
}


@pytest.mark.slow
@pytest.mark.parametrize("faults", [*([one] for one in FAULTS), list(FAULTS)], ids=" and ".join)
async def test_a_gateway_is_accused_of_exactly_what_it_does(
    faults: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in faults:
        FAULTS[name][0](monkeypatch)
    async with gateway(tmp_path) as config:
        results = (await outcomes(config)).values()
    accused = {
        one: result.why
        for result in results
        if result.outcome is CheckOutcome.FAIL
        for one in result.requirements
    }
    guilty = {requirement for name in faults for requirement in FAULTS[name][1]}
    assert accused.keys() == guilty, accused
    assert {one.blocked_by for one in results if one.outcome is CheckOutcome.BLOCKED} <= guilty


async def test_no_report_has_a_token_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[str] = []

    def remember(right: Any, *given: Any) -> Any:
        ack = right(*given)
        tokens.append(ack.content["token"])
        return ack

    wrapping(replies, "invite_ack", remember)(monkeypatch)
    refusing(lambda e: e.kind in ("mcp/proposal", "space/kick"))(monkeypatch)
    checks = (
        "members.the_invited_holds_what_it_was_invited_with",
        "members.the_kicked_are_out",
        "members.a_token_goes_to_the_inviter",
        "http_api.what_is_posted_has_its_effect",
    )
    async with gateway(tmp_path) as config:
        results = (await outcomes(config, *checks)).values()
    assert CheckOutcome.FAIL in {one.outcome for one in results}
    found = requirement_verdicts([one for one in requirements() if one.side is not Side.PARTICIPANT], results)
    report = json.dumps(as_document("ours", found)) + as_junit("ours", found).decode()
    assert len(tokens) > 2
    assert [one for one in (*tokens, *(role.token for role in config.roles.values())) if one in report] == []
