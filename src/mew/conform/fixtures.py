"""What checks set up: guests, grants, streams, and envelopes of the gateway itself."""

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from .connection import ScriptedClient
from .context import CheckContext
from .drafts import CHAT, PROPOSAL, Draft, allows
from .expectations import expect_passes
from .match import answers, is_kind, leaves, listed, part
from .outcome import NotOffered, Violation, demand
from .roles import SPARES, Role

__all__ = [
    "OpenStream",
    "a_guest",
    "dismiss",
    "gateway_says",
    "grant",
    "granted",
    "in_bytes",
    "invitation",
    "invite",
    "invited",
    "newcomer",
    "open_of",
    "opened",
    "revoke",
    "somebody",
    "somebody_new",
]


async def grant(
    ctx: CheckContext, granter: ScriptedClient, whom: ScriptedClient, *capabilities: Any, **fields: Any
) -> str:
    """Grant, and return the grant's id once the recipient could know; it is taken back when the check is over."""
    payload = {"recipient": whom.id, "capabilities": list(capabilities), "reason": "conformance"}
    sent = await granter.send("capability/grant", payload, **{"to": [whom.id], **fields})
    undo = {"recipient": whom.id, "grant_id": sent["id"], "reason": "the check is over"}
    ctx.add_cleanup(partial(_take_back, ctx, granter, undo))
    observer = await ctx.client("owner") if whom is granter else whom  # nobody need hear itself
    if observer is not granter:
        await ctx.round_trip(granter, observer)
    grant_id: str = sent["id"]
    return grant_id


async def _take_back(ctx: CheckContext, granter: ScriptedClient, undo: Mapping[str, Any]) -> None:
    """By who gave it, where it may, and by the owner: what stays would be held against the gateway later."""
    owner = await ctx.client("owner")
    may = granter is not owner and allows(granter.capabilities, Draft("capability/revoke", dict(undo)))
    for revoker in (*([granter] if may else []), owner):
        await revoker.send("capability/revoke", undo)
        others = [one for one in ctx.all_clients if one.welcome and one.id != revoker.id and not one.is_gone]
        for other in others[:1]:
            await ctx.barrier(other, revoker)  # which may be cut off, if there was nothing to take


async def granted(
    ctx: CheckContext, granter: ScriptedClient, whom: ScriptedClient, *capabilities: Any, shown: Draft
) -> str:
    """Grant, and return the grant's id once it counts, as what is then shown passes.

    Raises:
        NotOffered: it never does.
    """
    grant_id = await grant(ctx, granter, whom, *capabilities)
    try:
        await expect_passes(ctx, whom, granter, shown, f"after it was granted {capabilities}")
    except Violation as error:
        raise NotOffered(f"what participants hold does not change here: {error}") from error
    return grant_id


async def revoke(ctx: CheckContext, revoker: ScriptedClient, whom: ScriptedClient, **what: Any) -> None:
    """Revoke what `grant_id` or `capabilities` says, and return once the recipient could know."""
    payload = {"recipient": whom.id, **what, "reason": "conformance"}
    await revoker.send("capability/revoke", payload, to=[whom.id])
    await ctx.round_trip(revoker, whom)


# By invitation (§3.6.4).


def somebody_new() -> str:
    """An id that nobody has."""
    return f"guest-{uuid.uuid4().hex[:12]}"


def invitation(who: str, *capabilities: Any, **more: Any) -> dict[str, Any]:
    """The payload that invites somebody with these, or with chat."""
    given = list(capabilities) or [CHAT]
    return {"participant_id": who, "initial_capabilities": given, "reason": "conformance", **more}


async def invite(
    ctx: CheckContext,
    inviter: ScriptedClient,
    payload: Mapping[str, Any],
    *,
    owner: ScriptedClient | None = None,
) -> Role:
    """Whom this invites, as a role; removed when the check is over, by the owner of the first space or this one.

    Raises:
        NotOffered: the gateway does not answer with a token.
    """
    if ctx.findings.invite_unavailable:
        raise NotOffered(ctx.findings.invite_unavailable)
    who = str(payload["participant_id"])
    sent = await inviter.send("space/invite", payload)
    ctx.add_cleanup(partial(dismiss, ctx, who, owner))
    try:
        answer = await inviter.expect(
            lambda e: answers(e, sent) and e.get("kind") != "space/invite", "an answer"
        )
    except Violation as error:
        raise NotOffered("the gateway does not answer a space/invite") from error
    token = part(answer, "payload", "token")
    if answer.get("kind") == "system/error" or not isinstance(token, str):
        raise NotOffered("the gateway gives no token for a space/invite")
    ctx.transcript.hide(token)
    return Role(who, token, who)


