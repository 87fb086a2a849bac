"""The welcome, and who joins and leaves (§3.7, §3.8.1, §5.2)."""

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import CHAT, HELLO, PROPOSAL, REASONING, STATUS, allows, call, request
from mew.conform.expectations import expect_draft_refused, expect_passes, expect_shown, expect_unseen
from mew.conform.fixtures import dismiss, grant, granted, newcomer, revoke, somebody
from mew.conform.match import events, is_kind, joins, leaves, listed, part, same
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.roles import ROLES, Role
from mew.conform.runner import check

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


async def _everyone(ctx: CheckContext) -> list[ScriptedClient]:
    """All the roles there are tokens for, and somebody new, each connected."""
    return [*[await ctx.client(name) for name in ROLES if name in ctx.config.roles], await somebody(ctx)]


def _held(welcome: dict[str, Any]) -> list[Any]:
    held = part(welcome, "payload", "you", "capabilities")
    demand(
        isinstance(held, list), f"`payload.you.capabilities` of a welcome is {held!r}, not a list (§3.8.1)"
    )
    found: list[Any] = held
    return found


@check("welcome.sent")
async def each_connection_is_welcomed(ctx: CheckContext) -> None:
    """Each connection gets a welcome with id and capabilities: the first, a second beside it, and one after those."""
    for client in await _everyone(ctx):
        _held(client.welcome)
    role = await newcomer(ctx)
    first = await ctx.join(role)
    second = await ctx.second_connection(first)  # None: each may have one connection only
    for connection in (first, second):
        if connection is not None:
            _check(connection, role)
            await connection.leave()
    _check(await ctx.join(role), role)


def _check(client: ScriptedClient, role: Role) -> None:
    _held(client.welcome)
    demand(client.id == (role.id or client.id), f"{role.id} was welcomed as {client.id!r} (§5.2)")


@check("welcome.addressed")
async def a_welcome_is_addressed_to_the_newcomer(ctx: CheckContext) -> None:
    """`to` of every welcome that anyone receives is the id of the one it is for, and nothing else."""
    actors = await _everyone(ctx)
    owner, guest = actors[0], actors[-1]
    await grant(ctx, owner, guest, PROPOSAL.capability)  # it may be welcomed anew
    await ctx.barrier(guest, *actors[:-1])
    for client in actors:
        own = [client.welcome, *client.matching(is_kind("system/welcome"))]
        for welcome in own:
            who = part(welcome, "payload", "you", "id")
            demand(
                welcome.get("to") == [who], f"a welcome for {who!r} has `to` {welcome.get('to')!r} (§3.8.1)"
            )
        demand(client.welcome.get("to") == [client.id], f"{client.id} was welcomed with {client.welcome}")


@check("welcome.you", needs=("identity.from-verified",))
async def the_welcome_says_who_one_is(ctx: CheckContext) -> None:
    """`you` is the id that `from` must be, and the capabilities that this participant was given."""
    actors = await _everyone(ctx)
    owner, listener = actors[0], actors[-1]
    demand(
        len({client.id for client in actors}) == len(actors), "two participants were welcomed under one id"
    )
    for client in actors:
        role, held = client.role, _held(client.welcome)
        demand(client.id == (role.id or client.id), f"{role.id!r} was welcomed as {client.id!r} (§3.8.1)")
        given = ROLES[role.name][0] if role.name in ROLES else (CHAT,)
        for draft in _SAMPLES:
            expected, found = allows(given, draft), allows(held, draft)
            demand(
                found in (expected, None),
                f"{client.id} was given {list(given)}, its welcome says {held}: they differ on {draft}",
            )
        other = listener if client is owner else owner
        (arrived,) = await expect_shown(await client.send("chat", {"text": "hi"}), other)
        demand(
            arrived.get("from") == client.id, f"what {client.id} said arrives as from {arrived.get('from')!r}"
        )
        await expect_unseen(
            ctx, client, await client.send("chat", {"text": "hi"}, **{"from": other.id}), other
        )


