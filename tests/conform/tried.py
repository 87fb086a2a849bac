"""Participants for the kit to try: ours as it is, or with something wrong in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import mew
from mew.conform.outcome import CheckResult
from mew.conform.participant.prompts import Prompts
from mew.conform.participant.runner import ParticipantCheck, participant_checks, run_participant_checks
from mew.conform.participant.test_gateway import SPACE, TestGateway, open_test_gateway

from .ours import Ours, prompts

__all__ = ["named", "outcomes"]

_LEAVE_S: Final = 3.0


def named(name: str) -> ParticipantCheck:
    """A check by its name, as in `requests.each_request_gets_one_answer`."""
    (found,) = [check for check in participant_checks() if check.name == name]
    return found


async def outcomes(
    *names: str, said: Prompts | None = None, via: mew.Via = mew.Via.HEADER
) -> dict[str, CheckResult]:
    """What these checks, or all, come to for our participant."""
    chosen = tuple(map(named, names)) or participant_checks()
    async with open_test_gateway(said or prompts()) as test_gateway, _living(test_gateway, via):
        return {
            result.check: result for result in await run_participant_checks(test_gateway.test_run, chosen)
        }


@asynccontextmanager
async def _living(test_gateway: TestGateway, via: mew.Via) -> AsyncIterator[None]:
    """Ours in a house, and again each time that the kit starts it anew."""
    lives: list[tuple[Ours, asyncio.Task[None]]] = []

    async def live(ours: Ours) -> None:
        with suppress(mew.MewError):
            async with mew.connect(
                test_gateway.url, space=SPACE, token=test_gateway.token, via=via, recall=100
            ) as client:
                await ours.participant.serve(client)

    async with asyncio.TaskGroup() as tasks:

        async def end() -> None:
            for ours, life in lives:
                ours.participant.stop()
                await asyncio.wait((life,), timeout=_LEAVE_S)
                life.cancel()

        async def revive() -> None:
            await end()
            ours = Ours()
            lives[:] = [(ours, tasks.create_task(live(ours)))]

        test_gateway.test_run.revive = revive
        await test_gateway.test_run.presence()
        try:
            yield
        finally:
            await end()
