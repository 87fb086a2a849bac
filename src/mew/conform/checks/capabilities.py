"""Capabilities: enforced on everything, for each participant by its own list, and as that list changes (§4, §5)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mew.conform.cast import ROLES
from mew.conform.checking import check
from mew.conform.fates import gets_through
from mew.conform.giving import granted, revoke
from mew.conform.guests import somebody
from mew.conform.holding import held_to
from mew.conform.matching import is_id
from mew.conform.refusing import unheard
from mew.conform.sayings import CALL, CHAT, HELLO, PROPOSAL, Say, allows, call, fresh
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, Violation, demand
from mew.conform.wire import Actor

_READ: Final = call("read_file")
_KINDS: Final = (
    *("mcp/request", "mcp/response", "mcp/proposal", "mcp/withdraw", "mcp/reject"),
    *("reasoning/start", "reasoning/thought", "reasoning/conclusion", "reasoning/cancel"),
    *("capability/grant", "capability/revoke", "capability/grant-ack", "space/invite", "space/kick"),
    *("participant/pause", "participant/resume", "participant/status", "participant/request-status"),
    *("participant/forget", "participant/compact", "participant/compact-done", "participant/clear"),
    *("participant/restart", "participant/shutdown", "stream/request", "stream/open", "stream/close"),
    *("chat/acknowledge", "chat/cancel"),
)


@check("capability.patterns")
async def capabilities_are_objects_with_patterns(stage: Stage) -> None:
    """Welcomes list capabilities as objects with `kind` and perhaps `payload`, and both must fit."""
    owner = await stage.enter("owner")
    for name, (held, _) in ROLES.items():
        if name not in stage.cast.roles:
            continue
        actor = owner if name == "owner" else await stage.enter(name)
        listed = actor.capabilities
        demand(isinstance(listed, list), f"the capabilities in the welcome of {name} are no list: {listed!r}")
        for one in listed:
            formed = (
                isinstance(one, dict) and "kind" in one and isinstance(one.get("payload", {}), dict | list)
            )
            demand(formed, f"the welcome of {name} lists {one!r}, which is no object with a `kind` (§4.1)")
        for capability in held:
            there = any(capability.items() <= one.items() for one in listed)
            demand(there, f"the welcome of {name} does not list its {json.dumps(capability)}: {listed!r}")
    reader = await stage.enter("reader")
    beside = [
        CALL,
        call("read_file", kind="mcp/proposal"),
        Say("mcp/withdraw", _READ.payload),
        Say("mcp/request"),
    ]
    await held_to(
        stage,
        reader,
        owner,
        ROLES["reader"][0],
        passing=[_READ, Say("chat", {**CALL.payload, "text": "hello"})],
        refused=beside,
    )


@check("capability.blocked")
async def what_is_not_allowed_reaches_no_one(stage: Stage) -> None:
    """Nothing of a refused envelope is seen, whatever it names: not by those addressed, by others, or by its sender."""
    owner, peer, reader = await stage.enter_all("owner", "peer", "reader")
    listener = await stage.enter("listener")
    proposal = await PROPOSAL.by(peer)
    await stage.settle(peer, owner)
    addressees = ((), (owner,), (peer, owner), (reader,), (listener,))
    shapes: list[dict[str, Any]] = [{}, {"to": ["gateway"]}]
    shapes += [{"to": [one.id for one in named]} for named in addressees]
    shapes += [{"correlation_id": [proposal["id"]]}, {"context": proposal["id"]}]
    for speaker, other in ((reader, listener), (listener, reader)):
        for kind in (
            "mcp/request",
            "mcp/proposal",
            "reasoning/thought",
            "chat/acknowledge",
            "participant/status",
        ):
            secret = fresh()
            hidden = {"text": secret, "method": "tools/call", "params": {"name": "write_file", "why": secret}}
            for fields in shapes:
                await speaker.send(kind, hidden, **fields)
                await stage.settle(speaker, owner)  # it may be cut off for each
            what = f"a {kind}, which {speaker.name} holds no capability for (§4.2),"
            await unheard(stage, speaker, secret, what, owner, peer, other)
            seen = [one for one in speaker.received if secret in json.dumps(one.get("payload"))]
            shown = [one for one in seen if one.get("kind") != "system/error"]
            demand(not shown, f"{what} must reach no one; {speaker.name} received it back: {shown[:1]}")


@check("capability.blocked")
async def no_kind_passes_without_a_capability(stage: Stage) -> None:
    """Of all the kinds that the document names, those that a list does not allow reach no one."""
    owner, listener, proposer = await stage.enter_all("owner", "listener", "proposer")
    for speaker in (listener, proposer):
        forbidden = [kind for kind in _KINDS if allows(speaker.capabilities, Say(kind)) is False]
        if not forbidden:
            raise NotOffered(f"the welcome of {speaker.name} allows everything: {speaker.capabilities}")
        for kind in forbidden:
            mark = fresh()
            await speaker.send(kind, {"text": mark}, id=mark, to=[owner.id])
            what = f"a {kind}, which {speaker.name} holds no capability for (§4.2),"
            await unheard(stage, speaker, mark, what, owner)


@check("capability.blocked")
async def nothing_gets_round_the_rules(stage: Stage) -> None:
    """An envelope that is not allowed is not let in in disguise: escaped, with a field twice, or in a binary frame."""
    owner, reader = await stage.enter_all("owner", "reader")
    plain = {"protocol": "mew/v0.4", "id": "ID", "ts": "2026-01-01T00:00:00Z", "from": reader.id}
    write = json.dumps({**plain, "kind": "mcp/request", "payload": CALL.payload})
    disguises = (
        write.replace('"kind": ', '"kind": "chat", "kind": '),
        write.replace('"payload": ', f'"payload": {json.dumps(_READ.payload)}, "payload": '),
        write.replace('"name": ', '"name": "read_file", "name": '),
        write.replace('"mcp/request"', '"\\u006dcp/request"'),
        write.replace('"kind"', '"\\u006bind"'),
        write.replace('"write_file"', '"wri\\u0074e_file"'),
        f" \n{write}",
        write.encode(),
    )
    for disguise in disguises:
        await _send_as_it_is(reader, disguise)
        await stage.come_through(reader, owner)
    passed = owner.heard(lambda e: e.get("kind") == "mcp/request")
    demand(not passed, f"owner received what reader holds no capability for (§4.2): {passed[:1]}")


async def _send_as_it_is(speaker: Actor, text: str | bytes) -> None:
    if isinstance(text, bytes):
        await speaker.send_binary(text.replace(b"ID", fresh().encode()))
    else:
        await speaker.send_text(text.replace("ID", fresh()))


@check("capability.enforced-on-all")
async def every_envelope_is_judged(stage: Stage) -> None:
    """The same violation is refused each time: the first thing said, among good ones, elsewhere and after a return."""
    owner, reader = await stage.enter_all("owner", "reader")
    held = ROLES["reader"][0]
    await held_to(stage, reader, owner, held, passing=[HELLO], refused=[CALL])
    if len(reader.welcomes) == 1:  # else it is cut off for each violation
        said = [await say.by(reader) for say in (_READ, CALL, HELLO, PROPOSAL) * 6]
        await stage.settle(reader, owner)
        _only(owner, said, ("chat", "read_file"))
    for connection in await stage.twice(reader, owner):
        await held_to(stage, connection, owner, held, passing=[_READ, HELLO], refused=[CALL, PROPOSAL, CALL])
        await connection.leave()
    await stage.come_back(reader)
    await held_to(stage, reader, owner, held, passing=[HELLO, _READ], refused=[CALL, PROPOSAL])


def _only(witness: Actor, said: Sequence[Mapping[str, Any]], allowed: Sequence[str]) -> None:
    """Of what was said, and has arrived if it ever will, the witness received what is allowed and nothing else."""
    for number, sent in enumerate(said, 1):
        name = sent["payload"].get("params", {}).get("name", sent["kind"])
        may_pass = name in allowed and sent["kind"] != "mcp/proposal"
        where = f"envelope {number} of {len(said)} in a row, {sent['kind']} {name}"
        came = bool(witness.heard(is_id(sent["id"])))
        does = "received" if came else "did not receive"
        demand(
            came is may_pass, f"{where}, is {'' if may_pass else 'not '}allowed, and {witness.name} {does} it"
        )


@check("capability.dynamic")
async def a_change_counts_at_once(stage: Stage) -> None:
    """Each grant opens what it says and no more, on the connection there is, and each revocation closes it."""
    owner, held = await stage.enter("owner"), [CHAT, {"kind": "mcp/proposal"}]
    agent = await somebody(stage, *held)
    steps: Sequence[tuple[Any, Sequence[Say]]] = (
        ({"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_*"}}}, [_READ]),
        ({"kind": "mcp/request", "payload": {"method": "tools/call"}}, [CALL]),
        ({"kind": "mcp/*"}, [Say("mcp/reject", {"reason": "busy"}, {"correlation_id": ["p-1"]})]),
    )
    later = [say for _, opened in steps for say in opened]
    grants, passing = [], [HELLO, PROPOSAL]
    await held_to(stage, agent, owner, held, passing=passing, refused=later)
    for capability, opened in steps:
        grants.append(await _granted(stage, owner, agent, capability, opened[0]))
        held, passing = [*held, capability], [*passing, *opened]
        later = [say for say in later if say not in opened]
        await held_to(stage, agent, owner, held, passing=passing, refused=later)
    listener = await stage.enter("listener")
    await held_to(stage, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=[_READ, CALL])
    for (_, opened), grant_id in zip(reversed(steps), reversed(grants), strict=True):
        await revoke(stage, owner, agent, grant_id=grant_id)
        held, passing = held[:-1], [say for say in passing if say not in opened]
        later = [*later, *opened]
        await held_to(stage, agent, owner, held, passing=passing, refused=later)


async def _granted(stage: Stage, owner: Actor, agent: Actor, capability: Any, opened: Say) -> str:
    """The grant's id, once it counts.

    Raises:
        NotOffered: it never does.
        Violation: it does only after a return.
    """
    try:
        return await granted(stage, owner, agent, capability, shown=opened)
    except NotOffered:
        if await gets_through(await stage.rejoin(agent), owner, opened):
            raise Violation(
                f"what was granted, {json.dumps(capability)}, counts only after {agent.name} has connected again"
            ) from None
        raise
