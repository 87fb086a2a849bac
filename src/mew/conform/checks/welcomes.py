"""The welcome: to whom it goes, what it says, and that the gateway keeps to it (§3.8.1, §5.2)."""

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from mew.conform.cast import ROLES, Role
from mew.conform.checking import check
from mew.conform.giving import grant, granted, revoke
from mew.conform.guests import newcomer, somebody
from mew.conform.matching import is_kind, leaves, listed, part
from mew.conform.passing import passes, shown
from mew.conform.refusing import blocked, unseen
from mew.conform.sayings import CHAT, HELLO, PROPOSAL, REASONING, STATUS, allows, call, request
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, demand
from mew.conform.wire import Actor

T = TypeVar("T")
_SAMPLES: Final = (
    HELLO,
    PROPOSAL,
    REASONING,
    STATUS,
    call("read_file"),
    call("write_file"),
    request("tools/list"),
)


async def _everyone(stage: Stage) -> list[Actor]:
    """All the roles there are tokens for, and somebody new, each connected."""
    return [*[await stage.enter(name) for name in ROLES if name in stage.cast.roles], await somebody(stage)]


def _held(welcome: dict[str, Any]) -> list[Any]:
    held = part(welcome, "payload", "you", "capabilities")
    demand(
        isinstance(held, list), f"`payload.you.capabilities` of a welcome is {held!r}, not a list (§3.8.1)"
    )
    found: list[Any] = held
    return found


@check("welcome.sent")
async def each_connection_is_welcomed(stage: Stage) -> None:
    """Each connection gets a welcome with id and capabilities: the first, a second beside it, and one after those."""
    for actor in await _everyone(stage):
        _held(actor.welcome)
    role = await newcomer(stage)
    first = await stage.join(role)
    second = await stage.another(first)  # None: each may have one connection only
    for connection in (first, second):
        if connection is not None:
            _check(connection, role)
            await connection.leave()
    _check(await stage.join(role), role)


def _check(actor: Actor, role: Role) -> None:
    _held(actor.welcome)
    demand(actor.id == (role.id or actor.id), f"{role.id} was welcomed as {actor.id!r} (§5.2)")


@check("welcome.addressed")
async def a_welcome_is_addressed_to_the_newcomer(stage: Stage) -> None:
    """`to` of every welcome that anyone receives is the id of the one it is for, and nothing else."""
    actors = await _everyone(stage)
    owner, guest = actors[0], actors[-1]
    await grant(stage, owner, guest, PROPOSAL.capability)  # it may be welcomed anew
    await stage.settle(guest, *actors[:-1])
    for actor in actors:
        own = [actor.welcome, *actor.heard(is_kind("system/welcome"))]
        for welcome in own:
            who = part(welcome, "payload", "you", "id")
            demand(
                welcome.get("to") == [who], f"a welcome for {who!r} has `to` {welcome.get('to')!r} (§3.8.1)"
            )
        demand(actor.welcome.get("to") == [actor.id], f"{actor.id} was welcomed with {actor.welcome}")


@check("welcome.you", needs=("identity.from-verified",))
async def the_welcome_says_who_one_is(stage: Stage) -> None:
    """`you` is the id that `from` must be, and the capabilities that this participant was given."""
    actors = await _everyone(stage)
    owner, listener = actors[0], actors[-1]
    demand(len({actor.id for actor in actors}) == len(actors), "two participants were welcomed under one id")
    for actor in actors:
        role, held = actor.role, _held(actor.welcome)
        demand(actor.id == (role.id or actor.id), f"{role.id!r} was welcomed as {actor.id!r} (§3.8.1)")
        given = ROLES[role.name][0] if role.name in ROLES else (CHAT,)
        for say in _SAMPLES:
            expected, found = allows(given, say), allows(held, say)
            demand(
                found in (expected, None),
                f"{actor.id} was given {list(given)}, its welcome says {held}: they differ on {say}",
            )
        other = listener if actor is owner else owner
        (arrived,) = await shown(await actor.send("chat", {"text": "hi"}), other)
        demand(
            arrived.get("from") == actor.id, f"what {actor.id} said arrives as from {arrived.get('from')!r}"
        )
        await unseen(stage, actor, await actor.send("chat", {"text": "hi"}, **{"from": other.id}), other)


