"""How a participant connects, who it takes itself for, and what it may do (§3.6, §3.7, §3.8, §5.2, §8.2)."""

from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, to_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantStage
from mew.conform.participant.runner import check
from mew.conform.participant.steps import fresh_word, needs_responses, some

WRITE: Final = {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "write_note"}}}


@check("connect.participant-brings-token")
async def it_connects_with_its_token(stage: ParticipantStage) -> None:
    """It connects to `/ws`, names the space, and brings its token in the Authorization header."""
    arrivals = stage.subject.arrivals
    for arrival in arrivals:
        brings = arrival.brings in ("the Authorization header", "a subprotocol")
        demand(
            brings, f"the token belongs in the Authorization header, it came in {arrival.brings}: {arrival}"
        )
        demand(arrival.path == "/ws", f"the WebSocket is at /ws, it asked for {arrival.path}")
        demand(
            arrival.query.get("space") == stage.cast.space,
            f"`space` names the space, it is {dict(arrival.query)}",
        )


@check("welcome.processed")
async def it_is_who_its_welcome_says(stage: ParticipantStage) -> None:
    """All that it sends is from the id of its welcome."""
    wrong = stage.said(lambda e: e.get("from") != stage.subject.id, since=0)
    demand(not wrong, f"its welcome says that it is {stage.subject.id!r}, it speaks as another: {wrong[:1]}")
    await stage.barrier()
    if not stage.said(lambda e: True, since=0):
        raise NotOffered("the participant never sent anything")


@check("welcome.of-others-ignored")
async def anothers_welcome_is_not_its_own(stage: ParticipantStage) -> None:
    """Shown a welcome for another, it goes on under its own id, with the capabilities it had."""
    for who in ("stranger", "somebody-new"):
        you: dict[str, Any] = {"id": who, "capabilities": []}
        welcome = {"you": you, "participants": [{"id": "owner", "capabilities": [{"kind": "*"}]}]}
        await stage.show("system/welcome", welcome, to=[who], **{"from": "system:gateway"})
        stage.never(lambda e, who=who: e.get("from") == who, "it takes the welcome of another for its own")  # type: ignore[misc]
        await stage.barrier()
    stage.never(lambda e: e.get("from") != stage.subject.id, "it speaks as another than itself")
    stage.keep()


@check("welcome.capabilities-respected")
async def it_tries_only_what_it_may(stage: ParticipantStage) -> None:
    """It sends nothing outside the capabilities of its welcome, and does more after a wider one."""
    refused = stage.subject.was_shown(
        lambda e: e.get("kind") == "system/error" and payload_of(e).get("error") == "capability_violation"
    )
    demand(not refused, f"it tried what it may not: {refused[0].data if refused else ''!r}")
    if "propose" in stage.company.prompts.said:
        await _wider(stage)
    await stage.barrier()


async def _wider(stage: ParticipantStage) -> None:
    """Granted what it had to propose, it requests that."""
    worker = await stage.worker()
    grant = await stage.ask("capability/grant", {"recipient": stage.subject.id, "capabilities": [WRITE]})

    async def take_back() -> None:
        await stage.ask("capability/revoke", {"recipient": stage.subject.id, "grant_id": grant["id"]})

    stage.afterwards(take_back)
    await stage.subject.wait(
        lambda: stage.subject.was_shown(is_kind("system/welcome"), since=stage.began) or None,
        stage.cast.patience_s,
    )
    since = stage.subject.place
    await stage.prompt("propose", word=fresh_word())
    done = await stage.hear(
        lambda e: (
            e.get("kind") in ("mcp/request", "mcp/proposal")
            and worker.id in to_of(e)
            and payload_of(e).get("method") == "tools/call"  # it may ask for the tools first
        ),
        "a request or a proposal to write the note",
        since=since,
    )
    if done["kind"] == "mcp/proposal":
        await stage.ask("mcp/reject", {"reason": "other"}, correlation_id=[done["id"]])
    demand(done["kind"] == "mcp/request", "its welcome allows the request now, and it still proposes")


