"""What a participant sends in bytes, over all its connections: beyond its budget it is read more slowly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.gateway.room.rooms import HeldStorage, Visitor, chat, envelope, node_with, passes

from mew.gateway.room.room import Room

SMALL = "limits: {bytes_per_second: 1MiB, bytes_burst: 64KiB}\n"


@asynccontextmanager
async def desk_with(folder: Path, more: str) -> AsyncIterator[Room]:
    async with node_with(HeldStorage(), folder, more) as node:
        yield node.rooms["desk"]


async def resumed(visitor: Visitor) -> None:
    async with asyncio.timeout(5):
        while visitor.is_paused:
            await passes(1)


async def test_who_sends_more_than_its_budget_is_read_more_slowly_and_loses_nothing(tmp_path: Path) -> None:
    async with desk_with(tmp_path, SMALL) as desk:
        ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
        large = "x" * 30_000
        ann.send(chat("ann", "e1", payload={"text": large}))
        assert not ann.is_paused
        ann.send(chat("ann", "e2", payload={"text": large}), chat("ann", "e3", payload={"text": large}))
        assert ann.is_paused
        bob.send(chat("bob", "e4"))
        assert not bob.is_paused
        await resumed(ann)
        await passes()
        assert bob.seen == ["e1", "e2", "e3", "e4"]
        assert ann.errors == []


async def test_all_connections_of_a_participant_share_its_budget(tmp_path: Path) -> None:
    async with desk_with(tmp_path, SMALL) as desk:
        first, second = await Visitor(desk, "ann").enter(), await Visitor(desk, "ann", lenient=True).enter()
        first.send(chat("ann", "e1", payload={"text": "x" * 60_000}))
        assert not first.is_paused
        second.send(chat("ann", "e2", payload={"text": "x" * 60_000}))
        assert second.is_paused
        await resumed(second)


async def test_stream_frames_count(tmp_path: Path) -> None:
    async with desk_with(tmp_path, SMALL) as desk:
        ann = await Visitor(desk, "ann").enter()
        desk.receive(ann, [b"#stream-1#" + bytes(40_000)], 40_010)
        assert not ann.is_paused
        desk.receive_binary(ann, b"#stream-1#" + bytes(40_000))
        assert ann.is_paused
        await resumed(ann)


async def test_what_json_paths_cost_is_paid_by_the_sender(tmp_path: Path) -> None:
    async with desk_with(tmp_path, SMALL) as desk:
        ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
        grant = {"recipient": "bob", "capabilities": [{"kind": "x", "payload": {"$..a": 1}}]}
        ann.send(envelope("ann", "g", "capability/grant", grant))
        await passes()
        bob.send(envelope("bob", "e1", "x", {"a": 1, "rest": list(range(1000))}))
        await passes()
        assert "e1" in ann.seen
        bob.send(chat("bob", "e2"))
        assert bob.is_paused
        await resumed(bob)
