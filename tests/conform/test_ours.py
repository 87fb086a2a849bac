"""Our own gateway, tried as any other: it fails nothing, and offers all there is."""

from dataclasses import replace
from pathlib import Path

import pytest

from mew.conform.outcome import CheckOutcome, CheckResult
from mew.conform.roles import PEER_SECOND_TOKEN, JoinMethod, PatternNotation

from .wrong import gateway, outcomes

QUICK = (
    "delivery.it_arrives_as_it_was_sent",
    "envelopes.a_broken_rule_is_answered",
    "grants.nobody_grants_a_kind_that_it_lacks",
    "members.the_kicked_are_out",
    "streams.a_closed_stream_is_gone",
)


NOTICE = "capabilities.a_notice_shows_nothing_of_it"


def faults(results: dict[str, CheckResult]) -> list[str]:
    return [
        f"{one.check} {one.outcome}: {one.why}"
        for one in results.values()
        if one.outcome is not CheckOutcome.PASS
    ]


@pytest.mark.slow
async def test_our_gateway_passes_every_check(tmp_path: Path) -> None:
    async with gateway(tmp_path) as config:
        results = await outcomes(config)
    assert results.pop(NOTICE).outcome is CheckOutcome.NOT_OFFERED
    assert faults(results) == []


@pytest.mark.slow
async def test_joined_by_a_frame_our_gateway_fails_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path) as config:
        results = await outcomes(replace(config, join=JoinMethod.FRAME))
    assert [f"{one.check}: {one.why}" for one in results.values() if one.outcome is CheckOutcome.FAIL] == []


async def test_our_gateway_passes_some_checks_quickly(tmp_path: Path) -> None:
    async with gateway(tmp_path) as config:
        assert faults(await outcomes(config, *QUICK)) == []


async def test_our_gateway_can_announce_violations(tmp_path: Path) -> None:
    async with gateway(tmp_path, announce_violations=True) as config:
        assert faults(await outcomes(config, NOTICE)) == []


async def test_what_the_kit_is_not_given_is_not_offered(tmp_path: Path) -> None:
    needs = (
        "access.capabilities_hang_on_the_identity",
        "patterns.a_regular_expression_decides",
        "http_api.who_is_not_connected_may_post",
        "members.the_invited_gets_a_mail",
        "spaces.spaces_are_told_apart_by_their_name",
    )
    async with gateway(tmp_path) as config:
        roles = {name: role for name, role in config.roles.items() if name != PEER_SECOND_TOKEN}
        bare = replace(
            config, roles=roles, second_space=None, mail=None, http=None, notation=PatternNotation()
        )
        results = await outcomes(bare, *needs)
    assert {one.outcome for one in results.values()} == {CheckOutcome.NOT_OFFERED}