async def dismiss(ctx: CheckContext, who: str, owner: ScriptedClient | None = None) -> None:
    """Have somebody removed by the owner of the first space, or this one."""
    by = await ctx.client("owner") if owner is None else owner
    await by.send("space/kick", {"participant_id": who, "reason": "the check is over"})


async def invited(ctx: CheckContext, *capabilities: Any) -> Role:
    """Somebody new as a role, invited by the owner and not connected yet.

    Raises:
        NotOffered: the gateway does not answer an invitation with a token.
    """
    try:
        return await invite(ctx, await ctx.client("owner"), invitation(somebody_new(), *capabilities))
    except NotOffered as error:
        if isinstance(error.__cause__, Violation):  # what is refused may be what was given
            ctx.findings.invite_unavailable = str(error)
        raise


async def a_guest(ctx: CheckContext, *capabilities: Any) -> ScriptedClient:
    """Somebody new with these capabilities, invited by the owner, connected, and removed when the check is over.

    Raises:
        NotOffered: the gateway does not answer an invitation with a token.
    """
    return await ctx.join(await invited(ctx, *capabilities))


# By invitation, or by what the kit was given.


async def newcomer(ctx: CheckContext) -> Role:
    """Somebody who may chat and no more, and is not there yet: a guest, or a spare where none can be invited."""
    try:
        return await invited(ctx)
    except NotOffered:
        return _spare(ctx)


async def somebody(ctx: CheckContext, *capabilities: Any) -> ScriptedClient:
    """Somebody who holds these, or may chat: a guest, or a spare with a grant that is taken back afterwards.

    Raises:
        NotOffered: the gateway neither invites with a token nor grants, or will not give these. A spare can always
            chat, so it is no help where chat is not among them.
    """
    try:
        return await a_guest(ctx, *capabilities)
    except NotOffered:
        if capabilities and CHAT not in capabilities:
            raise
    spare = await _clean(ctx)
    more = [one for one in capabilities if one != CHAT]
    if more:
        works = Draft("participant/compact-done")
        await granted(ctx, await ctx.client("owner"), spare, *more, works.capability, shown=works)
    return spare


async def _clean(ctx: CheckContext) -> ScriptedClient:
    """A spare that holds no more than when it first came: nothing that an earlier check has left it.

    Raises:
        NotOffered: none does.
    """
    while True:
        try:
            spare = await ctx.join(_spare(ctx))
        except NotOffered as error:
            dirty = [name for name in SPARES if name in ctx.findings.dirty]
            if not dirty:
                raise
            raise NotOffered(
                f"{error}: {' and '.join(dirty)} hold what a check gave and could not take back"
            ) from error
        held = ctx.findings.spares.setdefault(spare.name, spare.capabilities)
        if all(one in held for one in spare.capabilities):
            return spare
        ctx.findings.dirty.add(spare.name)
        await spare.leave()


def _spare(ctx: CheckContext) -> Role:
    free = [name for name in SPARES if name in ctx.config.roles and name not in ctx.borrowed]
    if not free:
        raise NotOffered("the gateway gives no token for a space/invite, and there are too few spares")
    ctx.borrowed.add(free[0])
    return ctx.role(free[0])


