"""Proposals (§3.2, §3.3, §8.2 "Proposal Handling"): the proposer's side and the reviewer's, each against plain JSON."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

import mew

from .client import Client, Door, Json
from .process import WAIT_S
from .test_sdk_connection import joined, serving

WRITE: Json = {
    "method": "tools/call",
    "params": {"name": "write_file", "arguments": {"path": "a.txt", "text": "hi"}},
}


def files() -> mew.Participant:
    participant = mew.Participant("files")

    @participant.tool
    async def write_file(path: str, text: str) -> str:
        return f"{len(text)} characters in {path}"

    return participant


async def following(reviews: AsyncIterator[mew.Review]) -> mew.Review:
    async with asyncio.timeout(WAIT_S):
        return await anext(reviews)


def is_call(request: Json) -> bool:
    """A reviewer asks for the tools too, to know what it decides on."""
    return bool(request["payload"]["method"] == "tools/call")


async def fulfil(client: Client, proposal: Json, *, id: int = 44) -> str:
    """As §3.2.1 shows it."""
    request = {"jsonrpc": "2.0", "id": id, **proposal["payload"]}
    return await client.say("mcp/request", request, to=proposal["to"], correlation_id=[proposal["id"]])


# The proposer.


async def test_who_may_not_ask_proposes_the_very_same(door: Door) -> None:
    """§3.2 MUST: "restricted capabilities MUST use proposals"; they "typically don't include `correlation_id`"."""
    ann = await door.join("ann")
    async with serving(door, files()), joined(door, "bot") as bot, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(bot.call("bob", "write_file", {"path": "a.txt", "text": "hi"}))
        proposal = await ann.until("mcp/proposal")
        assert proposal["payload"] == WRITE
        assert (proposal["from"], proposal["to"], "correlation_id" in proposal) == ("bot", ["bob"], False)
        fulfilment = await fulfil(ann, proposal)
        response = await ann.until("mcp/response")
        # §3.2.1: "The response goes only to the fulfiller", and its `correlation_id` names the fulfilment.
        assert (response["to"], response["correlation_id"]) == (["ann"], [fulfilment])
        # "The proposer can follow the correlation chain to track the outcome".
        assert await call == "2 characters in a.txt"
    assert not [said for said in ann.seen if said["kind"] == "mcp/request" and said["from"] == "bot"]


async def test_the_proposer_learns_who_carried_it_out_and_what_was_changed(door: Door) -> None:
    """§3.2.1: proposal, fulfilment and response are one chain, also for an approval with edits."""
    ann = await door.join("ann")
    async with serving(door, files()), joined(door, "bot") as bot:
        proposal = await bot.propose(WRITE["method"], WRITE["params"], target="bob")
        seen = await ann.until("mcp/proposal")
        assert seen["id"] == proposal.id
        params = {"name": "write_file", "arguments": {"path": "b.txt", "text": "hi"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        sent = await ann.say("mcp/request", request, to=["bob"], correlation_id=[proposal.id])
        async with asyncio.timeout(WAIT_S):
            outcome = await proposal
        assert isinstance(outcome, mew.Fulfilled)
        assert (outcome.by, outcome.request_id, outcome.response_by) == ("ann", sent, "bob")
        assert outcome.edited
        assert outcome.result["content"] == [{"type": "text", "text": "2 characters in b.txt"}]


async def test_a_withdrawal_names_the_proposal_and_says_why(door: Door) -> None:
    """§3.3.1 MUST: "`correlation_id` MUST reference the proposal being withdrawn"."""
    ann = await door.join("ann")
    async with joined(door, "bot") as bot:
        proposal = await bot.propose("tools/list", target="ann")
        await proposal.withdraw()
        assert await proposal == mew.Withdrawn(reason="no_longer_needed")
        withdrawn = await ann.until("mcp/withdraw")
    assert (withdrawn["from"], withdrawn["correlation_id"]) == ("bot", [proposal.id])
    assert withdrawn["payload"] == {"reason": "no_longer_needed"}


async def test_what_nobody_takes_up_in_time_is_withdrawn(door: Door) -> None:
    """§3.3.1 MUST; the reason is the standard code `timeout` (§3.3.3)."""
    ann = await door.join("ann")
    async with joined(door, "bot") as bot:
        proposal = await bot.propose("tools/list", target="ann", timeout_s=0.5)
        async with asyncio.timeout(WAIT_S):
            assert isinstance(await proposal, mew.TimedOut)
        withdrawn = await ann.until("mcp/withdraw")
    assert (withdrawn["correlation_id"], withdrawn["payload"]) == ([proposal.id], {"reason": "timeout"})


async def test_nobody_else_withdraws_a_proposal(door: Door) -> None:
    """§3.3.1: "Only the original proposer can withdraw their proposals"."""
    await door.join("ann")
    async with joined(door, "bot") as bot, joined(door) as bob:
        proposal = await bot.propose("tools/list", target="ann")
        with pytest.raises(mew.Refused) as refused:
            await bob.send("mcp/withdraw", {"reason": "other"}, correlation_id=proposal.id)
        assert refused.value.why == "not_proposer"
        assert bot.book[proposal.id].is_open(datetime.now(UTC))


@pytest.mark.parametrize(
    "payload", [{"reason": "unsafe"}, {"reason": "mercury_in_retrograde"}, {"reason": ""}, {}]
)
async def test_a_rejection_ends_it_at_once_whatever_its_reason(door: Door, payload: Json) -> None:
    """§3.3.3 MUST: "handle unknown codes gracefully"; "Process the reject immediately", "Not block on explanations"."""
    ann = await door.join("ann")
    async with joined(door, "bot") as bot:
        proposal = await bot.propose("tools/list", target="ann")
        await ann.say("mcp/reject", payload, to=["bot"], correlation_id=[proposal.id])
        async with asyncio.timeout(WAIT_S):
            outcome = await proposal
    assert isinstance(outcome, mew.Rejected)
    assert (outcome.by, outcome.reason) == ("ann", payload.get("reason") or None)


async def test_an_explanation_is_found_with_the_rejection_when_it_comes(door: Door) -> None:
    """§3.3.3: "Detailed explanations can be provided via follow-up chat messages using `correlation_id`"."""
    ann = await door.join("ann")
    async with joined(door, "bot") as bot:
        chats = bot.envelopes("chat")
        proposal = await bot.propose("tools/list", target="ann")
        rejected = await ann.say("mcp/reject", {"reason": "busy"}, to=["bot"], correlation_id=[proposal.id])
        async with asyncio.timeout(WAIT_S):
            await proposal
            early = proposal.explanations
            assert early == ()
            await ann.say("chat", {"text": "In 5 minutes."}, to=["bot"], correlation_id=[rejected])
            await anext(chats)
        assert [said.text for said in proposal.explanations] == ["In 5 minutes."]


async def test_a_proposer_may_wait_for_others_after_a_rejection(door: Door) -> None:
    """§3.3.2 MAY: "continue waiting for other participants to fulfill (resilient approach)"."""
    ann = await door.join("ann")
    async with serving(door, files()), joined(door, "bot") as bot:
        proposal = await bot.propose(
            WRITE["method"], WRITE["params"], target="bob", strategy=mew.Strategy.RESILIENT
        )
        seen = await ann.until("mcp/proposal")
        await ann.say("mcp/reject", {"reason": "busy"}, to=["bot"], correlation_id=[proposal.id])
        await fulfil(ann, seen)
        async with asyncio.timeout(WAIT_S):
            assert isinstance(await proposal, mew.Fulfilled)


# The reviewer.


async def test_a_reviewer_sees_each_proposal_and_what_it_would_do(door: Door) -> None:
    """§8.2: "Recognize `mcp.proposal` messages"."""
    bot = await door.join("bot")
    early = await bot.say("mcp/proposal", WRITE, to=["ann"])
    async with joined(door) as bob:
        reviews = bob.proposals()
        late = await bot.say("mcp/proposal", WRITE, to=["ann"])
        review = await following(reviews)
        assert (review.id, review.proposer, review.target) == (late, "bot", "ann")
        assert (review.method, review.tool) == ("tools/call", "write_file")
        assert review.arguments == {"path": "a.txt", "text": "hi"}
        assert "write_file" in review.preview()
        assert early != late


@pytest.mark.parametrize("context", ["reason-start-1", "a/b/c"])
async def test_a_proposal_with_a_context_is_not_ignored(door: Door, context: str) -> None:
    """§3.5.6 MUST NOT: "ignore … `mcp/proposal` messages, even if they have a context field"."""
    bot = await door.join("bot")
    async with joined(door) as bob:
        reviews = bob.proposals()
        proposed = await bot.say("mcp/proposal", WRITE, to=["ann"], context=context)
        review = await following(reviews)
        assert (review.id, review.context) == (proposed, context)


async def test_an_approval_is_the_request_that_was_proposed_and_names_it(door: Door) -> None:
    """§3.2.1 MUST: "Fulfillment messages MUST include `correlation_id` referencing the proposal's `id`"; §8.2."""
    ann, bot = await door.join("ann"), await door.join("bot")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:
        reviews = bob.proposals()
        proposed = await bot.say("mcp/proposal", WRITE, to=["ann"])
        approval = tasks.create_task((await following(reviews)).approve())
        request = await ann.until("mcp/request", is_call)
        assert (request["from"], request["to"], request["correlation_id"]) == ("bob", ["ann"], [proposed])
        number = request["payload"].pop("id")
        assert request["payload"] == {"jsonrpc": "2.0", "via": "sdk", **WRITE}
        result = {"content": [{"type": "text", "text": "written"}]}
        answer = {"jsonrpc": "2.0", "id": number, "result": result}
        await ann.say("mcp/response", answer, to=["bob"], correlation_id=[request["id"]])
        async with asyncio.timeout(WAIT_S):
            assert await approval == "written"


async def test_an_edited_approval_sends_what_the_reviewer_changed(door: Door) -> None:
    """§3.2.1 MUST, and design §5: what was changed is what runs, and is known to be changed."""
    ann, bot = await door.join("ann"), await door.join("bot")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:
        reviews = bob.proposals()
        proposed = await bot.say("mcp/proposal", WRITE, to=["ann"])
        review = await following(reviews)
        approval = tasks.create_task(review.approve(review.arguments | {"path": "safe.txt"}))
        request = await ann.until("mcp/request", is_call)
        assert request["correlation_id"] == [proposed]
        assert request["payload"]["params"]["arguments"] == {"path": "safe.txt", "text": "hi"}
        answer = {"jsonrpc": "2.0", "id": request["payload"]["id"], "result": {"content": []}}
        await ann.say("mcp/response", answer, to=["bob"], correlation_id=[request["id"]])
        async with asyncio.timeout(WAIT_S):
            await approval
        assert review.record.fulfilment is not None
        assert review.record.fulfilment.edited


async def test_a_rejection_names_the_proposal_and_carries_its_words(door: Door) -> None:
    """§3.3.2 MUST: "`correlation_id` MUST reference the proposal being rejected"; design §3.20."""
    bot = await door.join("bot")
    async with joined(door) as bob:
        reviews = bob.proposals()
        proposed = await bot.say("mcp/proposal", WRITE, to=["ann"])
        await (await following(reviews)).reject("unsafe", "That file is read by others.")
        rejected = await bot.until("mcp/reject")
        assert (rejected["to"], rejected["correlation_id"]) == (["bot"], [proposed])
        assert rejected["payload"] == {
            "reason": "unsafe",
            "message": "That file is read by others.",
            "via": "sdk",
        }


async def test_what_was_withdrawn_or_approved_is_not_approved_again(door: Door) -> None:
    """§3.3.1: "no longer needed"; §8.2: "Implement fulfillment logic for approved proposals"."""
    ann, bot = await door.join("ann"), await door.join("bot")
    async with joined(door) as bob:
        reviews, withdrawals = bob.proposals(), bob.envelopes("mcp/withdraw")
        requests = bob.envelopes("mcp/request", sender="ann")
        first, second = [await bot.say("mcp/proposal", WRITE, to=["ann"]) for _ in range(2)]
        withdrawn, taken = await following(reviews), await following(reviews)
        await bot.say("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[first])
        await fulfil(ann, {"id": second, "to": ["ann"], "payload": WRITE})
        async with asyncio.timeout(WAIT_S):
            await anext(withdrawals)
            await anext(requests)
        for review in (withdrawn, taken):
            with pytest.raises(mew.AlreadyDecided):
                await review.approve()
    await ann.since_now()
    requested = [said for said in ann.seen if said["kind"] == "mcp/request" and said["from"] == "bob"]
    assert not [said for said in requested if is_call(said)]


async def test_a_participant_decides_by_a_function_of_its_author(door: Door) -> None:
    """§8.2: "Implement fulfillment logic for approved proposals", without a loop of one's own."""
    participant = mew.Participant("reviewer")

    @participant.on_proposal
    async def decide(proposal: mew.Review) -> None:
        await proposal.reject("policy")

    bot = await door.join("bot")
    async with serving(door, participant):
        proposed = await bot.say("mcp/proposal", WRITE, to=["ann"])
        assert (await bot.until("mcp/reject"))["correlation_id"] == [proposed]
