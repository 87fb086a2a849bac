"""The ledger and the checks cover each other: all that can be tried is tried, and nothing else."""

from collections import Counter
from collections.abc import Callable, Iterable
from importlib.resources import files
from types import ModuleType
from typing import Any, Final

import pytest

from mew.conform import checks, participant_checks, requirements
from mew.conform.ledger import Side, Testable
from mew.conform.participant.runner import participant_checks as all_participant_checks
from mew.conform.runner import all_checks

CHECKS: Final[dict[Side, Callable[[], Iterable[Any]]]] = {
    Side.GATEWAY: all_checks,
    Side.PARTICIPANT: all_participant_checks,
}
MODULES: Final[dict[Side, ModuleType]] = {Side.GATEWAY: checks, Side.PARTICIPANT: participant_checks}

both_sides = pytest.mark.parametrize("side", [Side.GATEWAY, Side.PARTICIPANT])


def tried(side: Side) -> set[str]:
    return {requirement for check in CHECKS[side]() for requirement in check.requirements}


def to_try(side: Side) -> set[str]:
    """What a check of this side can find out."""
    return {
        one.id for one in requirements() if one.testable is Testable.WIRE and one.side in (side, Side.BOTH)
    }


@both_sides
def test_every_requirement_that_can_be_tried_has_a_check(side: Side) -> None:
    untried = to_try(side) - tried(side)
    assert not untried, "\n".join(sorted(untried))


@both_sides
def test_every_check_tries_requirements_of_its_side(side: Side) -> None:
    assert all(check.requirements for check in CHECKS[side]())
    strange = tried(side) - to_try(side)
    assert not strange, "\n".join(sorted(strange))


@both_sides
def test_every_module_of_checks_is_run(side: Side) -> None:
    folder = files(MODULES[side])
    there = {file.name.removesuffix(".py") for file in folder.iterdir() if file.name.endswith(".py")}
    assert set(MODULES[side].__all__) == there - {"__init__"}
    assert {check.name.partition(".")[0] for check in CHECKS[side]()} == there - {"__init__"}


@both_sides
def test_a_check_has_a_name_of_its_own_and_says_what_it_tries(side: Side) -> None:
    names = Counter(check.name for check in CHECKS[side]())
    assert not [name for name, times in names.items() if times > 1]
    assert all(check.title.endswith(".") for check in CHECKS[side]())
