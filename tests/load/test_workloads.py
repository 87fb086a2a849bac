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
from tests.load.stage import BRIEF, asked_of, roster, seat, serving

from mew.load.__main__ import Order
from mew.load.churn import Idle, Joins, Storm
from mew.load.connections import LoadFailed, Place, secure_context
from mew.load.exchanges import Injection, Proposals, Streams
from mew.load.measurement import Outcome
from mew.load.workloads import Addressed, Checks, FanOut, Spaces, Workload, run

pytestmark = pytest.mark.slow


async def rounds_of(workload: Workload) -> Outcome:
    """What came of it, having gone the way of an order as JSON; each round has something in it."""
    order = msgspec.json.decode(msgspec.json.encode(Order(workload=workload)), type=Order)
    assert order.workload == workload
    told: list[int] = []
    (outcome,) = await run(order.workload, BRIEF, lambda: told.append(1))
    assert len(outcome.rounds) == len(told) == BRIEF.rounds
    assert all(one.count > 0 and one.wall_s > 0 for one in outcome.rounds)
    return outcome


def deliveries_each(outcome: Outcome) -> set[float]:
    return {one.deliveries / one.count for one in outcome.rounds}


def has_latency(outcome: Outcome) -> bool:
    return all(
        one.latency_ms_p50 is not None
        and one.latency_ms_p99 is not None
        and 0 < one.latency_ms_p50 <= one.latency_ms_p99
        for one in outcome.rounds
    )


async def test_fan_out_reaches_every_connection_once(place: Place) -> None:
    receivers = (seat("bob"), seat("cat"), seat("bob"))
    outcome = await rounds_of(FanOut(place=place, sender=seat("ann"), receivers=receivers))
    assert deliveries_each(outcome) == {4.0}
    assert has_latency(outcome)
    frame_bytes = 300 + 4
    assert all(one.bytes == one.deliveries * frame_bytes for one in outcome.rounds)


async def test_what_is_to_be_past_is_sent_before(place: Place) -> None:
    await rounds_of(FanOut(place=place, sender=seat("ann"), receivers=(seat("bob"),), past=1_000))
    assert len((await asked_of(place, "envelopes?kind=chat&limit=1000"))["envelopes"]) == 1_000


async def test_in_spaces_everybody_hears_everybody_there_and_nobody_elsewhere(place: Place) -> None:
    places = (place, replace(place, space="more"))
    members = (seat("ann"), seat("bob"), seat("cat"))
    outcome = await rounds_of(Spaces(places=places, members=members))
    assert deliveries_each(outcome) == {3.0}
    assert {one.count % 6 for one in outcome.rounds} == {0}


PAIRS = ((seat("ann"), seat("bob")), (seat("cat"), seat("dan")))


async def test_addressed_envelopes_reach_all_where_all_see_everything(place: Place) -> None:
    outcome = await rounds_of(Addressed(place=place, pairs=PAIRS, bystanders=(seat("one"),)))
    assert deliveries_each(outcome) == {5.0}


async def test_addressed_envelopes_reach_two_where_only_those_named_see_them(place: Place) -> None:
    asked = Addressed(
        place=replace(place, space="named"), pairs=PAIRS, everyone=False, bystanders=(seat("one"),)
    )
    assert deliveries_each(await rounds_of(asked)) == {2.0}


async def test_those_who_hold_more_patterns_take_turns_with_those_who_hold_fewer(place: Place) -> None:
    asked = Checks(place=place, callers={1: seat("one"), 10: seat("ten")}, asked=seat("executor"))
    outcomes = await run(asked, BRIEF)
    assert [outcome.workload for outcome in outcomes] == ["checks-1", "checks-10"]
    assert [deliveries_each(outcome) for outcome in outcomes] == [{2.0}, {2.0}]


@pytest.mark.parametrize(("space", "seen"), [("all", 9.0), ("named", 7.0)])
async def test_a_proposal_is_approved_executed_and_answered(place: Place, space: str, seen: float) -> None:
    asked = Proposals(
        place=replace(place, space=space),
        proposer=seat("proposer"),
        approver=seat("approver"),
        executor=seat("executor"),
    )
    outcome = await rounds_of(asked)
    assert deliveries_each(outcome) == {seen}
    assert has_latency(outcome)


async def test_a_proposer_who_may_do_it_himself_can_be_all_three(place: Place) -> None:
    ann = seat("ann")
    outcome = await rounds_of(Proposals(place=place, proposer=ann, approver=ann, executor=ann))
    assert deliveries_each(outcome) == {9.0}


