"""How a participant connects, who it takes itself for, and what it may do (§3.6, §3.7, §3.8, §5.2, §8.2)."""

from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, to_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import fresh_word, needs_responses, some

WRITE: Final = {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "write_note"}}}


@check("connect.participant-brings-token")
async def it_connects_with_its_token(ctx: ParticipantContext) -> None:
    """It connects to `/ws`, names the space, and brings its token in the Authorization header."""
    arrivals = ctx.subject.arrivals
    for arrival in arrivals:
        brings = arrival.brings in ("the Authorization header", "a subprotocol")
        demand(
            brings, f"the token belongs in the Authorization header, it came in {arrival.brings}: {arrival}"
        )
        demand(arrival.path == "/ws", f"the WebSocket is at /ws, it asked for {arrival.path}")
        demand(
            arrival.query.get("space") == ctx.config.space,
            f"`space` names the space, it is {dict(arrival.query)}",
        )


@check("welcome.processed")
async def it_is_who_its_welcome_says(ctx: ParticipantContext) -> None:
    """All that it sends is from the id of its welcome."""
    wrong = ctx.said(lambda e: e.get("from") != ctx.subject.id, since=0)
    demand(not wrong, f"its welcome says that it is {ctx.subject.id!r}, it speaks as another: {wrong[:1]}")
    await ctx.barrier()
    if not ctx.said(lambda e: True, since=0):
        raise NotOffered("the participant never sent anything")


@check("welcome.of-others-ignored")
async def anothers_welcome_is_not_its_own(ctx: ParticipantContext) -> None:
    """Shown a welcome for another, it goes on under its own id, with the capabilities it had."""
    for who in ("stranger", "somebody-new"):
        you: dict[str, Any] = {"id": who, "capabilities": []}
        welcome = {"you": you, "participants": [{"id": "owner", "capabilities": [{"kind": "*"}]}]}
        await ctx.show("system/welcome", welcome, to=[who], **{"from": "system:gateway"})
        ctx.never(lambda e, who=who: e.get("from") == who, "it takes the welcome of another for its own")  # type: ignore[misc]
        await ctx.barrier()
    ctx.never(lambda e: e.get("from") != ctx.subject.id, "it speaks as another than itself")
    ctx.keep()


@check("welcome.capabilities-respected")
async def it_tries_only_what_it_may(ctx: ParticipantContext) -> None:
    """It sends nothing outside the capabilities of its welcome, and does more after a wider one."""
    refused = ctx.subject.was_shown(
        lambda e: e.get("kind") == "system/error" and payload_of(e).get("error") == "capability_violation"
    )
    demand(not refused, f"it tried what it may not: {refused[0].data if refused else ''!r}")
    if "propose" in ctx.test_run.prompts.said:
        await _wider(ctx)
    await ctx.barrier()


async def _wider(ctx: ParticipantContext) -> None:
    """Granted what it had to propose, it requests that."""
    worker = await ctx.worker()
    grant = await ctx.ask("capability/grant", {"recipient": ctx.subject.id, "capabilities": [WRITE]})

    async def take_back() -> None:
        await ctx.ask("capability/revoke", {"recipient": ctx.subject.id, "grant_id": grant["id"]})

    ctx.add_cleanup(take_back)
    await ctx.subject.wait(
        lambda: ctx.subject.was_shown(is_kind("system/welcome"), since=ctx.began) or None,
        ctx.config.timeout_s,
    )
    since = ctx.subject.place
    await ctx.prompt("propose", word=fresh_word())
    done = await ctx.expect(
        lambda e: (
            e.get("kind") in ("mcp/request", "mcp/proposal")
            and worker.id in to_of(e)
            and payload_of(e).get("method") == "tools/call"  # it may ask for the tools first
        ),
        "a request or a proposal to write the note",
        since=since,
    )
    if done["kind"] == "mcp/proposal":
        await ctx.ask("mcp/reject", {"reason": "other"}, correlation_id=[done["id"]])
    demand(done["kind"] == "mcp/request", "its welcome allows the request now, and it still proposes")


@check("presence.tracked")
async def it_knows_who_is_there(ctx: ParticipantContext) -> None:
    """It deals with who joined after it, and no longer turns to who has left."""
    needs_responses(ctx)
    await ctx.client("owner")
    await ctx.answer(await ctx.request("ping", by="reviewer"))
    if "request" not in ctx.test_run.prompts.said:
        raise NotOffered("the kit was not told what makes it call the worker (the prompt 'request')")
    await _turns_to(ctx)
    await ctx.leave("worker")
    left = ctx.never(
        lambda e: e.get("kind") == "mcp/request" and "worker" in to_of(e),
        "it turns to somebody who has left",
        since=ctx.subject.place,
    )
    await ctx.prompt("request")
    await ctx.barrier()
    await ctx.barrier()
    ctx.lift(left)
    await _turns_to(ctx)


