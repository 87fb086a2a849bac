"""The space for tests of who writes participants."""

import asyncio

import pytest

from mew import Participant
from mew.testing import Space


async def test_a_participant_that_fails_to_start_fails_the_test() -> None:
    participant = Participant("broken")

    @participant.on_start
    async def start() -> None:
        raise ValueError("no database")

    async with asyncio.timeout(5), Space({"bot": ["*"]}) as space:
        with pytest.raises(ValueError, match="no database"):
            async with space.serving(participant, "bot"):
                pass


async def test_a_participant_that_is_put_out_does_not() -> None:
    async with asyncio.timeout(5), Space({"bot": ["*"], "ann": ["*"]}) as space, space.connect("ann") as ann:
        async with space.serving(Participant("calm"), "bot"):
            await ann.kick("bot")
        assert "bot" not in ann.participants
