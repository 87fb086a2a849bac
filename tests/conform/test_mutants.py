"""Every wrong gateway is found out, by the check that is for it."""

from pathlib import Path

import pytest

from mew.conform.ledger import Side
from mew.conform.outcome import CheckOutcome

from .mutants.all import MUTANTS
from .mutants.breaks import Mutant
from .test_coverage import to_try
from .wrong import gateway, outcomes


def test_for_every_requirement_there_is_a_wrong_gateway() -> None:
    assert {mutant.requirement for mutant in MUTANTS} == to_try(Side.GATEWAY)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.requirement}: {mutant.says}")
async def test_a_wrong_gateway_is_found_out(
    mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.broken(monkeypatch)
    async with gateway(tmp_path) as config:
        (result,) = (await outcomes(config, mutant.check)).values()
    assert result.outcome is CheckOutcome.FAIL, f"it came to {result.outcome} {result.why}"
    assert mutant.requirement in result.requirements
    assert mutant.says in result.why, result.why
