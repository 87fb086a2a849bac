"""Where a check plays: who has left is not there, and who still holds what another check gave is not used."""

import asyncio
from pathlib import Path

import pytest

from mew.conform.context import Lessons, Stage
from mew.conform.drafts import CHAT, PROPOSAL
from mew.conform.fixtures import grant, somebody
from mew.conform.outcome import NotOffered

from .wrong import gateway


async def test_who_is_about_to_leave_is_not_taken_for_there(tmp_path: Path) -> None:
    async with gateway(tmp_path) as cast, Stage(cast) as stage:
        first = await stage.enter("peer")
        async with asyncio.TaskGroup() as tasks:
            leaving = tasks.create_task(first.leave())
            await asyncio.sleep(0)
            assert not leaving.done()
            second = await stage.enter("peer")
        assert second is not first
        await second.send("chat", {"text": "I am back"})


async def test_a_spare_that_holds_what_an_earlier_check_gave_is_left_alone(tmp_path: Path) -> None:
    lessons = Lessons(no_guests="nobody is invited here")
    async with gateway(tmp_path) as cast:
        async with Stage(cast, lessons) as stage:
            spares = [await somebody(stage), await somebody(stage)]
        async with Stage(cast) as stage:
            owner, spare = await stage.enter_all("owner", spares[0].name)
            await grant(stage, owner, spare, PROPOSAL.capability)
            async with Stage(cast, lessons) as other:
                assert (await somebody(other)).name == spares[1].name
                with pytest.raises(NotOffered, match="spare-1 hold what a check gave"):
                    await somebody(other)
        async with Stage(cast, lessons) as stage:
            assert (await somebody(stage, CHAT)).name == spares[0].name, "it was taken back in the end"


async def test_what_it_opened_is_closed_though_its_time_ends_while_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0

    async def leave(stage: Stage) -> None:
        nonlocal left
        left += 1
        if left == 2:
            limit.reschedule(0)
            await asyncio.Event().wait()

    async with gateway(tmp_path) as cast:
        stage = Stage(cast)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit, stage:
                monkeypatch.setattr(Stage, "_leave", leave)
        assert stage.session.closed
