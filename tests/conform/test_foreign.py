"""No false accusations: on a gateway that takes liberties every check passes, or finds nothing to try."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from mew.conform.outcome import CheckOutcome
from mew.conform.roles import KICKED, PEER_SECOND_TOKEN, SPARES

from .liberties import LIBERTIES
from .wrong import gateway, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBERTIES)
async def test_no_check_fails_on_a_gateway_that(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liberty = LIBERTIES[name]
    for difference in liberty.differs:
        difference(monkeypatch)
    async with gateway(tmp_path, **liberty.settings) as config:
        results = (await outcomes(liberty.told(config))).values()
    failed = [one for one in results if one.outcome is CheckOutcome.FAIL]
    accused = [f"{one.check}: {one.why}" for one in failed if not liberty.breaks.issuperset(one.requirements)]
    assert not accused, "\n".join(accused)
    assert {requirement for one in failed for requirement in one.requirements} == liberty.breaks
    assert {one.check for one in results if one.outcome is CheckOutcome.NOT_OFFERED} == liberty.not_offered


@pytest.mark.slow
@pytest.mark.parametrize(
    "lacking",
    [
        ("peer", PEER_SECOND_TOKEN),
        ("listener", *SPARES, KICKED),
        ("peer", "proposer", "reader", "granter", "listener", *SPARES, KICKED, PEER_SECOND_TOKEN),
    ],
    ids=lambda lacking: lacking[0] if len(lacking) < 9 else "all but the owner",
)
async def test_no_check_fails_for_want_of_a_token(lacking: Collection[str], tmp_path: Path) -> None:
    async with gateway(tmp_path) as config:
        roles = {name: role for name, role in config.roles.items() if name not in lacking}
        results = (await outcomes(replace(config, roles=roles))).values()
    assert [f"{one.check}: {one.why}" for one in results if one.outcome is CheckOutcome.FAIL] == []
