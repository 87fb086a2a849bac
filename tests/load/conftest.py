"""One gateway for each test that asks for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.load.gateway import serving

from mew.gateway.server import Gateway
from mew.load.connections import GatewayAddress


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
def address(gateway: Gateway) -> GatewayAddress:
    """The space in which all see everything."""
    return GatewayAddress.at(gateway.url, "all")
