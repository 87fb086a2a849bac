"""Tests of a participant, in a space within the process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

import mew
from mew.testing import Space

calc = mew.Participant("calculator")


@calc.tool
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    if b == 0:
        raise mew.ToolError("division by zero")
    return a / b


@asynccontextmanager
async def running() -> AsyncIterator[Space]:
    """A space in which the calculator answers."""
    capabilities = {"calculator": [], "ann": ["*"], "bot": ["mcp/proposal"]}
    async with Space(capabilities) as space, space.serving(calc, "calculator"):
        yield space


async def test_it_divides() -> None:
    async with running() as space, space.connect("ann") as ann:
        assert await ann.call("calculator", "divide", {"a": 6, "b": 3}) == 2


async def test_it_says_why_it_cannot() -> None:
    async with running() as space, space.connect("ann") as ann:
        with pytest.raises(mew.ToolError, match="division by zero"):
            await ann.call("calculator", "divide", {"a": 1, "b": 0})


async def test_wrong_arguments_are_a_json_rpc_error() -> None:
    async with running() as space, space.connect("ann") as ann:
        with pytest.raises(mew.RpcError) as caught:
            await ann.call("calculator", "divide", {"a": "six", "b": 3})
        assert caught.value.code == -32602


async def test_bot_may_not_ask_it_directly() -> None:
    async with running() as space, space.connect("bot") as bot:
        with pytest.raises(mew.Refused) as caught:
            await bot.request("calculator", "tools/list")
        assert caught.value.why == "capability_violation"


async def test_what_bot_proposes_runs_once_ann_approves() -> None:
    async with running() as space, space.connect("ann") as ann, space.connect("bot") as bot:
        proposal = await bot.propose_call("calculator", "divide", {"a": 6, "b": 3})
        assert await ann.review(proposal.id).approve() == 2
        assert isinstance(await proposal, mew.Fulfilled)


async def test_a_reviewer_who_comes_later_finds_what_waits() -> None:
    async with running() as space, space.connect("bot") as bot:
        proposal = await bot.propose_call("calculator", "divide", {"a": 6, "b": 3})
        async with space.connect("ann", recall=100) as ann:
            (waiting,) = ann.book.open(datetime.now(UTC))
            assert await ann.review(waiting.id).approve() == 2
        assert await proposal.value() == 2


async def test_it_answers_after_its_connection_was_lost() -> None:
    async with running() as space, space.connect("ann") as ann:
        space.cut("calculator")
        assert await ann.call("calculator", "divide", {"a": 6, "b": 3}) == 2
