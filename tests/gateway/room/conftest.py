"""A node with two rooms for each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.room.rooms import Clock, HeldStorage, node_with

from mew.gateway.node import Node
from mew.gateway.room.room import Room


@pytest.fixture
def storage() -> HeldStorage:
    return HeldStorage()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def node(storage: HeldStorage, clock: Clock, tmp_path: Path) -> AsyncIterator[Node]:
    async with node_with(storage, tmp_path, now=clock) as node:
        yield node


@pytest.fixture
def desk(node: Node) -> Room:
    return node.rooms["desk"]


@pytest.fixture
def hall(node: Node) -> Room:
    return node.rooms["hall"]
