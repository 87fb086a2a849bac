"""A gateway that is killed in the middle of the load, and clients that do not notice more than a delay (issue 3)."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import mew

from .process import Gateway, listening, run_gateway, secret, started

SPACE = "desk"
NO_LIMITS = {"envelopes_per_second": 1_000_000, "burst": 1_000_000}
WITHIN_S = 150.0


class Speaker:
    """A client that says things, several at a time, and notes what it was shown."""

    def __init__(self, client: mew.Client, *, many: int, at_once: int) -> None:
        self.client = client
        self.sent = [f"{client.id}/{number}" for number in range(many)]
        self.returned: list[str] = []
        self.shown: list[str] = []
        self._left = iter(self.sent)
        self._at_once = at_once
        self._feed = client.envelopes("chat")

    async def speak(self, noted: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._at_once):
                tasks.create_task(self._speak(noted))

    async def _speak(self, noted: Callable[[], None]) -> None:
        for envelope_id in self._left:
            accepted = await self.client.send("chat", {"text": envelope_id}, id=envelope_id)
            self.returned.append(accepted.id)
            noted()

    async def listen(self, last: str) -> None:
        async for envelope in self._feed:
            self.shown.append(envelope.id)
            if envelope.id == last:
                return


class Desk:
    """A gateway that can be killed, and whoever speaks in its one space."""

    def __init__(self, folder: Path, names: list[str], limits: dict[str, int]) -> None:
        tokens = {name: secret(f"token-of-{name}") for name in names}
        self.tokens = tokens
        self.config: dict[str, Any] = {
            "space": {"id": SPACE},
            "participants": {
                name: {"tokens": [token], "capabilities": ["chat"]} for name, token in tokens.items()
            },
            "limits": limits,
        }
        self.folder = folder

    async def connect(self, stack: AsyncExitStack, url: str, *, many: int, at_once: int) -> list[Speaker]:
        clients = [
            await stack.enter_async_context(mew.connect(url, space=SPACE, token=token))
            for token in self.tokens.values()
        ]
        return [Speaker(client, many=many, at_once=at_once) for client in clients]

    async def restarted(self, gateway: Gateway) -> Gateway:
        """Killed as the machine would, and started again where it was."""
        await asyncio.to_thread(gateway.kill)
        assert "Traceback" not in gateway.log, gateway.log
        again = await asyncio.to_thread(started, self.folder, self.config, port=gateway.port)
        return await asyncio.to_thread(listening, again)


class Count:
    """Lets somebody wait until so many were counted."""

    def __init__(self) -> None:
        self.many = 0
        self._waited_for: dict[int, asyncio.Event] = {}

    def one_more(self) -> None:
        self.many += 1
        if self.many in self._waited_for:
            self._waited_for[self.many].set()

    async def reaches(self, many: int) -> None:
        reached = self._waited_for.setdefault(many, asyncio.Event())
        if self.many < many:
            await reached.wait()


async def conversation(speakers: list[Speaker], beside: Callable[[Count], Coroutine[Any, Any, None]]) -> None:
    """All say what they have to say, and then listen until the last word, which comes after everything."""
    count, last = Count(), "the last word"
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as hearing:
        for speaker in speakers:
            hearing.create_task(speaker.listen(last))
        async with asyncio.TaskGroup() as speaking:
            for speaker in speakers:
                speaking.create_task(speaker.speak(count.one_more))
            await beside(count)
        await speakers[0].client.send("chat", {"text": last}, id=last)


def check(speakers: list[Speaker], *, many: int) -> None:
    """Every send that returned is shown to all, once, in one order."""
    order = speakers[0].shown
    assert len(set(order)) == len(order), "something was shown twice"
    for speaker in speakers:
        assert set(speaker.returned) == set(speaker.sent)
        assert speaker.shown == order, f"{speaker.client.id} was shown another order"
        assert set(speaker.returned) <= set(order)
    assert len(order) == len(speakers) * many + 1


@pytest.mark.slow
def test_what_was_sent_while_the_gateway_was_killed_is_seen_by_all_once_in_one_order(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [f"p{n}" for n in range(20)], NO_LIMITS)
    gateway = listening(started(tmp_path, desk.config))

    async def scene() -> None:
        nonlocal gateway
        async with AsyncExitStack() as stack:
            speakers = await desk.connect(stack, gateway.url, many=500, at_once=25)

            async def kill(count: Count) -> None:
                nonlocal gateway
                for many in (2_500, 6_000):
                    await count.reaches(many)
                    gateway = await desk.restarted(gateway)

            await conversation(speakers, kill)
            check(speakers, many=500)
            for speaker in speakers:
                sent = set(speaker.sent)
                assert [shown for shown in speaker.shown if shown in sent] == speaker.sent, "out of turn"
                assert len(speaker.client.gaps) >= 1  # who was still away when it was killed again has one
                assert all(gap.complete for gap in speaker.client.gaps)

    try:
        asyncio.run(scene())
    finally:
        code = gateway.stop()
    assert code == 0, gateway.log
    assert "Traceback" not in gateway.log, gateway.log


@pytest.mark.slow
def test_clients_that_are_too_fast_for_the_gateway_pace_themselves_and_lose_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ["p0", "p1", "p2"], limits={})  # 200 a second for each, and 400 at once

    async def scene(url: str) -> None:
        async with AsyncExitStack() as stack:
            speakers = await desk.connect(stack, url, many=600, at_once=300)
            await conversation(speakers, nobody)
            check(speakers, many=600)
            assert not [speaker for speaker in speakers if speaker.client.gaps], "somebody was put out"

    with run_gateway(tmp_path, desk.config) as gateway:
        asyncio.run(scene(gateway.url))


async def nobody(_count: Count) -> None:
    pass