async def _turns_to(ctx: ParticipantContext) -> None:
    """It calls the worker, who is there."""
    worker = await ctx.worker()
    since = ctx.subject.place
    await ctx.prompt("request")
    called = await ctx.expect_optional(
        lambda e: e.get("kind") == "mcp/request" and worker.id in to_of(e), since=since
    )
    if called is None:
        raise NotOffered("the prompt 'request' did not make it call the worker")


# Grants.


async def _granted(ctx: ParticipantContext, **fields: Any) -> dict[str, Any]:
    """Somebody grants it something harmless; taken back when the check is over."""
    payload = {"recipient": ctx.subject.id, "capabilities": [{"kind": f"conform/{fresh_word()}"}], **fields}
    grant = await ctx.ask("capability/grant", payload)

    async def take_back() -> None:
        await ctx.ask("capability/revoke", {"recipient": ctx.subject.id, "grant_id": grant["id"]})

    ctx.add_cleanup(take_back)
    return grant


@check("grant-ack.sent")
async def a_grant_is_acknowledged(ctx: ParticipantContext) -> None:
    """It answers each grant to it with one `capability/grant-ack`, and grants to others with none."""
    for _ in range(2):
        since = ctx.subject.place
        await _granted(ctx)
        await ctx.expect(is_kind("capability/grant-ack"), "capability/grant-ack after a grant", since=since)
    await ctx.barrier()
    many = ctx.said(is_kind("capability/grant-ack"))
    demand(len(many) == 2, f"two grants get two capability/grant-ack, not {len(many)}")
    payload = {"recipient": "stranger", "capabilities": [{"kind": "conform/other"}]}
    other = await ctx.ask("capability/grant", payload, to=["stranger"])
    ctx.never(both(is_kind("capability/grant-ack"), about(other)), "it acknowledges a grant to another")
    await ctx.barrier()
    await ctx.ask("capability/revoke", {"recipient": "stranger", "grant_id": other["id"]}, to=["stranger"])


@check("grant-ack.correlates")
async def an_acknowledgement_names_the_grant(ctx: ParticipantContext) -> None:
    """A `capability/grant-ack` names the grant in `correlation_id`."""
    for _ in range(2):
        since = ctx.subject.place
        grant = await _granted(ctx)
        ack = await ctx.expect_optional(is_kind("capability/grant-ack"), since=since)
        if ack is None:
            raise NotOffered("the participant does not acknowledge grants")
        demand(grant["id"] in causes(ack), f"expected it to name the grant {grant['id']}, not {causes(ack)}")


@check("grant-ack.status")
async def an_acknowledgement_says_accepted(ctx: ParticipantContext) -> None:
    """A `capability/grant-ack` has a string in `payload.status`, `accepted` where the grant is taken."""
    since = ctx.subject.place
    await _granted(ctx)
    ack = await ctx.expect_optional(is_kind("capability/grant-ack"), since=since)
    if ack is None:
        raise NotOffered("the participant does not acknowledge grants")
    status = payload_of(ack).get("status")
    demand(isinstance(status, str) and status, f"`payload.status` is a word: {ack}")
    refuses = any(part in str(status).lower() for part in ("reject", "refus", "declin", "den"))
    demand(
        status == "accepted" or refuses,
        f"`payload.status` of a grant that is taken is accepted, not {status!r}",
    )


@check("grant.payload")
async def its_grants_are_whole(ctx: ParticipantContext) -> None:
    """A grant of its own has `recipient` and `capabilities` in its payload."""
    await ctx.worker()
    for envelope in await some(ctx, "capability/grant", "grant"):
        payload = payload_of(envelope)
        recipient, given = payload.get("recipient"), payload.get("capabilities")
        demand(isinstance(recipient, str) and recipient, f"a grant names its `recipient`: {envelope}")
        whole = (
            isinstance(given, list)
            and given
            and all(isinstance(one, dict) and "kind" in one for one in given)
        )
        demand(whole, f"`capabilities` of a grant are patterns: {envelope}")


@check("invite.reason")
async def its_invitations_say_why(ctx: ParticipantContext) -> None:
    """An invitation of its own says why in `payload.reason`."""
    for envelope in await some(ctx, "space/invite", "invite"):
        reason = payload_of(envelope).get("reason")
        demand(isinstance(reason, str) and reason.strip(), f"an invitation says why: {envelope}")


@check("invite.email-optional")
async def its_invitations_may_have_an_address(ctx: ParticipantContext) -> None:
    """An invitation of its own names who is invited; `email` is an address where there is one."""
    for envelope in await some(ctx, "space/invite", "invite"):
        payload = payload_of(envelope)
        demand(isinstance(payload.get("participant_id"), str), f"it names who is invited: {envelope}")
        email = payload.get("email", "a@b")
        demand(isinstance(email, str) and "@" in email, f"`email` is an address or left out: {envelope}")