@check("presence.tracked")
async def it_knows_who_is_there(stage: ParticipantStage) -> None:
    """It deals with who joined after it, and no longer turns to who has left."""
    needs_responses(stage)
    await stage.actor("owner")
    await stage.answer(await stage.request("ping", by="reviewer"))
    if "request" not in stage.company.prompts.said:
        raise NotOffered("the kit was not told what makes it call the worker (the prompt 'request')")
    await _turns_to(stage)
    await stage.leave("worker")
    left = stage.never(
        lambda e: e.get("kind") == "mcp/request" and "worker" in to_of(e),
        "it turns to somebody who has left",
        since=stage.subject.place,
    )
    await stage.prompt("request")
    await stage.barrier()
    await stage.barrier()
    stage.lift(left)
    await _turns_to(stage)


async def _turns_to(stage: ParticipantStage) -> None:
    """It calls the worker, who is there."""
    worker = await stage.worker()
    since = stage.subject.place
    await stage.prompt("request")
    called = await stage.heard_if(
        lambda e: e.get("kind") == "mcp/request" and worker.id in to_of(e), since=since
    )
    if called is None:
        raise NotOffered("the prompt 'request' did not make it call the worker")


# Grants.


async def _granted(stage: ParticipantStage, **fields: Any) -> dict[str, Any]:
    """Somebody grants it something harmless; taken back when the check is over."""
    payload = {"recipient": stage.subject.id, "capabilities": [{"kind": f"conform/{fresh_word()}"}], **fields}
    grant = await stage.ask("capability/grant", payload)

    async def take_back() -> None:
        await stage.ask("capability/revoke", {"recipient": stage.subject.id, "grant_id": grant["id"]})

    stage.afterwards(take_back)
    return grant


@check("grant-ack.sent")
async def a_grant_is_acknowledged(stage: ParticipantStage) -> None:
    """It answers each grant to it with one `capability/grant-ack`, and grants to others with none."""
    for _ in range(2):
        since = stage.subject.place
        await _granted(stage)
        await stage.hear(is_kind("capability/grant-ack"), "capability/grant-ack after a grant", since=since)
    await stage.barrier()
    many = stage.said(is_kind("capability/grant-ack"))
    demand(len(many) == 2, f"two grants get two capability/grant-ack, not {len(many)}")
    payload = {"recipient": "stranger", "capabilities": [{"kind": "conform/other"}]}
    other = await stage.ask("capability/grant", payload, to=["stranger"])
    stage.never(both(is_kind("capability/grant-ack"), about(other)), "it acknowledges a grant to another")
    await stage.barrier()
    await stage.ask("capability/revoke", {"recipient": "stranger", "grant_id": other["id"]}, to=["stranger"])


@check("grant-ack.correlates")
async def an_acknowledgement_names_the_grant(stage: ParticipantStage) -> None:
    """A `capability/grant-ack` names the grant in `correlation_id`."""
    for _ in range(2):
        since = stage.subject.place
        grant = await _granted(stage)
        ack = await stage.heard_if(is_kind("capability/grant-ack"), since=since)
        if ack is None:
            raise NotOffered("the participant does not acknowledge grants")
        demand(grant["id"] in causes(ack), f"expected it to name the grant {grant['id']}, not {causes(ack)}")


@check("grant-ack.status")
async def an_acknowledgement_says_accepted(stage: ParticipantStage) -> None:
    """A `capability/grant-ack` has a string in `payload.status`, `accepted` where the grant is taken."""
    since = stage.subject.place
    await _granted(stage)
    ack = await stage.heard_if(is_kind("capability/grant-ack"), since=since)
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
async def its_grants_are_whole(stage: ParticipantStage) -> None:
    """A grant of its own has `recipient` and `capabilities` in its payload."""
    await stage.worker()
    for envelope in await some(stage, "capability/grant", "grant"):
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
async def its_invitations_say_why(stage: ParticipantStage) -> None:
    """An invitation of its own says why in `payload.reason`."""
    for envelope in await some(stage, "space/invite", "invite"):
        reason = payload_of(envelope).get("reason")
        demand(isinstance(reason, str) and reason.strip(), f"an invitation says why: {envelope}")


@check("invite.email-optional")
async def its_invitations_may_have_an_address(stage: ParticipantStage) -> None:
    """An invitation of its own names who is invited; `email` is an address where there is one."""
    for envelope in await some(stage, "space/invite", "invite"):
        payload = payload_of(envelope)
        demand(isinstance(payload.get("participant_id"), str), f"it names who is invited: {envelope}")
        email = payload.get("email", "a@b")
        demand(isinstance(email, str) and "@" in email, f"`email` is an address or left out: {envelope}")
