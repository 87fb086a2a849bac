"""Every workload on a real gateway: what it counts is what happened, to the last envelope."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.certificates import make_certificate
from tests.cli.commands.conform.test_conform import elsewhere
from tests.load.gateway import BRIEF, asked_of, credentials, roster, serving

from mew.load.__main__ import Order
from mew.load.churn import IdleLoad, JoinLoad, StormLoad
from mew.load.connections import GatewayAddress, LoadFailed, secure_context
from mew.load.exchanges import InjectionLoad, ProposalLoad, StreamLoad
from mew.load.measurement import LoadResult
from mew.load.workloads import AddressedLoad, CapabilityLoad, FanOutLoad, SpacesLoad, Workload, run

pytestmark = pytest.mark.slow


async def rounds_of(workload: Workload) -> LoadResult:
    """What came of it, having gone the way of an order as JSON; each round has something in it."""
    order = msgspec.json.decode(msgspec.json.encode(Order(workload=workload)), type=Order)
    assert order.workload == workload
    told: list[int] = []
    (outcome,) = await run(order.workload, BRIEF, lambda: told.append(1))
    assert len(outcome.rounds) == len(told) == BRIEF.rounds
    assert all(one.count > 0 and one.wall_s > 0 for one in outcome.rounds)
    return outcome


def deliveries_each(outcome: LoadResult) -> set[float]:
    return {one.deliveries / one.count for one in outcome.rounds}


def has_latency(outcome: LoadResult) -> bool:
    return all(
        one.latency_ms_p50 is not None
        and one.latency_ms_p99 is not None
        and 0 < one.latency_ms_p50 <= one.latency_ms_p99
        for one in outcome.rounds
    )


async def test_fan_out_reaches_every_connection_once(address: GatewayAddress) -> None:
    receivers = (credentials("bob"), credentials("cat"), credentials("bob"))
    outcome = await rounds_of(FanOutLoad(address=address, sender=credentials("ann"), receivers=receivers))
    assert deliveries_each(outcome) == {4.0}
    assert has_latency(outcome)
    frame_bytes = 300 + 4
    assert all(one.bytes == one.deliveries * frame_bytes for one in outcome.rounds)


async def test_what_is_to_be_past_is_sent_before(address: GatewayAddress) -> None:
    await rounds_of(
        FanOutLoad(address=address, sender=credentials("ann"), receivers=(credentials("bob"),), past=1_000)
    )
    assert len((await asked_of(address, "envelopes?kind=chat&limit=1000"))["envelopes"]) == 1_000


async def test_in_spaces_everybody_hears_everybody_there_and_nobody_elsewhere(
    address: GatewayAddress,
) -> None:
    addresses = (address, replace(address, space="more"))
    members = (credentials("ann"), credentials("bob"), credentials("cat"))
    outcome = await rounds_of(SpacesLoad(addresses=addresses, members=members))
    assert deliveries_each(outcome) == {3.0}
    assert {one.count % 6 for one in outcome.rounds} == {0}


PAIRS = ((credentials("ann"), credentials("bob")), (credentials("cat"), credentials("dan")))


async def test_addressed_envelopes_reach_all_where_all_see_everything(address: GatewayAddress) -> None:
    outcome = await rounds_of(AddressedLoad(address=address, pairs=PAIRS, bystanders=(credentials("one"),)))
    assert deliveries_each(outcome) == {5.0}


async def test_addressed_envelopes_reach_two_where_only_those_named_see_them(address: GatewayAddress) -> None:
    asked = AddressedLoad(
        address=replace(address, space="named"), pairs=PAIRS, everyone=False, bystanders=(credentials("one"),)
    )
    assert deliveries_each(await rounds_of(asked)) == {2.0}


async def test_those_who_hold_more_patterns_take_turns_with_those_who_hold_fewer(
    address: GatewayAddress,
) -> None:
    asked = CapabilityLoad(
        address=address,
        callers={1: credentials("one"), 10: credentials("ten")},
        asked=credentials("executor"),
    )
    outcomes = await run(asked, BRIEF)
    assert [outcome.workload for outcome in outcomes] == ["checks-1", "checks-10"]
    assert [deliveries_each(outcome) for outcome in outcomes] == [{2.0}, {2.0}]


@pytest.mark.parametrize(("space", "seen"), [("all", 9.0), ("named", 7.0)])
async def test_a_proposal_is_approved_executed_and_answered(
    address: GatewayAddress, space: str, seen: float
) -> None:
    asked = ProposalLoad(
        address=replace(address, space=space),
        proposer=credentials("proposer"),
        approver=credentials("approver"),
        executor=credentials("executor"),
    )
    outcome = await rounds_of(asked)
    assert deliveries_each(outcome) == {seen}
    assert has_latency(outcome)


async def test_a_proposer_who_may_do_it_himself_can_be_all_three(address: GatewayAddress) -> None:
    ann = credentials("ann")
    outcome = await rounds_of(ProposalLoad(address=address, proposer=ann, approver=ann, executor=ann))
    assert deliveries_each(outcome) == {9.0}


async def test_frames_of_a_stream_reach_its_readers_and_it_is_closed(address: GatewayAddress) -> None:
    readers = (credentials("bob"), credentials("cat"))
    outcome = await rounds_of(
        StreamLoad(address=address, writer=credentials("ann"), readers=readers, frame_bytes=70_000)
    )
    assert deliveries_each(outcome) == {2.0}
    assert all(one.bytes == one.deliveries * (70_000 + 10) for one in outcome.rounds)
    assert (await roster(address))["ann"]["streams"] == []


async def test_those_who_storm_in_are_welcomed_and_gone_afterwards(address: GatewayAddress) -> None:
    outcome = await rounds_of(
        StormLoad(address=address, seats=(credentials("ann"), credentials("bob")), at_once=3)
    )
    assert has_latency(outcome)
    assert not any(one["connected"] for one in (await roster(address)).values())


async def test_idle_connections_are_counted_with_the_memory_they_take(address: GatewayAddress) -> None:
    here = replace(BRIEF, server_pid=os.getpid())
    (outcome,) = await run(IdleLoad(address=address, seats=(credentials("bob"),) * 20), here)
    (one,) = outcome.rounds
    assert one.count == 20
    assert one.server_grew_bytes is not None


async def test_a_gateway_behind_tls_is_measured_and_one_that_cannot_be_trusted_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificate(tmp_path)
    tls = {"cert": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
    secure_context.cache_clear()
    async with serving(tmp_path, tls=tls) as gateway:
        address = GatewayAddress.at(gateway.url, "all")
        assert address.secure
        asked = FanOutLoad(address=address, sender=credentials("ann"), receivers=(credentials("bob"),))
        with pytest.raises(LoadFailed, match="certificate"):
            await run(asked, BRIEF)
        secure_context.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", tls["cert"])
        assert deliveries_each(await rounds_of(asked)) == {2.0}
        await rounds_of(InjectionLoad(address=address, sender=credentials("bob"), witness=credentials("cat")))
    secure_context.cache_clear()


@pytest.mark.parametrize("which", range(4))
async def test_at_a_rate_no_sender_sends_more_and_each_is_timed(tmp_path: Path, which: int) -> None:
    few = {"envelopes_per_second": 100, "burst": 12}
    paced = replace(BRIEF, rate=80, round_s=0.1)
    async with serving(tmp_path, few) as gateway:
        address, ann = GatewayAddress.at(gateway.url, "all"), credentials("ann")
        asked: list[Workload] = [
            FanOutLoad(address=address, sender=ann, receivers=(credentials("bob"),)),
            ProposalLoad(address=address, proposer=ann, approver=ann, executor=ann),
            InjectionLoad(address=address, sender=ann, witness=credentials("bob")),
            CapabilityLoad(address=address, callers={10: credentials("ten")}, asked=credentials("executor")),
        ]
        (outcome,) = await run(asked[which], paced)
    assert [one.count for one in outcome.rounds] == [8, 8]
    assert "80 a second" in outcome.about
    assert has_latency(outcome)


async def test_the_memory_of_a_gateway_elsewhere_is_not_guessed(address: GatewayAddress) -> None:
    with pytest.raises(LoadFailed, match="on its own machine only"):
        await run(IdleLoad(address=address, seats=(credentials("bob"),)), BRIEF)


async def test_a_newcomer_joins_a_space_with_members(address: GatewayAddress) -> None:
    members: Sequence[str] = ("bob", "cat", "dan")
    asked = JoinLoad(
        address=address, newcomer=credentials("ann"), members=tuple(map(credentials, members)), times=3
    )
    outcome = await rounds_of(asked)
    assert outcome.about == "into a space of 3 members"
    assert {one.count for one in outcome.rounds} == {3}
    assert has_latency(outcome)


async def test_envelopes_over_http_are_seen_by_a_member(address: GatewayAddress) -> None:
    asked = InjectionLoad(
        address=address, sender=credentials("bob"), witness=credentials("cat"), connections=3
    )
    outcome = await rounds_of(asked)
    assert deliveries_each(outcome) == {1.0}
    assert has_latency(outcome)


def ordered(workload: Workload) -> subprocess.CompletedProcess[bytes]:
    order = Order(workload=workload, plan=BRIEF, core=min(os.sched_getaffinity(0)))
    written = msgspec.json.encode(order)
    return subprocess.run([sys.executable, "-m", "mew.load"], input=written, capture_output=True, timeout=30)


@pytest.mark.e2e
def test_as_a_process_it_takes_an_order_and_gives_outcomes_or_the_reason_why_not(tmp_path: Path) -> None:
    with elsewhere(lambda: serving(tmp_path)) as gateway:
        address = GatewayAddress.at(gateway.url, "all")
        done = ordered(
            FanOutLoad(address=address, sender=credentials("ann"), receivers=(credentials("bob"),))
        )
        denied = ordered(
            FanOutLoad(address=address, sender=replace(credentials("ann"), token="wrong"), receivers=())
        )
    (outcome,) = msgspec.json.decode(done.stdout, type=list[LoadResult])
    assert deliveries_each(outcome) == {2.0}
    assert (denied.returncode, denied.stdout) == (1, b"")
    assert b"this token is not one of space 'all'" in denied.stderr
