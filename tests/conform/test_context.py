"""Where a check plays: who has left is not there, and who still holds what another check gave is not used."""

import asyncio
from pathlib import Path

import pytest

from mew.conform.context import CheckContext, GatewayFindings
from mew.conform.drafts import CHAT, PROPOSAL
from mew.conform.fixtures import grant, somebody
from mew.conform.outcome import NotOffered

from .wrong import gateway


async def test_who_is_about_to_leave_is_not_taken_for_there(tmp_path: Path) -> None:
    async with gateway(tmp_path) as config, CheckContext(config) as ctx:
        first = await ctx.client("peer")
        async with asyncio.TaskGroup() as tasks:
            leaving = tasks.create_task(first.leave())
            await asyncio.sleep(0)
            assert not leaving.done()
            second = await ctx.client("peer")
        assert second is not first
        await second.send("chat", {"text": "I am back"})


async def test_a_spare_that_holds_what_an_earlier_check_gave_is_left_alone(tmp_path: Path) -> None:
    findings = GatewayFindings(invite_unavailable="nobody is invited here")
    async with gateway(tmp_path) as config:
        async with CheckContext(config, findings) as ctx:
            spares = [await somebody(ctx), await somebody(ctx)]
        async with CheckContext(config) as ctx:
            owner, spare = await ctx.clients("owner", spares[0].name)
            await grant(ctx, owner, spare, PROPOSAL.capability)
            async with CheckContext(config, findings) as other:
                assert (await somebody(other)).name == spares[1].name
                with pytest.raises(NotOffered, match="spare-1 hold what a check gave"):
                    await somebody(other)
        async with CheckContext(config, findings) as ctx:
            assert (await somebody(ctx, CHAT)).name == spares[0].name, "it was taken back in the end"


async def test_what_it_opened_is_closed_though_its_time_ends_while_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0

    async def leave(ctx: CheckContext) -> None:
        nonlocal left
        left += 1
        if left == 2:
            limit.reschedule(0)
            await asyncio.Event().wait()

    async with gateway(tmp_path) as config:
        ctx = CheckContext(config)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit, ctx:
                monkeypatch.setattr(CheckContext, "_leave", leave)
        assert ctx.session.closed
