"""Following a proposal of one's own: its stages, and again after the process that made it is gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.client.ear import Ear, settled

from mew.client.client import Client
from mew.client.errors import AlreadyDecided, Disconnected, NotFulfilled, RpcError
from mew.client.participant.participant import Participant
from mew.client.proposals.outcomes import Fulfilled, Rejected, Strategy, TimedOut, Withdrawn
from mew.client.proposals.review import Review
from mew.proposals.record import ProposalStatus
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "bob": ["*"],
    "bot": ["chat", "mcp/proposal", "mcp/withdraw"],
    "shop": ["mcp/response"],
}


class Shop:
    """Sells, once it is open."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.participant = Participant("shop")
        self.participant.tool(self.order)

    async def order(self, item: str, pieces: int = 1) -> str:
        await self.open.wait()
        if item == "pony":
            raise RpcError(-32000, "no ponies")
        return f"{pieces} {item}"


@dataclass
class Market:
    space: Space
    ann: Client
    shop: Shop

    async def propose(self, item: str = "ink", **options: Any) -> str:
        """As a process does that leaves right after it; returns the handle."""
        async with self.space.connect("bot") as bot:
            proposal = await bot.propose_call("shop", "order", {"item": item}, **options)
            assert str(proposal.stage) == "waiting for approval"
            return proposal.id

    async def review(self, id: str) -> Review:
        """What ann has to decide."""
        await settled(self.ann.connection)
        return self.ann.review(id)

    async def approve(self, id: str, arguments: dict[str, Any] | None = None) -> "asyncio.Future[Any]":
        """Returns when the shop has been asked."""
        ear = Ear(self.ann.connection)
        approving = asyncio.ensure_future((await self.review(id)).approve(arguments))
        await ear.hears(Kind.MCP_REQUEST)
        return approving


@asynccontextmanager
async def market() -> AsyncIterator[Market]:
    shop = Shop()
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(shop.participant, "shop"),
        space.connect("ann") as ann,
    ):
        yield Market(space, ann, shop)


async def test_the_stages_of_a_proposal_are_told_one_after_another() -> None:
    async with market() as here, here.space.connect("bot") as bot:
        proposal = await bot.propose_call("shop", "order", {"item": "ink", "pieces": 100})
        stages = proposal.stages()
        approving = await here.approve(proposal.id, {"item": "ink", "pieces": 5})
        here.shop.open.set()
        await approving
        told = [stage async for stage in stages]
        assert [str(stage) for stage in told] == [
            "waiting for approval",
            "edited by ann: $.params.arguments.pieces is 5; running",
            "approved by ann with changes ($.params.arguments.pieces), answered by shop",
        ]
        assert [stage.status for stage in told] == ["open", "approved", "fulfilled"]
        assert [stage.by for stage in told] == [None, "ann", "ann"]
        assert told[1].edited
        assert told[-1].outcome == await proposal == proposal.outcome
        assert [stage async for stage in proposal.stages()] == told[-1:]


async def test_rejections_that_are_not_the_end_are_a_stage() -> None:
    async with market() as here, here.space.connect("bot") as bot, here.space.connect("bob"):
        proposal = await bot.propose_call("shop", "order", {"item": "ink"}, strategy=Strategy.RESILIENT)
        stages = proposal.stages()
        await anext(stages)
        await (await here.review(proposal.id)).reject("busy")
        stage = await anext(stages)
        assert (stage.status, stage.by) == (ProposalStatus.OPEN, "ann")
        assert str(stage) == "rejected by ann: busy; waiting for others"
        await proposal.withdraw("changed my mind")
        assert [str(stage) async for stage in stages] == ["withdrawn: changed my mind"]


async def test_the_stages_end_with_the_connection() -> None:
    async with market() as here:
        async with here.space.connect("bot") as bot:
            proposal = await bot.propose_call("shop", "order", {"item": "ink"})
            stages = proposal.stages()
        assert [str(stage) async for stage in stages] == ["waiting for approval"]
        assert str(proposal.stage) == "waiting for approval"
        assert proposal.outcome is None
        with pytest.raises(Disconnected):
            await proposal


async def test_a_stage_says_nothing_that_a_terminal_would_obey() -> None:
    async with market() as here, here.space.connect("bot") as bot:
        proposal = await bot.propose_call("shop", "order", {"item": "ink"})
        stages = proposal.stages()
        await anext(stages)
        await (await here.review(proposal.id)).reject("\x1b[2J", "\x07")
        assert [str(stage).isprintable() async for stage in stages] == [True]


# Again, after the process that made it has gone.


async def test_leaving_does_not_withdraw_a_proposal() -> None:
    async with market() as here:
        id = await here.propose()
        assert (await here.review(id)).open
        assert here.ann.book[id].status(datetime.now(UTC)) is ProposalStatus.OPEN


@pytest.mark.parametrize("recall", [0, 100])
async def test_an_open_proposal_is_followed_to_its_end(recall: int) -> None:
    async with market() as here:
        id = await here.propose()
        async with here.space.connect("bot", recall=recall) as bot:
            proposal = await bot.proposal(id)
            assert proposal.id == id
            assert proposal.outcome is None
            assert (proposal.record.target, proposal.record.arguments) == ("shop", {"item": "ink"})
            stages = proposal.stages()
            approving = await here.approve(id)
            here.shop.open.set()
            await approving
            assert await proposal.value() == "1 ink"
            assert [stage.status async for stage in stages] == ["open", "approved", "fulfilled"]