@check("welcome.participants")
async def the_welcome_lists_the_others(stage: Stage) -> None:
    """A welcome lists the others who are there, each once and with what it holds now; nobody else, and not oneself."""
    owner, peer = await stage.enter_all("owner", "peer")
    guest, gone = await somebody(stage), await somebody(stage)
    given = {owner: ROLES["owner"][0], peer: ROLES["peer"][0], guest: (CHAT,)}
    for name in ("proposer", "reader", "granter"):
        if name in stage.cast.roles:
            given[await stage.enter(name)] = ROLES[name][0]
    with suppress(NotOffered):
        await granted(stage, owner, guest, PROPOSAL.capability, shown=PROPOSAL)
        given[guest] = (CHAT, PROPOSAL.capability)
    await stage.another(guest)
    await gone.leave()
    await owner.hear(leaves(gone.id), f"a system/presence that {gone.id} left (§3.7)")
    listener = await stage.enter("listener")
    again = await stage.another(listener)  # who is there itself this time
    for late in (listener, *([] if again is None else [again])):
        there = listed(late.welcome)
        for actor, held in given.items():
            times = there.count(actor.id)
            demand(times == 1, f"the welcome lists {actor.id}, who is there, {times} times: {there} (§3.8.1)")
            entry = next(p for p in late.welcome["payload"]["participants"] if p["id"] == actor.id)
            _compare(actor, held, part(entry, "capabilities"))
        demand(gone.id not in there, f"the welcome lists {gone.id}, who has left: {there} (§3.8.1)")
        demand(late.id not in there, f"the welcome lists the newcomer among the others: {there} (§3.8.1)")
        demand(len(there) == len(set(map(str, there))), f"the welcome lists somebody twice: {there} (§3.8.1)")


def _compare(actor: Actor, held: Sequence[Any], told: Any) -> None:
    """What others are told that it holds is what it was given."""
    demand(
        isinstance(told, list), f"the welcome lists {actor.id} without its capabilities: {told!r} (§3.8.1)"
    )
    for say in _SAMPLES:
        expected, found = allows(held, say), allows(told, say)
        demand(
            found in (expected, None),
            f"{actor.id} holds {list(held)}, and is listed with {told}: they differ on {say} (§3.8.1)",
        )


@check("welcome.authoritative")
async def what_the_welcome_lists_passes_and_nothing_else(stage: Stage) -> None:
    """For every participant, an envelope that fits an entry of its list passes, and one that fits none is refused."""
    actors = await _everyone(stage)
    owner = actors[0]
    for actor in actors:
        await _keeps_to(stage, actor, actors[-1] if actor is owner else owner, actor.welcome)


@check("welcome.authoritative")
async def the_list_is_exact_after_a_grant_and_a_revocation(stage: Stage) -> None:
    """A welcome that comes after a grant or a revocation, or after coming back, lists what holds then."""
    owner, guest = await stage.enter("owner"), await somebody(stage)
    first = await _kept_to(
        stage, guest, owner, granted(stage, owner, guest, PROPOSAL.capability, shown=PROPOSAL)
    )
    await _keeps_to(stage, guest, owner, (await stage.rejoin(guest)).welcome)
    await _kept_to(stage, guest, owner, granted(stage, owner, guest, REASONING.capability, shown=REASONING))
    await _kept_to(stage, guest, owner, revoke(stage, owner, guest, grant_id=first))
    await _keeps_to(stage, guest, owner, (await stage.rejoin(guest)).welcome)


async def _kept_to(stage: Stage, actor: Actor, hearer: Actor, change: Awaitable[T]) -> T:
    """The gateway need not say anew what somebody holds after a change; where it does, it keeps to it."""
    before = len(actor.welcomes)
    changed = await change
    for welcome in actor.welcomes[before:][-1:]:
        await _keeps_to(stage, actor, hearer, welcome)
    return changed


async def _keeps_to(stage: Stage, actor: Actor, hearer: Actor, welcome: dict[str, Any]) -> None:
    held = _held(welcome)
    for say in _SAMPLES:
        expected = allows(held, say)
        if expected is True:
            await passes(stage, actor, hearer, say, f"for its welcome lists {held} (§5.2)")
        elif expected is False:
            await blocked(stage, actor, hearer, say, f"for its welcome lists {held} (§5.2)")
