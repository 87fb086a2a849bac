"""A figure is given only where everybody got exactly what was due; and why there is none is said."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.load.gateway import BRIEF, Delivers, credentials, serving, wrong_gateway

from mew.load.connections import GatewayAddress, JoinRefused, LoadFailed, LoadRefused, RateLimited
from mew.load.exchanges import InjectionLoad, ProposalLoad
from mew.load.workloads import CapabilityLoad, FanOutLoad, Workload, run

IMPATIENT = replace(BRIEF, timeout_s=0.1)
FEW = {"envelopes_per_second": 1, "burst": 5}


def fan_out(address: GatewayAddress) -> FanOutLoad:
    return FanOutLoad(
        address=address, sender=credentials("ann"), receivers=(credentials("bob"), credentials("cat"))
    )


async def test_a_gateway_that_delivers_each_once_passes() -> None:
    async with wrong_gateway(lambda _number, _member: 1) as address:
        (outcome,) = await run(fan_out(address), BRIEF)
        assert {one.deliveries / one.count for one in outcome.rounds} == {3.0}


async def _why_none(delivers: Delivers) -> str:
    async with wrong_gateway(delivers) as address:
        with pytest.raises(LoadFailed) as failed:
            await run(fan_out(address), IMPATIENT)
    return str(failed.value)


async def test_a_lost_delivery_is_noticed() -> None:
    why = await _why_none(lambda number, member: 0 if (number, member) == (40, 2) else 1)
    assert "did not come" in why


async def test_a_delivery_that_comes_twice_is_noticed() -> None:
    why = await _why_none(lambda number, member: 2 if (number, member) == (40, 1) else 1)
    assert "got other bytes" in why


async def test_an_envelope_that_comes_twice_to_all_is_noticed() -> None:
    why = await _why_none(lambda number, _member: 2 if number == 40 else 1)
    assert "who should have got" in why


async def test_one_lost_and_another_twice_do_not_make_up_for_each_other() -> None:
    extra = {(40, 1): 2, (40, 2): 0}
    why = await _why_none(lambda number, member: extra.get((number, member), 1))
    assert "got other bytes" in why


async def test_proposals_that_nobody_answers_are_no_figure() -> None:
    proposer, approver, executor = map(credentials, ("proposer", "approver", "executor"))
    async with wrong_gateway(lambda number, _member: 0 if number == 50 else 1) as address:
        asked = ProposalLoad(address=address, proposer=proposer, approver=approver, executor=executor)
        with pytest.raises(LoadFailed, match="were not answered"):
            await run(asked, IMPATIENT)


def rate_limited(address: GatewayAddress) -> list[Workload]:
    return [
        fan_out(address),
        InjectionLoad(address=address, sender=credentials("bob"), witness=credentials("cat")),
    ]


@pytest.mark.parametrize("which", [0, 1], ids=["over WebSocket", "over HTTP"])
async def test_who_is_held_back_by_a_limit_is_told_which_to_raise(tmp_path: Path, which: int) -> None:
    async with serving(tmp_path, FEW) as gateway:
        asked = rate_limited(GatewayAddress.at(gateway.url, "all"))[which]
        with pytest.raises(RateLimited, match=r"raise limits\.envelopes_per_second and limits\.burst"):
            await run(asked, BRIEF)


async def test_what_one_may_not_do_is_no_figure(address: GatewayAddress) -> None:
    asked = CapabilityLoad(address=address, callers={10: credentials("one")}, asked=credentials("executor"))
    with pytest.raises(LoadRefused, match="capability_violation"):
        await run(asked, BRIEF)


async def test_as_many_connect_as_are_let_in_and_it_is_said(tmp_path: Path) -> None:
    limits = {"envelopes_per_second": 1_000_000, "burst": 1_000_000, "connections_per_participant": 2}
    async with serving(tmp_path, limits) as gateway:
        receivers = (credentials("bob"),) * 5
        asked = FanOutLoad(
            address=GatewayAddress.at(gateway.url, "all"), sender=credentials("ann"), receivers=receivers
        )
        (outcome,) = await run(asked, BRIEF)
    assert {one.deliveries / one.count for one in outcome.rounds} == {3.0}
    assert outcome.about.startswith("3 receivers (the gateway does not let one in: ")


async def test_a_wrong_token_is_told_as_the_gateway_tells_it(address: GatewayAddress) -> None:
    stranger = replace(fan_out(address), sender=replace(credentials("ann"), token="wrong"))
    with pytest.raises(JoinRefused, match="this token is not one of space 'all'") as denied:
        await run(stranger, BRIEF)
    assert (denied.value.status, denied.value.code) == (401, "bad_token")
    assert "wrong" not in repr(stranger)


async def test_where_nobody_listens_that_is_said() -> None:
    with pytest.raises(LoadFailed, match=r"no connection to 127\.0\.0\.1:1"):
        await run(fan_out(GatewayAddress("127.0.0.1", 1)), BRIEF)
