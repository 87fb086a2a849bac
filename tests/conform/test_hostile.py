"""Against what is no gateway the kit ends, soon and with failures, and never with an error of its own."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mew.conform.outcome import CheckOutcome, CheckResult
from mew.conform.runner import all_checks, run_checks

from .hostile import HOSTILE, serving
from .mutants.breaks import Said
from .mutants.doors import saying
from .wrong import gateway

TIMEOUT_S: Final = 0.02
ENOUGH_S: Final = 60
SOME: Final = all_checks()[::5]
CHOSEN: Final = {"closes as it likes": all_checks(), "sends without end": SOME[::3]}


def complaints(logged: pytest.LogCaptureFixture) -> list[str]:
    """What the loop says of tasks and connections that were forgotten."""
    loop = (record for record in logged.records if record.name == "asyncio")
    return [record.getMessage() for record in loop if record.levelno >= logging.ERROR]


def wrong_all_over(results: Iterable[CheckResult], logged: pytest.LogCaptureFixture) -> None:
    """Nothing passes, each says why, and the loop has nothing to complain of."""
    passed = [one.check for one in results if one.outcome is CheckOutcome.PASS]
    assert passed == []
    assert CheckOutcome.FAIL in {one.outcome for one in results}
    assert all(one.why for one in results)
    assert complaints(logged) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
async def test_the_kit_ends_though_the_gateway(name: str, caplog: pytest.LogCaptureFixture) -> None:
    asyncio.get_running_loop().set_debug(False)
    async with asyncio.timeout(ENOUGH_S), serving(HOSTILE[name], TIMEOUT_S) as config:
        results = await run_checks(config, CHOSEN.get(name, SOME))
    wrong_all_over(results, caplog)


async def test_where_nobody_is_let_in_the_kit_gives_up() -> None:
    async with serving(HOSTILE["slams the door"], TIMEOUT_S) as config:
        results = await run_checks(config, all_checks())
    assert len(results) == len(all_checks())
    played = [one for one in results if "not played" not in one.why]
    assert len(played) < 10
    assert {one.outcome for one in results} == {CheckOutcome.FAIL, CheckOutcome.BLOCKED}
    blocked = [one for one in results if one.outcome is CheckOutcome.BLOCKED]
    assert {one.blocked_by for one in blocked} == {"welcome.sent"}
    assert len(blocked) > len(results) - 10


def emptied(said: Said) -> None:
    said["payload"] = None


def listed(said: Said) -> None:
    said["payload"] = [said["payload"]]


def numbers(said: Said) -> None:
    said.update(dict.fromkeys(("id", "from", "to", "correlation_id", "ts"), 7))


def hollow(said: Said) -> None:
    """Where there is a list or an object there is something else in it."""

    def other(value: Any) -> Any:
        match value:
            case dict():
                return {key: other(item) for key, item in value.items()} | {"7": None}
            case list():
                return [None, 7, [], *value, "x"]
            case _:
                return value

    said["payload"] = other(said["payload"])


def strange(said: Said) -> None:
    said["kind"], said["payload"] = ["x"], "\ud800"


MANGLED: Final[tuple[Callable[[Said], None], ...]] = (emptied, listed, numbers, hollow, strange)


@pytest.mark.slow
@pytest.mark.parametrize("mangle", MANGLED, ids=lambda mangle: mangle.__name__)
@pytest.mark.parametrize("spared", ["system/welcome", "nothing"])
async def test_the_kit_takes_all_that_is_mangled(
    mangle: Callable[[Said], None],
    spared: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    saying(lambda said: mangle(said) if said["kind"] != spared and "payload" in said else None)(monkeypatch)
    async with asyncio.timeout(ENOUGH_S), gateway(tmp_path) as config:
        results = await run_checks(replace(config, timeout_s=TIMEOUT_S), SOME)
    assert CheckOutcome.FAIL in {one.outcome for one in results}
    assert all(one.why for one in results if one.outcome is not CheckOutcome.PASS)
    assert complaints(caplog) == []