@pytest.mark.parametrize("recall", [0, 100])
async def test_one_that_is_running_is_waited_for(recall: int) -> None:
    async with market() as here:
        id = await here.propose()
        approving = await here.approve(id)
        async with here.space.connect("bot", recall=recall) as bot:
            proposal = await bot.proposal(id)
            assert str(proposal.stage) == "approved by ann, running"
            here.shop.open.set()
            assert (await proposal.result())["content"][0]["text"] == "1 ink"
        await approving


@pytest.mark.parametrize("recall", [0, 100])
async def test_the_outcome_of_one_that_has_ended_is_known(recall: int) -> None:
    async with market() as here:
        here.shop.open.set()
        done = await here.propose(timeout_s=60)
        await (await here.approve(done))
        failed = await here.propose("pony")
        with pytest.raises(RpcError, match="no ponies"):
            await (await here.approve(failed))
        async with here.space.connect("bot", recall=recall) as bot:
            fulfilled = (await bot.proposal(done)).outcome
            assert isinstance(fulfilled, Fulfilled)
            assert (fulfilled.by, fulfilled.response_by, fulfilled.edited) == ("ann", "shop", False)
            assert await (await bot.proposal(done)).value() == "1 ink"
            with pytest.raises(RpcError, match="no ponies"):
                await (await bot.proposal(failed)).value()


async def test_a_rejection_meanwhile_ends_it_for_everyone() -> None:
    async with market() as here:
        id = await here.propose()
        await (await here.review(id)).reject("policy", "Not on a Monday.")
        assert here.ann.book[id].status(datetime.now(UTC)) is ProposalStatus.OPEN
        async with here.space.connect("bot") as bot:
            outcome = (await bot.proposal(id)).outcome
            assert isinstance(outcome, Rejected)
            assert str(outcome) == 'rejected by ann: policy ("Not on a Monday.")'
        with pytest.raises(AlreadyDecided):
            await here.ann.review(id).approve()
        async with here.space.connect("bot") as bot:  # and once more, now that it is withdrawn
            assert str(await (await bot.proposal(id))) == str(outcome)


async def test_how_an_earlier_process_gave_it_up_is_told_apart() -> None:
    async with market() as here:
        async with here.space.connect("bot") as bot:
            withdrawn = await bot.propose_call("shop", "order", {"item": "ink"})
            await withdrawn.withdraw("too dear")
            late = await bot.propose_call("shop", "order", {"item": "ink"}, timeout_s=0.01)
            await late
        async with here.space.connect("bot") as bot:
            assert (await bot.proposal(withdrawn.id)).outcome == Withdrawn(reason="too dear")
            assert (await bot.proposal(late.id)).outcome == TimedOut()
            with pytest.raises(NotFulfilled, match="nobody took it up in time"):
                await (await bot.proposal(late.id)).result()


async def test_one_that_is_followed_again_can_be_withdrawn_and_given_a_time() -> None:
    async with market() as here:
        first, second = await here.propose(), await here.propose()
        async with here.space.connect("bot") as bot:
            await (await bot.proposal(first)).withdraw("never mind")
            assert await (await bot.proposal(first)) == Withdrawn(reason="never mind")
            assert await (await bot.proposal(second, timeout_s=0.01)) == TimedOut()
        assert here.ann.book[second].status(datetime.now(UTC)) is ProposalStatus.WITHDRAWN


async def test_another_strategy_waits_for_others_again() -> None:
    async with market() as here, here.space.connect("bob") as bob:
        id = await here.propose(strategy=Strategy.RESILIENT)
        await (await here.review(id)).reject("busy")
        async with here.space.connect("bot") as bot:
            proposal = await bot.proposal(id, strategy=Strategy.RESILIENT)
            assert str(proposal.stage) == "rejected by ann: busy; waiting for others"
            here.shop.open.set()
            await bob.review(id).approve()
            assert await proposal.value() == "1 ink"


async def test_exclusive_reviewers_stay_the_only_ones() -> None:
    async with market() as here, here.space.connect("bob") as bob:
        id = await here.propose(strategy=Strategy.EXCLUSIVE, reviewers="bob")
        await (await here.review(id)).reject("busy")
        async with here.space.connect("bot") as bot:
            proposal = await bot.proposal(id)
            assert proposal.outcome is None
            await bob.review(id).reject("disagree")
            outcome = await proposal
            assert isinstance(outcome, Rejected)
            assert outcome.by == "bob"


async def test_one_that_this_process_follows_is_the_same_proposal() -> None:
    async with market() as here, here.space.connect("bot") as bot:
        proposal = await bot.propose_call("shop", "order", {"item": "ink"})
        again = await bot.proposal(proposal.id)
        await again.withdraw("once")
        assert await proposal == await again == Withdrawn(reason="once")


async def test_one_that_is_asked_for_twice_at_once_is_followed_once() -> None:
    async with market() as here:
        id = await here.propose()
        ear = Ear(here.ann.connection)
        async with here.space.connect("bot") as bot:
            first, second = await asyncio.gather(bot.proposal(id), bot.proposal(id))
            await (await here.review(id)).reject()
            assert await first == await second
        assert len(ear.all(Kind.MCP_WITHDRAW)) == 1


async def test_nobody_follows_anothers_proposal_or_one_that_is_not_there() -> None:
    async with market() as here:
        id = await here.propose()
        with pytest.raises(KeyError, match="of 'ann'"):
            await here.ann.proposal(id)
        with pytest.raises(KeyError, match="'no-such'"):
            await here.ann.proposal("no-such")