@check("welcome.participants")
async def the_welcome_lists_the_others(ctx: CheckContext) -> None:
    """A welcome lists the others who are there, each once and with what it holds now; nobody else, and not oneself."""
    owner, peer = await ctx.clients("owner", "peer")
    guest, gone = await somebody(ctx), await somebody(ctx)
    given = {owner: ROLES["owner"][0], peer: ROLES["peer"][0], guest: (CHAT,)}
    for name in ("proposer", "reader", "granter"):
        if name in ctx.config.roles:
            given[await ctx.client(name)] = ROLES[name][0]
    with suppress(NotOffered):
        await granted(ctx, owner, guest, PROPOSAL.capability, shown=PROPOSAL)
        given[guest] = (CHAT, PROPOSAL.capability)
    await ctx.second_connection(guest)
    await gone.leave()
    await owner.expect(leaves(gone.id), f"a system/presence that {gone.id} left (§3.7)")
    listener = await ctx.client("listener")
    again = await ctx.second_connection(listener)  # who is there itself this time
    for late in (listener, *([] if again is None else [again])):
        there = listed(late.welcome)
        for client, held in given.items():
            times = there.count(client.id)
            demand(
                times == 1, f"the welcome lists {client.id}, who is there, {times} times: {there} (§3.8.1)"
            )
            entry = next(p for p in late.welcome["payload"]["participants"] if p["id"] == client.id)
            _compare(client, held, part(entry, "capabilities"))
        demand(gone.id not in there, f"the welcome lists {gone.id}, who has left: {there} (§3.8.1)")
        demand(late.id not in there, f"the welcome lists the newcomer among the others: {there} (§3.8.1)")
        demand(len(there) == len(set(map(str, there))), f"the welcome lists somebody twice: {there} (§3.8.1)")


def _compare(client: ScriptedClient, held: Sequence[Any], told: Any) -> None:
    """What others are told that it holds is what it was given."""
    demand(
        isinstance(told, list), f"the welcome lists {client.id} without its capabilities: {told!r} (§3.8.1)"
    )
    for draft in _SAMPLES:
        expected, found = allows(held, draft), allows(told, draft)
        demand(
            found in (expected, None),
            f"{client.id} holds {list(held)}, and is listed with {told}: they differ on {draft} (§3.8.1)",
        )


@check("welcome.authoritative")
async def what_the_welcome_lists_passes_and_nothing_else(ctx: CheckContext) -> None:
    """For every participant, an envelope that fits an entry of its list passes, and one that fits none is refused."""
    actors = await _everyone(ctx)
    owner = actors[0]
    for client in actors:
        await _keeps_to(ctx, client, actors[-1] if client is owner else owner, client.welcome)


@check("welcome.authoritative")
async def the_list_is_exact_after_a_grant_and_a_revocation(ctx: CheckContext) -> None:
    """A welcome that comes after a grant or a revocation, or after coming back, lists what holds then."""
    owner, guest = await ctx.client("owner"), await somebody(ctx)
    first = await _kept_to(ctx, guest, owner, granted(ctx, owner, guest, PROPOSAL.capability, shown=PROPOSAL))
    await _keeps_to(ctx, guest, owner, (await ctx.rejoin(guest)).welcome)
    await _kept_to(ctx, guest, owner, granted(ctx, owner, guest, REASONING.capability, shown=REASONING))
    await _kept_to(ctx, guest, owner, revoke(ctx, owner, guest, grant_id=first))
    await _keeps_to(ctx, guest, owner, (await ctx.rejoin(guest)).welcome)


async def _kept_to(
    ctx: CheckContext, client: ScriptedClient, receiver: ScriptedClient, change: Awaitable[T]
) -> T:
    """The gateway need not say anew what somebody holds after a change; where it does, it keeps to it."""
    before = len(client.welcomes)
    changed = await change
    for welcome in client.welcomes[before:][-1:]:
        await _keeps_to(ctx, client, receiver, welcome)
    return changed


async def _keeps_to(
    ctx: CheckContext, client: ScriptedClient, receiver: ScriptedClient, welcome: dict[str, Any]
) -> None:
    held = _held(welcome)
    for draft in _SAMPLES:
        expected = allows(held, draft)
        if expected is True:
            await expect_passes(ctx, client, receiver, draft, f"for its welcome lists {held} (§5.2)")
        elif expected is False:
            await expect_draft_refused(ctx, client, receiver, draft, f"for its welcome lists {held} (§5.2)")


