"""`mew bench`, as it is typed: what it says it will do, what it found, and what it leaves behind, which is nothing."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands.conform.test_conform import elsewhere
from tests.e2e.process import run_gateway, secret
from tests.load.gateway import credentials, roster, serving
from typer.testing import CliRunner, Result

from mew.cli.commands.bench.plan import WorkloadName, plan
from mew.cli.commands.bench.report import as_json, show
from mew.cli.main import app
from mew.load.connections import GatewayAddress
from mew.load.invitations import Inviter
from mew.load.measurement import LoadResult, MeasuredRound
from mew.protocol.capability import Capability, CapabilitySet

BRIEFLY = ("--seconds", "0.1", "--yes")
FEW = {"envelopes_per_second": 20, "burst": 40}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with elsewhere(lambda: serving(tmp_path)) as gateway:
        yield gateway.url


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "300"}).invoke(app, ["bench", *words])


def as_ann(url: str, *words: str) -> Result:
    return run(url, "--space", "all", "--token", credentials("ann").token, *words)


def guests(url: str) -> list[str]:
    return [who for who in asyncio.run(roster(GatewayAddress.at(url, "all"))) if who.startswith("bench-")]


# What it measures.


@pytest.mark.slow
def test_all_workloads_are_measured_with_one_token_that_may_invite(url: str) -> None:
    told = as_ann(url, *BRIEFLY, "--json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert [one["workload"] for one in found["workloads"]] == [
        *("joins", "storm", "streams", "fan-out", "addressed", "proposals"),
        *("checks-1", "checks-10", "checks-100", "injection"),
    ]
    assert (found["space"], found["not_measured"], found["left_behind"]) == ("all", [], [])
    assert guests(url) == []


FIELDS = {
    *(
        "workload",
        "about",
        "counted",
        "per_s",
        "deliveries_per_s",
        "mb_per_s",
        "latency_ms_p50",
        "latency_ms_p99",
    ),
    *("gateway_cpu_us_each", "gateway_cpu_s_per_million_deliveries", "gateway_bytes_each", "gateway_share"),
    *("load_share", "bottleneck", "is_lower_bound", "rounds"),
}


def test_programs_are_told_everything_with_its_spread(url: str) -> None:
    told = as_ann(url, *BRIEFLY, "--json", "-w", "fan-out", "--receivers", "3")
    assert told.exit_code == 0, told.output
    (one,) = json.loads(told.stdout)["workloads"]
    assert set(one) == FIELDS
    assert one["about"] == "3 receivers, 300 bytes, 64 in flight"
    assert set(one["per_s"]) == {"median", "low", "high"}
    assert len(one["rounds"]) == 3
    assert all(each["deliveries"] == 3 * each["count"] for each in one["rounds"])
    assert one["gateway_cpu_us_each"]["low"] > 0, "the gateway is a process of ours, found by its port"


def test_people_are_told_in_a_table_who_was_the_bottleneck(url: str) -> None:
    told = as_ann(url, *BRIEFLY, "-w", "addressed")
    assert told.exit_code == 0, told.output
    head, row, _, about, spread = told.stdout.splitlines()
    assert head.split() == [
        "workload",
        "per",
        "second",
        "delivered/s",
        "p50",
        "ms",
        "p99",
        "ms",
        "gateway,",
        "each",
    ]
    assert row.split()[0] == "addressed"
    assert row.count("–") == 5, "each with the least and the most"
    assert about.startswith("addressed: 1 pair, all see it, each 32 in flight; limited by ")
    assert "busy" in about
    assert spread == "Medians of three rounds, with the least and the most."
    assert told.stderr == "addressed …\n"


def test_what_one_may_not_do_is_left_out_and_why(url: str) -> None:
    told = run(
        url, "--space", "all", "--token", credentials("dan").token, *BRIEFLY, "-w", "streams", "-w", "checks"
    )
    assert told.exit_code == 1, "it was asked for, and gave no figure"
    assert "streams: no figure: left out: you may open no stream" in told.stdout
    assert "checks: no figure: left out: it needs others" in told.stdout


def test_who_needs_more_connections_than_one_may_have_invites_others(url: str) -> None:
    told = as_ann(url, *BRIEFLY, "-w", "fan-out", "--receivers", "40")
    assert told.exit_code == 0, told.output
    assert "fan-out: 40 receivers" in told.stdout
    assert guests(url) == []


# What it says no to.


def test_nothing_is_sent_where_nobody_can_be_asked(url: str) -> None:
    told = as_ann(url)
    assert told.exit_code == 2
    assert (
        "this sends as many envelopes as the gateway takes, thousands a second, to space 'all' as ann"
        in told.stderr
    )
    assert "seen by nobody else now, and kept in the space's journal" in told.stderr
    assert "bench-1, bench-2, …) and removed again" in told.stderr
    assert "give --yes" in told.stderr


def test_a_limit_ends_it_with_the_one_to_raise_and_nobody_is_left(tmp_path: Path) -> None:
    with elsewhere(lambda: serving(tmp_path, FEW)) as gateway:
        told = as_ann(gateway.url, *BRIEFLY, "-w", "proposals", "-w", "injection")
        assert told.exit_code == 1
        assert "raise limits.envelopes_per_second and limits.burst in its space.yaml" in told.stdout
        assert guests(gateway.url) == []


def test_a_wrong_token_and_nobody_there_are_said_in_a_sentence(url: str) -> None:
    told = run(url, "--space", "all", "--token", "wrong", *BRIEFLY)
    assert (told.exit_code, told.stdout) == (2, "")
    assert "does not let one in: this token is not one of space 'all'" in told.stderr
    told = run("ws://127.0.0.1:1", "--token", "wrong", *BRIEFLY)
    assert told.exit_code == 2
    assert "no connection to 127.0.0.1:1" in told.stderr


def test_the_gateway_is_named_once(url: str) -> None:
    told = as_ann(url, "--gateway", url)
    assert told.exit_code == 2
    assert "named twice" in told.stderr


# The plan, and what is shown of it.


def host(*held: str) -> Inviter:
    one = Inviter(GatewayAddress("127.0.0.1", 1, "all"), credentials("ann"))
    one.holds = CapabilitySet([Capability.parse(written) for written in held])
    return one


async def test_one_token_that_may_do_everything_but_invite_is_all_of_them_itself() -> None:
    planned = {one.name: one for one in plan(host("chat", "mcp/*"), list(WorkloadName), 100)}
    assert [name for name, one in planned.items() if one.made is None] == ["streams", "checks"]
    assert not any(one.guests for one in planned.values())


async def test_workloads_that_send_little_go_before_those_that_meet_the_limits() -> None:
    order = [
        one.name
        for one in plan(host("*"), [WorkloadName.INJECTION, WorkloadName.FAN_OUT, WorkloadName.JOINS], 3)
    ]
    assert order == ["joins", "fan-out", "injection"]


def test_a_figure_that_the_load_limited_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    full = MeasuredRound(count=10, deliveries=10, wall_s=1.0, load_cpu_s=0.99)
    outcome = LoadResult(workload="fan-out", of="envelopes", about="3 receivers", rounds=(full,))
    (one,) = as_json([outcome], [])["workloads"]
    assert (one["bottleneck"], one["is_lower_bound"]) == ("load", True)
    show([outcome], [])
    told = capsys.readouterr().out
    assert "≥ 10" in told
    assert (
        "3 receivers; limited by mew bench itself, which was always busy, so it is at least that (≥)" in told
    )


# Interrupted.


@pytest.mark.e2e
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_who_was_invited_is_gone_after_an_interruption(tmp_path: Path, how: signal.Signals) -> None:
    token = secret("token-of-ann")
    config: dict[str, Any] = {
        "space": {"id": "all"},
        "participants": {"ann": {"tokens": [token], "capabilities": ["*"]}},
        "limits": {"envelopes_per_second": 1_000_000, "burst": 1_000_000},
    }
    (tmp_path / "ann.token").write_text(token)
    with run_gateway(tmp_path, config) as gateway:
        mew = str(Path(sys.executable).with_name("mew"))
        words = (gateway.ws_url, "--token-file", str(tmp_path / "ann.token"), "--yes", "--seconds", "60")
        bench = subprocess.Popen(
            [mew, "bench", *words, "-w", "proposals"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            gateway.wait_for("connected.*who=bench-3|connected.*bench-3", within_s=20)
            bench.send_signal(how)
            said, _ = bench.communicate(timeout=20)
        finally:
            bench.kill()
        assert bench.returncode == 130, said
        assert "the rest: no figure: interrupted" in said
        assert members(gateway.url, token) == ["ann"]


def members(url: str, token: str) -> list[str]:
    import http.client

    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    connection.request("GET", "/spaces/all/participants", headers={"Authorization": f"Bearer {token}"})
    listed = json.loads(connection.getresponse().read())["participants"]
    connection.close()
    return [one["id"] for one in listed]
