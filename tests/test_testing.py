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


async def test_whether_one_may_send_is_matched_as_the_gateway_does() -> None:
    held = [{"kind": "mcp/request", "payload": {"method": "tools/*"}, "to": "ann"}]
    async with asyncio.timeout(5), Space({"ann": ["*"], "bot": held}) as space, space.connect("bot") as bot:
        assert bot.can_send("mcp/request", {"method": "tools/call"}, to="ann")
        assert not bot.can_send("mcp/request", {"method": "resources/read"}, to="ann")
        assert not bot.can_send("mcp/request", {"method": "tools/call"})
        composed = bot.connection.compose("mcp/request", {"method": "tools/list"}, to=["ann"])
        assert bot.can_send(composed)
        assert not bot.can_send("system/error", {"error": "x"})