_is_presence = is_kind("system/presence")


async def _observers(ctx: CheckContext) -> list[ScriptedClient]:
    """Owner and listener, and whom there are tokens for beside them."""
    others = [name for name in ("peer", "proposer", "reader", "granter") if name in ctx.config.roles]
    return await ctx.clients("owner", "listener", *others)


@check("presence.join")
async def everyone_is_told_who_joins(ctx: CheckContext) -> None:
    """When somebody connects everyone else is told once, and once more when it comes back."""
    observers = await _observers(ctx)
    role = await newcomer(ctx)
    for times in (1, 2):
        guest = await ctx.join(role)
        for observer in observers:
            await observer.expect(joins(guest.id), f"a system/presence that {guest.id} joined (§3.7)")
        await ctx.barrier(guest, *observers)
        for observer in observers:
            joined = events(observer.received, guest.id).count("join")
            demand(
                joined == times, f"{observer.name} is told {joined} times that {guest.id} joined, not {times}"
            )
        await guest.leave()
        for observer in observers:
            with suppress(Violation):  # which is another requirement
                await observer.expect(leaves(guest.id), "that it left")


@check("presence.leave")
async def everyone_is_told_who_leaves(ctx: CheckContext) -> None:
    """When a connection ends, closed or broken off, everyone else is told once, and not before."""
    observers = await _observers(ctx)
    role = await newcomer(ctx)
    for before, is_cut in enumerate((False, True, False)):
        guest = await ctx.join(role)
        await ctx.barrier(guest, *observers)
        for observer in observers:
            gone = events(observer.received, guest.id).count("leave")
            demand(gone == before, f"{observer.name} is told that {guest.id} left, who is there (§3.7)")
        if is_cut:
            guest.abort()
        else:
            await guest.leave()
        how = "broke off" if is_cut else "closed"
        for observer in observers:
            await observer.expect(
                leaves(guest.id), f"a system/presence that {guest.id} left, who {how} its connection (§3.7)"
            )
        await ctx.barrier(observers[0], *observers[1:])
        await ctx.barrier(observers[1], observers[0])
        for observer in observers:
            gone = events(observer.received, guest.id).count("leave")
            demand(
                gone == before + 1,
                f"{observer.name} is told {gone} times that {guest.id} left, not {before + 1} (§3.7)",
            )


@check("presence.leave")
async def who_has_another_connection_has_not_left(ctx: CheckContext) -> None:
    """Somebody with two connections leaves with the last of them; each may be told of, and then the joins are too."""
    owner = await ctx.client("owner")
    first = await somebody(ctx)
    connections = await ctx.connect_twice(first, owner)
    if len(connections) < 2:
        raise NotOffered("a participant may have one connection here")
    first, second = connections
    await ctx.barrier(second, owner)
    joined = events(owner.received, first.id).count("join")
    await first.leave()
    await expect_passes(ctx, second, owner, HELLO, "on its second connection, after it closed the first")
    gone = events(owner.received, first.id).count("leave")
    demand(
        gone == 0 or gone < joined,
        f"{owner.name} is told that {first.id} left, who is there on its second connection (§3.7): "
        f"{events(owner.received, first.id)}",
    )
    there = listed((await ctx.client("peer")).welcome)
    demand(there.count(first.id) == 1, f"a welcome lists {there}; {first.id} is there, once")
    while owner.take(leaves(first.id)):
        continue  # that of the first connection
    await second.leave()
    await owner.expect(leaves(first.id), f"a system/presence that {first.id} left, with its last connection")


@check("presence.join")
async def who_had_two_connections_joins_again(ctx: CheckContext) -> None:
    """Somebody who had two connections, and closed both, is told of when it comes back."""
    owner = await ctx.client("owner")
    connections = await ctx.connect_twice(await somebody(ctx), owner)
    if len(connections) < 2:
        raise NotOffered("a participant may have one connection here")
    who = connections[0].id
    for connection in connections:
        await connection.leave()
    with suppress(Violation):  # which is another requirement
        await owner.expect(leaves(who), "that it left")
    await ctx.barrier(await ctx.client("peer"), owner)
    before = events(owner.received, who).count("join")
    third = await ctx.join(connections[0].role)
    await ctx.barrier(third, owner)
    joined = events(owner.received, who).count("join")
    demand(
        joined == before + 1,
        f"{owner.name} is told {joined - before} times that {who} joined, who came back (§3.7)",
    )


