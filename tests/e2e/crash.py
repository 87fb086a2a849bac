"""Rounds of: load from several clients, `kill -9` at a random moment, start again, compare.

Nothing that a client was shown may be missing afterwards; all were shown one order, without gap and without
repetition. `scripts/crash.py` runs as many rounds as asked.
"""

import asyncio
import json
import random
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import websockets

from .client import Client, Door, Json, envelope
from .process import Gateway, listening, secret, started

__all__ = ["Rounds"]

_PRIVATE = {"system/welcome", "system/error"}
_IN_FLIGHT = 8
_PAGE = 1000
_SPACE = "desk"


class Witness:
    """A client that comes back after every crash, asks for what it missed, and sends again what it saw no echo of."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.shown: list[str] = []
        self.unechoed: dict[str, Json] = {}
        self.taken: set[str] = set()
        """Ids that were refused as duplicates: they must have been accepted."""

    async def come(self, door: Door) -> Client:
        after = f"&after={self.shown[-1]}" if self.shown else ""
        client = await door.join(self.who, query=after)
        assert client.welcome["payload"].get("resumed") is (True if after else None), client.welcome
        return client

    def take(self, said: Json) -> bool:
        """Note what came; whether it settles something sent."""
        if said["kind"] not in _PRIVATE:
            self.shown.append(said["id"])
            return self.unechoed.pop(said["id"], None) is not None
        settled = False
        for culprit in said.get("correlation_id", ()):
            assert said["payload"]["error"] == "duplicate_id", said
            self.taken.add(culprit)
            settled = self.unechoed.pop(culprit, None) is not None
        return settled

    async def talk(self, client: Client, *, stop_after: int | None = None) -> None:
        """Keep some envelopes in flight until the connection breaks, or so much came."""
        again = deque(self.unechoed.values())
        try:
            for _ in range(_IN_FLIGHT):
                await self._send(client, again)
            while stop_after is None or stop_after > 0:
                if self.take(await client.next()):
                    await self._send(client, again)
                stop_after = None if stop_after is None else stop_after - 1
        except websockets.ConnectionClosed:
            pass

    async def until(self, client: Client, marker: str) -> None:
        while marker not in self.shown[-1:]:
            self.take(await client.next())

    async def _send(self, client: Client, again: deque[Json]) -> None:
        said = again.popleft() if again else envelope(self.who, "chat", {"text": "x" * 200})
        self.unechoed[said["id"]] = said
        await client.connection.send(json.dumps(said))


class Rounds:
    """One space over many lives of its gateway."""

    def __init__(
        self, folder: Path, *, clients: int, seed: int, journal: Mapping[str, Any] | None = None
    ) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._tokens = {f"p{n}": secret(f"token-of-p{n}") for n in range(clients)}
        self._witnesses = [Witness(who) for who in self._tokens]
        self._config = {
            "space": {"id": _SPACE},
            "participants": {
                who: {"tokens": [token], "capabilities": ["chat"]} for who, token in self._tokens.items()
            },
            "limits": {"envelopes_per_second": 1_000_000, "burst": 1_000_000},
            "journal": dict(journal or {}),
        }
        self.order: list[str] = []
        """What the gateway says was shown, from the first to the last."""

    async def crash(self) -> None:
        """One life that ends in the middle of the load."""
        gateway = listening(await asyncio.to_thread(started, self._folder, self._config))
        try:
            async with Door(gateway, self._tokens, _SPACE) as door, asyncio.timeout(60):
                clients = [await witness.come(door) for witness in self._witnesses]
                first, *others = zip(self._witnesses, clients, strict=True)
                async with asyncio.TaskGroup() as tasks:
                    for witness, client in others:
                        tasks.create_task(witness.talk(client))
                    await first[0].talk(first[1], stop_after=self._random.randrange(1, 600))
                    gateway.process.kill()
                    await first[0].talk(first[1])
        finally:
            await asyncio.to_thread(gateway.kill)
        assert "Traceback" not in gateway.log, gateway.log
        assert "ERROR" not in gateway.log, gateway.log

    async def compare(self) -> None:
        """A life without load: all are shown what they missed, and all were shown the same."""
        gateway = listening(await asyncio.to_thread(started, self._folder, self._config))
        try:
            async with Door(gateway, self._tokens, _SPACE) as door, asyncio.timeout(60):
                clients = [await witness.come(door) for witness in self._witnesses]
                marker = await clients[0].send("chat", {"text": "all here?"})
                for witness, client in zip(self._witnesses, clients, strict=True):
                    await witness.until(client, marker)
                await self._read_order(gateway, door)
        finally:
            code = await asyncio.to_thread(gateway.stop)
        assert code == 0, gateway.log
        self._check(marker)

    def _check(self, marker: str) -> None:
        assert len(set(self.order)) == len(self.order), "something is in the history twice"
        order = self.order[: self.order.index(marker) + 1]
        place = {envelope_id: n for n, envelope_id in enumerate(order)}
        for witness in self._witnesses:
            begin = place[witness.shown[0]]
            assert witness.shown == order[begin:], f"{witness.who} was shown something else"
            assert witness.taken <= place.keys()

    async def _read_order(self, gateway: Gateway, door: Door) -> None:
        """Go on where the history was read last."""
        token = self._tokens["p0"]
        while True:
            after = f"&after={self.order[-1]}" if self.order else ""
            path = f"/spaces/{_SPACE}/envelopes?limit={_PAGE}{after}"
            answer = await door.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            assert answer.json["complete"], answer.json
            self.order += [said["id"] for said in answer.json["envelopes"]]
            if not answer.json["next"]:
                return
