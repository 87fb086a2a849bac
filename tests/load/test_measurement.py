"""Who was the bottleneck, what a figure comes to, and what the machine tells."""

import gc
import os
import socket

import pytest

from mew.load.connections import Credentials, GatewayAddress
from mew.load.measurement import (
    Bottleneck,
    LoadResult,
    MeasuredRound,
    MeasurementPlan,
    Meter,
    Spread,
    envelopes_for,
    listener,
    memory_bytes,
    own_usage,
    quantiles_ms,
    usage,
)


def measured(load_cpu_s: float, server_cpu_s: float | None, *, waited_s: float = 0.0) -> MeasuredRound:
    return MeasuredRound(
        count=100,
        deliveries=200,
        wall_s=1.0,
        load_cpu_s=load_cpu_s,
        load_waited_s=waited_s,
        server_cpu_s=server_cpu_s,
    )


@pytest.mark.parametrize(
    ("one", "who"),
    [
        (measured(0.5, 0.95), Bottleneck.GATEWAY),
        (measured(0.99, 0.95), Bottleneck.GATEWAY),
        (measured(0.95, 0.5), Bottleneck.LOAD),
        (measured(0.95, None), Bottleneck.LOAD),
        (measured(0.5, None, waited_s=0.45), Bottleneck.LOAD),
        (measured(0.5, 0.5), Bottleneck.NOBODY),
        (measured(0.5, None), Bottleneck.NOT_THE_LOAD),
    ],
)
def test_who_was_always_busy_is_the_bottleneck(one: MeasuredRound, who: Bottleneck) -> None:
    assert one.bottleneck is who


def test_one_round_that_the_load_limited_makes_it_a_lower_bound() -> None:
    def outcome(*rounds: MeasuredRound) -> LoadResult:
        return LoadResult(workload="fan-out", of="envelopes", about="", rounds=rounds)

    assert outcome(measured(0.5, 0.95), measured(0.95, 0.5)).is_lower_bound
    assert not outcome(measured(0.5, 0.95), measured(0.5, 0.5)).is_lower_bound


def test_costs_are_the_gateways_cpu_for_one_and_for_a_million_deliveries() -> None:
    one = measured(0.5, 0.2)
    assert one.cpu_us_each == pytest.approx(2000)
    assert one.cpu_s_per_million == pytest.approx(1000)
    assert measured(0.5, None).cpu_us_each is None


def test_a_spread_is_a_median_and_its_extremes_or_nothing() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([3.0, None]) is None
    assert Spread.of([]) is None


def test_quantiles_are_of_all_that_were_taken() -> None:
    assert quantiles_ms([n / 1000 for n in range(1, 101)]) == (51.0, 100.0)
    assert quantiles_ms([]) == (None, None)


async def test_a_warm_up_grows_until_a_phase_takes_its_time() -> None:
    seen = []

    async def phase(number: int) -> None:
        seen.append(number)

    wanted = await envelopes_for(phase, MeasurementPlan(round_s=0.1, warm_up_s=0.01), at_least=4)
    assert seen[:2] == [4, 8]
    assert wanted >= 4


def test_a_meter_reads_this_process_and_leaves_the_collector_as_it_was() -> None:
    was = gc.isenabled()
    meter = Meter(os.getpid())
    meter.start()
    sum(range(200_000))
    found = meter.stop(1, 1)
    meter.give_up()
    assert gc.isenabled() is was
    assert found.server_cpu_s is not None
    assert found.server_cpu_s > 0
    assert found.load_cpu_s > 0


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert usage(2**22 + 1) is None
    assert memory_bytes(2**22 + 1) is None


def test_the_machine_knows_this_process_and_who_listens() -> None:
    own = usage(os.getpid())
    assert own is not None
    assert own_usage().cpu_s > 0
    assert (memory_bytes(os.getpid()) or 0) > 1_000_000
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert listener(port) == os.getpid()
    assert listener(port) is None


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ws://127.0.0.1:8080", GatewayAddress("127.0.0.1", 8080)),
        ("http://[::1]:9/ws", GatewayAddress("::1", 9)),
        ("wss://example.org/mew/", GatewayAddress("example.org", 443, secure=True, path="/mew")),
    ],
)
def test_a_place_is_read_from_a_url(url: str, address: GatewayAddress) -> None:
    assert GatewayAddress.at(url) == address


def test_what_is_no_gateway_is_said() -> None:
    with pytest.raises(ValueError, match="not the URL of a gateway"):
        GatewayAddress.at("127.0.0.1:8080")


def test_a_request_names_the_space_and_has_the_token_in_its_header() -> None:
    address, credentials = GatewayAddress("::1", 9, "a b", path="/mew"), Credentials("ann@home", "secret")
    assert address.upgrade(credentials).startswith(b"GET /mew/ws?space=a+b HTTP/1.1\r\nHost: [::1]:9\r\n")
    assert b"POST /mew/participants/ann%40home/messages?space=a+b" in address.post(credentials, 3)
    assert b"Authorization: Bearer secret\r\n" in address.post(credentials, 3)
    assert "secret" not in repr(credentials)
