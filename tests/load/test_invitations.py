"""Whom a run invites is gone when it is over, however it ends."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.load.gateway import credentials, roster, serving

from mew.load.connections import GatewayAddress, LoadFailed, LoadRefused
from mew.load.invitations import Inviter, inviting
from mew.load.workloads import capabilities


async def guests(address: GatewayAddress) -> set[str]:
    """Those of the space who were invited."""
    return {who for who in await roster(address) if who.startswith("bench-")}


async def test_guests_are_there_inside_and_gone_afterwards(address: GatewayAddress) -> None:
    left: list[str] = []
    async with inviting(address, credentials("ann").token, left) as host:
        assert host.credentials.who == "ann"
        assert host.may_invite("chat")
        one, two = await host.invite(["chat"]), await host.invite([])
        assert [one.who, two.who] == ["bench-1", "bench-2"]
        assert await guests(address) == {"bench-1", "bench-2"}
    assert (await guests(address), left) == (set(), [])
    assert not any(one["connected"] for one in (await roster(address)).values())


async def test_the_same_names_are_taken_again(address: GatewayAddress) -> None:
    for _ in range(2):
        async with inviting(address, credentials("ann").token, []) as host:
            assert (await host.invite([])).who == "bench-1"
            assert await host.dismiss() == []
            assert (await host.invite([])).who == "bench-1"
    assert await guests(address) == set()


async def test_a_name_that_is_taken_is_passed_over(address: GatewayAddress) -> None:
    async with (
        inviting(address, credentials("ann").token, []) as first,
        inviting(address, credentials("ann").token, []) as host,
    ):
        await first.invite([])
        assert (await host.invite([])).who == "bench-2"
    assert await guests(address) == set()


@pytest.mark.parametrize("error", [LoadFailed("no"), KeyboardInterrupt()])
async def test_guests_are_gone_after_a_failure(address: GatewayAddress, error: BaseException) -> None:
    async def failing() -> None:
        async with inviting(address, credentials("ann").token, []) as host:
            await host.invite([])
            raise error

    with pytest.raises(type(error)):
        await failing()
    assert await guests(address) == set()


async def test_guests_are_gone_though_it_is_cancelled_twice(address: GatewayAddress) -> None:
    is_in = asyncio.Event()

    async def measuring() -> None:
        async with inviting(address, credentials("ann").token, []) as host:
            await host.invite([])
            is_in.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(measuring())
        await is_in.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
    assert await guests(address) == set()


async def test_more_capabilities_than_one_can_be_invited_with_are_granted(address: GatewayAddress) -> None:
    async with inviting(address, credentials("ann").token, []) as host:
        guest = await host.invite(capabilities(100))
        held = (await roster(address))[guest.who]["capabilities"]
        assert all(one in held for one in capabilities(100))


async def test_who_was_cut_off_comes_back_to_remove_them(address: GatewayAddress) -> None:
    async with inviting(address, credentials("ann").token, []) as host:
        await host.invite([])
        await host.leave()
    assert await guests(address) == set()


async def test_who_cannot_be_removed_is_named(tmp_path: Path) -> None:
    left: list[str] = []
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(serving(tmp_path))
        async with inviting(GatewayAddress.at(gateway.url, "all"), credentials("ann").token, left) as host:
            await host.invite([])
            await stack.aclose()
    assert left == ["bench-1"]


async def test_who_may_not_invite_is_told_so(address: GatewayAddress) -> None:
    async with inviting(address, credentials("bob").token, []) as host:
        assert not host.may_invite()
        assert host.may("chat", "stream/request")
        with pytest.raises(LoadRefused, match="capability_violation"):
            await host.invite([])


async def test_the_space_is_learnt_where_it_was_not_named(address: GatewayAddress) -> None:
    host = Inviter(address, credentials("bob"))
    await host.enter()
    await host.leave()
    assert (host.address.space, host.credentials) == ("all", credentials("bob"))