@dataclass(frozen=True, slots=True)
class OpenStream:
    """An open stream: who asked for it, how, and what the gateway answered."""

    client: ScriptedClient
    request: Mapping[str, Any]
    opened: Mapping[str, Any]
    id: str

    def frame(self, data: str | bytes) -> str | bytes:
        return f"#{self.id}#{data}" if isinstance(data, str) else b"#%b#%b" % (self.id.encode(), data)

    async def write(self, data: str | bytes) -> None:
        """A frame, text or binary as the data is."""
        frame = self.frame(data)
        if isinstance(frame, str):
            await self.client.send_text(frame)
        else:
            await self.client.send_binary(frame)

    async def carries(self, data: str | bytes, *receivers: ScriptedClient) -> None:
        """Write it, and all these receive it, bare and with every byte.

        Raises:
            Violation: somebody does not.
        """
        await self.write(data)
        await self.reaches(data, *receivers)

    async def reaches(self, data: str | bytes, *receivers: ScriptedClient) -> None:
        """All these receive this frame, which was written."""
        frame = in_bytes(self.frame(data))
        for receiver in receivers:
            what = f"the frame {frame[:80]!r} ({len(frame)} bytes) of {self.client.name}, bare (§3.10.3)"
            await receiver.expect_frame(lambda heard: in_bytes(heard) == frame, what)

    def received_by(self, receiver: ScriptedClient) -> list[bytes]:
        """The data of its frames so far, in order."""
        start = in_bytes(self.frame(b""))
        frames = map(in_bytes, receiver.frames)
        return [frame[len(start) :] for frame in frames if frame.startswith(start)]

    async def close(self, reason: str = "complete") -> dict[str, Any]:
        payload = {"stream_id": self.id, "reason": reason}
        return await self.client.send("stream/close", payload, correlation_id=[self.opened["id"]])


async def opened(
    ctx: CheckContext,
    client: ScriptedClient,
    *,
    to: Any = ("gateway",),
    correlation_id: Any = ...,
    **payload: Any,
) -> OpenStream:
    """A stream that this actor asks for; closed when the check is over.

    Raises:
        Violation: the gateway opens none.
    """
    request = {"direction": "upload", **payload}
    sent = await client.send(
        "stream/request", request, to=list(to) if isinstance(to, tuple) else to, correlation_id=correlation_id
    )
    return await open_of(ctx, client, sent)


async def open_of(ctx: CheckContext, client: ScriptedClient, request: Mapping[str, Any]) -> OpenStream:
    """The stream that was asked for with this request.

    Raises:
        Violation: the gateway opens none.
    """

    def fits(envelope: Mapping[str, Any]) -> bool:
        kind, named = envelope.get("kind"), answers(envelope, request)
        if kind == "system/error":
            return named  # one that names nothing may be about a frame
        return kind == "stream/open" and (named or not envelope.get("correlation_id"))

    answer = await client.expect(fits, f"a stream/open for its stream/request {request['id']} (§3.10.1)")
    payload = answer.get("payload")
    demand(answer.get("kind") == "stream/open", f"a stream/request was refused: {payload}")
    stream_id = payload.get("stream_id") if isinstance(payload, dict) else None
    demand(
        isinstance(stream_id, str) and stream_id and "#" not in stream_id,
        f"a stream/open has a stream_id that can stand between two '#'; this one has {stream_id!r}",
    )
    stream = OpenStream(client, request, answer, str(stream_id))
    ctx.add_cleanup(stream.close)
    return stream


def in_bytes(frame: str | bytes) -> bytes:
    """A frame as it went over the wire: text and binary ones may be forwarded as either, if no byte is lost."""
    return frame.encode() if isinstance(frame, str) else frame


async def gateway_says(ctx: CheckContext) -> list[dict[str, Any]]:
    """A good many of the envelopes that the gateway itself makes: welcomes, presence, errors, answers."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    await listener.send("mcp/request", {"method": "tools/list"}, to=[owner.id])
    await _error(listener)
    for _ in range(2):  # they come and go, and each time it is said
        passing = await ctx.client("proposer")
        await passing.leave()
        with suppress(Violation):
            await peer.expect(leaves(passing.id), "that somebody left")
    await owner.send("stream/request", {"direction": "upload"}, to=["gateway"])
    with suppress(Violation):
        opened = await owner.expect(is_kind("stream/open"), "a stream/open")
        await owner.send("stream/close", opened["payload"], correlation_id=[opened["id"]])
    with suppress(NotOffered):
        await grant(ctx, owner, await a_guest(ctx), PROPOSAL.capability)
    await owner.send_text('{"protocol": "mew/v0.4", "kind"')
    await _error(owner)
    await ctx.round_trip(owner, peer, listener)
    people = {client.id for client in ctx.all_clients}
    people |= {one for client in ctx.all_clients for one in listed(client.welcome)}
    return [
        envelope
        for client in ctx.all_clients
        for envelope in client.received
        if str(envelope.get("kind")).startswith("system/") or envelope.get("from") not in people
    ]


async def _error(client: ScriptedClient) -> None:
    with suppress(Violation):
        await client.expect(is_kind("system/error"), "an error")