async def test_frames_of_a_stream_reach_its_readers_and_it_is_closed(place: Place) -> None:
    readers = (seat("bob"), seat("cat"))
    outcome = await rounds_of(Streams(place=place, writer=seat("ann"), readers=readers, frame_bytes=70_000))
    assert deliveries_each(outcome) == {2.0}
    assert all(one.bytes == one.deliveries * (70_000 + 10) for one in outcome.rounds)
    assert (await roster(place))["ann"]["streams"] == []


async def test_those_who_storm_in_are_welcomed_and_gone_afterwards(place: Place) -> None:
    outcome = await rounds_of(Storm(place=place, seats=(seat("ann"), seat("bob")), at_once=3))
    assert has_latency(outcome)
    assert not any(one["connected"] for one in (await roster(place)).values())


async def test_idle_connections_are_counted_with_the_memory_they_take(place: Place) -> None:
    here = replace(BRIEF, server_pid=os.getpid())
    (outcome,) = await run(Idle(place=place, seats=(seat("bob"),) * 20), here)
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
        place = Place.at(gateway.url, "all")
        assert place.secure
        asked = FanOut(place=place, sender=seat("ann"), receivers=(seat("bob"),))
        with pytest.raises(LoadFailed, match="certificate"):
            await run(asked, BRIEF)
        secure_context.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", tls["cert"])
        assert deliveries_each(await rounds_of(asked)) == {2.0}
        await rounds_of(Injection(place=place, sender=seat("bob"), witness=seat("cat")))
    secure_context.cache_clear()


@pytest.mark.parametrize("which", range(4))
async def test_at_a_rate_no_sender_sends_more_and_each_is_timed(tmp_path: Path, which: int) -> None:
    few = {"envelopes_per_second": 100, "burst": 12}
    paced = replace(BRIEF, rate=80, round_s=0.1)
    async with serving(tmp_path, few) as gateway:
        place, ann = Place.at(gateway.url, "all"), seat("ann")
        asked: list[Workload] = [
            FanOut(place=place, sender=ann, receivers=(seat("bob"),)),
            Proposals(place=place, proposer=ann, approver=ann, executor=ann),
            Injection(place=place, sender=ann, witness=seat("bob")),
            Checks(place=place, callers={10: seat("ten")}, asked=seat("executor")),
        ]
        (outcome,) = await run(asked[which], paced)
    assert [one.count for one in outcome.rounds] == [8, 8]
    assert "80 a second" in outcome.about
    assert has_latency(outcome)


async def test_the_memory_of_a_gateway_elsewhere_is_not_guessed(place: Place) -> None:
    with pytest.raises(LoadFailed, match="on its own machine only"):
        await run(Idle(place=place, seats=(seat("bob"),)), BRIEF)


async def test_a_newcomer_joins_a_space_with_members(place: Place) -> None:
    members: Sequence[str] = ("bob", "cat", "dan")
    asked = Joins(place=place, newcomer=seat("ann"), members=tuple(map(seat, members)), times=3)
    outcome = await rounds_of(asked)
    assert outcome.about == "into a space of 3 members"
    assert {one.count for one in outcome.rounds} == {3}
    assert has_latency(outcome)


async def test_envelopes_over_http_are_seen_by_a_member(place: Place) -> None:
    asked = Injection(place=place, sender=seat("bob"), witness=seat("cat"), connections=3)
    outcome = await rounds_of(asked)
    assert deliveries_each(outcome) == {1.0}
    assert has_latency(outcome)


def ordered(workload: Workload) -> subprocess.CompletedProcess[bytes]:
    order = Order(workload=workload, effort=BRIEF, core=min(os.sched_getaffinity(0)))
    written = msgspec.json.encode(order)
    return subprocess.run([sys.executable, "-m", "mew.load"], input=written, capture_output=True, timeout=30)


@pytest.mark.e2e
def test_as_a_process_it_takes_an_order_and_gives_outcomes_or_the_reason_why_not(tmp_path: Path) -> None:
    with elsewhere(lambda: serving(tmp_path)) as gateway:
        place = Place.at(gateway.url, "all")
        done = ordered(FanOut(place=place, sender=seat("ann"), receivers=(seat("bob"),)))
        denied = ordered(FanOut(place=place, sender=replace(seat("ann"), token="wrong"), receivers=()))
    (outcome,) = msgspec.json.decode(done.stdout, type=list[Outcome])
    assert deliveries_each(outcome) == {2.0}
    assert (denied.returncode, denied.stdout) == (1, b"")
    assert b"this token is not one of space 'all'" in denied.stderr