# What a presence message has in it.


@dataclass(frozen=True, slots=True)
class _Scene:
    """Somebody came, was granted something, left, came again and was kicked: what was said of it, and to it."""

    who: str
    welcomes: list[dict[str, Any]]
    told: list[list[dict[str, Any]]]
    """What presence said to each of two observers."""

    @property
    def presences(self) -> list[dict[str, Any]]:
        return [presence for told in self.told for presence in told]


async def _scene(ctx: CheckContext) -> _Scene:
    owner, peer = await ctx.clients("owner", "peer")
    guest = await somebody(ctx)
    welcomes = [guest.welcome]
    await ctx.barrier(guest, owner)
    await grant(ctx, owner, guest, PROPOSAL.capability)
    await guest.send("system/register", {"capabilities": [CHAT]})  # not its to send
    await ctx.round_trip(guest, owner)
    if guest.welcome is not welcomes[0]:
        welcomes.append(guest.welcome)  # it was cut off, and came back
    await guest.leave()
    with suppress(Violation):  # which is another requirement
        await owner.expect(leaves(guest.id), "that it left")
    await ctx.reconnect(guest)
    welcomes.append(guest.welcome)
    await ctx.barrier(guest, owner)
    if guest.name in ctx.config.roles:
        await guest.leave()
    else:
        await dismiss(ctx, guest.id, owner)
    with suppress(Violation):
        await owner.expect(leaves(guest.id), "that it left")
    await ctx.barrier(owner, peer)
    told = [observer.matching(_is_presence) for observer in (owner, peer)]
    demand(all(told), f"{guest.id} came and left twice, and no system/presence says so (§3.7)")
    return _Scene(guest.id, welcomes, told)


@check("presence.event")
async def presence_is_join_or_leave(ctx: CheckContext) -> None:
    """`event` of every presence message is `join` or `leave`, whatever happens to a participant."""
    scene = await _scene(ctx)
    found = [part(one, "payload", "event") for one in scene.presences]
    wrong = [one for one in found if one not in ("join", "leave")]
    demand(not wrong, f"a system/presence has the event {wrong[:1]}; it is `join` or `leave` (§3.7)")
    for event in ("join", "leave"):
        demand(
            event in found, f"somebody came and left, and no system/presence has the event {event!r} (§3.7)"
        )


@check("presence.participant")
async def presence_has_a_participant(ctx: CheckContext) -> None:
    """`participant` of every presence message, join or leave, is an object."""
    for presence in (await _scene(ctx)).presences:
        participant = part(presence, "payload", "participant")
        demand(isinstance(participant, dict), f"`participant` is not an object (§3.7): {presence}")


@check("presence.participant-id")
async def presence_names_who_it_is_about(ctx: CheckContext) -> None:
    """`participant.id` of every presence message, join or leave, is the id under which that one sends."""
    scene = await _scene(ctx)
    for presence in scene.presences:
        who = part(presence, "payload", "participant", "id")
        demand(isinstance(who, str) and who, f"`participant.id` is {who!r} (§3.7): {presence}")
    for event in ("join", "leave"):
        named = event in events(scene.presences, scene.who)
        demand(named, f"{scene.who} came and left, and no {event} has that as `participant.id` (§3.7)")


@check("presence.capabilities")
async def a_join_says_what_the_newcomer_holds(ctx: CheckContext) -> None:
    """`participant.capabilities` of a join is what the welcome told the newcomer, also after a grant."""
    scene = await _scene(ctx)
    for told in scene.told:
        joined = [one for one in told if joins(scene.who)(one)]
        demand(joined, f"no system/presence says that {scene.who} joined (§3.7)")
        for presence, welcome in zip(joined, scene.welcomes, strict=False):
            found = part(presence, "payload", "participant", "capabilities")
            own = part(welcome, "payload", "you", "capabilities")
            message = f"a join lists {found} as the capabilities of {scene.who}, its welcome {own} (§3.7)"
            demand(same(found, own), message)
