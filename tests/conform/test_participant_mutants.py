"""Every requirement about participants has a wrong participant that its check finds out."""

import pytest

from mew.conform.outcome import CheckOutcome

from .faulty.all import MUTANTS
from .faulty.faults import Wrong
from .faulty.subtle import SUBTLE
from .tried import named, outcomes


async def is_found_out(wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = wrong.make()
    fault.commit(monkeypatch)
    (result,) = (await outcomes(wrong.check, via=fault.via)).values()
    assert result.outcome is CheckOutcome.FAIL, result.why
    assert wrong.says in result.why


@pytest.mark.slow
@pytest.mark.parametrize("requirement", MUTANTS)
async def test_a_wrong_participant_is_found_out(requirement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = MUTANTS[requirement]
    assert requirement in named(wrong.check).requirements
    await is_found_out(wrong, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("what", SUBTLE)
async def test_who_is_wrong_where_it_is_hardly_seen_is_found_out(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await is_found_out(SUBTLE[what], monkeypatch)
