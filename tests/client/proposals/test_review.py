"""The reviewer's side (§3.2.1, §3.3.2, design §5), over a real space."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import awaiting
from mew.client.errors import Absent, AlreadyDecided, Disconnected, Refused, RpcError, ToolError, Unanswered
from mew.client.mcp.requests import Requests
from mew.client.mcp.validation import InvalidArguments
from mew.client.participant.participant import Participant
from mew.client.proposals.outcomes import Fulfilled, Rejected, Strategy, Withdrawn
from mew.client.proposals.proposer import Proposer
from mew.client.proposals.review import Review, Reviews
from mew.client.proposals.tracker import keep_current
from mew.proposals.book import ProposalBook
from mew.proposals.preview import preview
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest
from mew.testing import Space

PUBLIC = {
    "kind": "mcp/request",
    "payload": {"method": "tools/call", "params": {"arguments": {"path": "/public/**"}}},
}
WHO: dict[str, list[Any]] = {
    "bot": ["chat", "mcp/proposal", "mcp/withdraw"],
    "ann": ["mcp/*", "chat"],
    "bob": ["mcp/*", "chat"],
    "kim": [PUBLIC, "mcp/request:tools/list"],  # may approve some, and reject none
    "lee": ["mcp/reject"],
    "files": ["mcp/response"],
    "disk": ["mcp/response"],
    "eve": ["chat"],
    "admin": ["*"],
}
WRITE: dict[str, Any] = {"name": "write", "arguments": {"path": "/public/a", "text": "hi"}}
TOOL = {
    "name": "write",
    "description": "Write a file.",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
        "additionalProperties": False,
    },
    "annotations": {"destructiveHint": True},
}
DONE = {"content": [{"type": "text", "text": "written"}]}


class Person:
    """Somebody in the space, with what it has seen."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.seen: list[Envelope] = []
        self.book = ProposalBook()
        keep_current(connection, self.book)
        self.requests = Requests(connection)
        self.proposals = Proposer(connection, self.requests, self.book)
        self.reviews = Reviews(connection, self.book, self.requests)
        connection.listen(lambda envelope, _: self.seen.append(envelope))

    def say(self, kind: str, payload: Any, about: Sequence[str] = (), to: Sequence[str] = ()) -> Envelope:
        envelope = self.connection.compose(kind, payload, to=to, correlation_id=about)
        self.connection.post(envelope)
        return envelope

    def kinds(self, kind: str) -> list[Envelope]:
        return [envelope for envelope in self.seen if envelope.kind == kind]

    async def until(self, kind: str, count: int = 1) -> Envelope:
        """The first, or that many-th, envelope of a kind, be it there or still to come."""
        with awaiting(self.connection, lambda *_: True if len(self.kinds(kind)) >= count else None) as seen:
            if len(self.kinds(kind)) < count:
                await seen
        return self.kinds(kind)[count - 1]

    async def review(self) -> Review:
        """The first proposal that waits for us."""
        async with self.reviews.proposals() as proposals:
            return await anext(proposals)


@asynccontextmanager
async def people(*names: str) -> AsyncIterator[list[Person]]:
    async with asyncio.timeout(5), Space(WHO) as space, AsyncExitStack() as stack:
        yield [Person(await stack.enter_async_context(space.connection(name))) for name in names]


def serve(files: Person, result: Any = DONE, error: Any = None, tool: dict[str, Any] = TOOL) -> list[Any]:
    """Answer every request as a tool server does; returns the params of the calls it gets."""
    calls: list[Any] = []

    def answer(envelope: Envelope, payload: Any) -> None:
        if not isinstance(payload, McpRequest) or payload.id is UNSET:
            return
        if files.connection.session.me in envelope.to:
            said = {"result": {"tools": [tool]}}
            if payload.method != "tools/list":
                calls.append(payload.params)
                said = {"result": result} if error is None else {"error": error}
            answered = {"jsonrpc": "2.0", "id": payload.id, **said}
            files.say(Kind.MCP_RESPONSE, answered, [envelope.id], [envelope.sender])

    files.connection.listen(answer)
    return calls


# What is shown.


async def test_open_proposals_come_first_and_then_those_that_follow() -> None:
    async with people("bot", "ann") as (bot, ann):
        first = await bot.proposals.propose("tools/call", WRITE)
        gone = await bot.proposals.propose("tools/call", WRITE)
        await gone.withdraw()
        await ann.until(Kind.MCP_WITHDRAW)
        async with ann.reviews.proposals() as proposals:
            second = await bot.proposals.propose("tools/call", WRITE)
            assert [(await anext(proposals)).id for _ in range(2)] == [first.id, second.id]


async def test_each_iteration_has_all_of_them_and_each_of_them_once() -> None:
    async with people("bot", "ann", "eve") as (bot, ann, _):
        one, other = ann.reviews.proposals(), ann.reviews.proposals()
        for _ in range(3):
            await bot.proposals.propose("tools/call", WRITE)
        await ann.until(Kind.MCP_PROPOSAL, 3)
        assert (len(one), len(other)) == (3, 3)
        one.close()
        await bot.proposals.propose("tools/call", WRITE)
        await ann.until(Kind.MCP_PROPOSAL, 4)
        assert (len(one), len(other)) == (3, 4)


async def test_only_what_one_could_fulfil_or_reject_is_shown() -> None:
    async with people("bot", "ann", "kim", "lee", "eve") as (bot, ann, kim, lee, eve):
        feeds = {who: who.reviews.proposals() for who in (bot, ann, kim, lee, eve)}
        secret = {"name": "write", "arguments": {"path": "/secret"}}
        await bot.proposals.propose("tools/call", WRITE, target="files")
        await bot.proposals.propose("tools/call", secret, target="files")
        await bot.proposals.propose("tools/call", WRITE)
        for who in feeds:
            await who.until(Kind.MCP_PROPOSAL, 3)
        assert [len(feed) for feed in feeds.values()] == [0, 3, 2, 3, 0]


async def test_what_is_for_others_alone_is_not_shown() -> None:
    async with people("bot", "ann", "bob") as (bot, ann, bob):
        anns, bobs = ann.reviews.proposals(), bob.reviews.proposals()
        await bot.proposals.propose("tools/call", WRITE, strategy=Strategy.EXCLUSIVE, reviewers=["ann"])
        await bot.proposals.propose("tools/call", WRITE, strategy=Strategy.PREFERRED, reviewers=["ann"])
        await ann.until(Kind.MCP_PROPOSAL, 2)
        await bob.until(Kind.MCP_PROPOSAL, 2)
        assert (len(anns), len(bobs)) == (2, 1)


async def test_what_one_is_granted_later_is_shown_then_9_2() -> None:
    async with people("bot", "eve", "admin") as (bot, eve, admin):
        await bot.proposals.propose("tools/call", WRITE)
        await eve.until(Kind.MCP_PROPOSAL)
        proposals = eve.reviews.proposals()
        assert len(proposals) == 0
        admin.say(Kind.GRANT, {"recipient": "eve", "capabilities": ["mcp/request"]}, to=["eve"])
        assert (await anext(proposals)).proposer == "bot"


async def test_a_review_shows_what_it_would_do_and_what_the_tool_says_of_itself() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        await ann.requests.request("files", "tools/list")
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files", context="work")
        review = await ann.review()
        assert (review.id, review.proposer, review.target) == (proposal.id, "bot", "files")
        assert (review.method, review.tool, review.context) == ("tools/call", "write", "work")
        assert (review.params, review.arguments) == (WRITE, WRITE["arguments"])
        assert review.description == "Write a file."
        assert review.schema == TOOL["inputSchema"]
        assert review.annotations == {"destructiveHint": True}
        assert review.digest == ann.book[proposal.id].digest
        assert not review.changed
        assert review.preview() == preview(ann.book[proposal.id])


async def test_a_tool_that_changed_is_marked() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        await ann.requests.request("files", "tools/list")
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        for listener in files.connection.listeners:
            files.connection.unlisten(listener)
        serve(files, tool={**TOOL, "inputSchema": {"type": "object"}})
        await ann.requests.request("files", "tools/list")
        assert review.changed
        assert review.schema == {"type": "object"}


async def test_an_unknown_tool_has_neither_schema_nor_description() -> None:
    async with people("bot", "ann") as (bot, ann):
        await bot.proposals.propose("resources/list")
        review = await ann.review()
        assert (review.tool, review.target, review.params, review.arguments) == (None, None, {}, {})
        assert (review.description, review.schema, review.annotations) == (None, None, {})


async def test_a_review_knows_whether_it_is_still_open() -> None:
    async with people("bot", "ann", "bob") as (bot, ann, bob):
        proposal = await bot.proposals.propose("tools/call", WRITE, strategy=Strategy.RESILIENT)
        review = await ann.review()
        assert review.open
        await (await bob.review()).reject()
        await ann.until(Kind.MCP_REJECT)
        assert review.open
        await proposal.withdraw()
        await ann.until(Kind.MCP_WITHDRAW)
        assert not review.open


async def test_the_iteration_ends_with_the_connection() -> None:
    async with people("ann", "admin") as (ann, admin):
        proposals = ann.reviews.proposals()
        admin.say(Kind.KICK, {"participant_id": "ann"})
        with pytest.raises(Disconnected):
            await anext(proposals)


# Approving.


async def test_an_approval_sends_exactly_what_was_proposed_3_2_1() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        params = {**WRITE, "_meta": {"odd": [1.0, 10**30, "é\u2028"]}}
        proposal = await bot.proposals.propose("tools/call", params, target="files", context="work")
        review = await ann.review()
        assert await review.approve() == "written"
        assert calls == [params]
        (request,) = [each for each in files.kinds(Kind.MCP_REQUEST) if each.correlation_id]
        assert (request.to, request.correlation_id) == (("files",), (proposal.id,))
        assert request.context == "work"
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert (outcome.by, outcome.edited) == ("ann", False)
        assert not review.open


async def test_what_is_shown_can_be_changed_without_changing_what_runs() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        review.arguments["path"] = "/etc"
        review.params["name"] = "delete"
        await review.approve()
        assert calls == [WRITE]
        edited = {**review.arguments, "path": "/public/b"}
        assert edited != review.arguments
        assert isinstance(await proposal, Fulfilled)


async def test_an_edited_approval_is_marked_as_such_everywhere() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        arguments = {"path": "/public/b", "text": "hi"}
        assert await (await ann.review()).approve(arguments) == "written"
        assert calls == [{"name": "write", "arguments": arguments}]
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert outcome.edited
        assert outcome.differences[0].path == "$.params.arguments.path"
        fulfilment = ann.book[proposal.id].fulfilment
        assert fulfilment is not None
        assert fulfilment.edited


async def test_edited_arguments_are_checked_against_the_schema_before_anything_is_sent() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        await ann.requests.request("files", "tools/list")
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        with pytest.raises(InvalidArguments, match="'text' is a required property"):
            await review.approve({"path": "/public/b"})
        assert review.open
        assert await review.approve({"path": "/public/b", "text": "ho"}) == "written"
        assert len(calls) == 1


async def test_edited_arguments_are_checked_against_ones_own_capabilities_before_anything_is_sent() -> None:
    async with people("bot", "kim", "files") as (bot, kim, files):
        calls = serve(files)
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await kim.review()
        with pytest.raises(Refused, match="'mcp/request:tools/call:write'"):
            await review.approve({"path": "/secret", "text": "hi"})
        assert not kim.kinds(Kind.ERROR)
        assert await review.approve() == "written"
        assert len(calls) == 1


async def test_who_may_only_reject_cannot_approve() -> None:
    async with people("bot", "lee", "files") as (bot, lee, _):
        await bot.proposals.propose("tools/call", WRITE, target="files")
        with pytest.raises(Refused):
            await (await lee.review()).approve()
        assert not lee.kinds(Kind.ERROR)


async def test_only_the_call_of_a_tool_has_arguments_to_change() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files, {"contents": []})
        await bot.proposals.propose("resources/read", {"uri": "a:b"}, target="files")
        review = await ann.review()
        with pytest.raises(ValueError, match="resources/read"):
            await review.approve({"uri": "c:d"})
        assert await review.approve() == {"contents": []}


async def test_what_is_no_longer_open_is_not_approved() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        calls = serve(files)
        withdrawn = await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        await withdrawn.withdraw()
        await ann.until(Kind.MCP_WITHDRAW)
        with pytest.raises(AlreadyDecided, match="was withdrawn by bot"):
            await review.approve()
        with pytest.raises(AlreadyDecided):
            await review.reject()
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        await (await bob.review()).approve()
        with pytest.raises(AlreadyDecided, match="was approved by bob"):
            await review.approve()
        assert len(calls) == 1
        assert not ann.kinds(Kind.MCP_REJECT)


async def test_one_review_approves_once() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        approving = asyncio.gather(review.approve(), review.approve(), return_exceptions=True)
        await asyncio.sleep(0)
        with pytest.raises(AlreadyDecided, match="is being approved"):
            await review.reject()
        value, error = await approving
        assert value == "written"
        assert isinstance(error, AlreadyDecided)
        assert len(calls) == 1


async def test_an_approval_whose_target_is_absent_leaves_it_open() -> None:
    async with people("bot", "ann") as (bot, ann):
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        with pytest.raises(Absent):
            await review.approve(timeout_s=0.02)
        assert review.open
        assert not ann.kinds(Kind.MCP_REQUEST)


async def test_what_is_decided_while_the_target_is_waited_for_is_not_approved() -> None:
    async with asyncio.timeout(5), Space(WHO) as space, AsyncExitStack() as stack:
        bot, ann = [Person(await stack.enter_async_context(space.connection(who))) for who in ("bot", "ann")]
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        approving = asyncio.ensure_future((await ann.review()).approve())
        await asyncio.sleep(0)
        await proposal.withdraw()
        await ann.until(Kind.MCP_WITHDRAW)
        await stack.enter_async_context(space.connection("files"))
        with pytest.raises(AlreadyDecided):
            await approving
        assert not ann.kinds(Kind.MCP_REQUEST)


async def test_what_went_wrong_is_raised_as_by_a_call() -> None:
    async with people("bot", "ann", "files", "disk") as (bot, ann, files, disk):
        serve(files, error={"code": -32602, "message": "no such path"})
        serve(disk, {"isError": True, "content": [{"type": "text", "text": "disk full"}]})
        await bot.proposals.propose("tools/call", WRITE, target="files")
        with pytest.raises(RpcError, match="no such path"):
            await (await ann.review()).approve()
        await bot.proposals.propose("tools/call", WRITE, target="disk")
        with pytest.raises(ToolError, match="disk full"):
            await (await ann.review()).approve()


async def test_an_approval_without_an_answer_is_unanswered_and_not_open() -> None:
    async with people("bot", "ann", "files") as (bot, ann, _):
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        with pytest.raises(Unanswered):
            await review.approve(timeout_s=0.05)
        assert not review.open


async def test_a_broadcast_proposal_needs_a_target_unless_one_alone_offers_the_tool() -> None:
    async with people("bot", "ann", "files", "disk") as (bot, ann, files, disk):
        calls, others = serve(files), serve(disk)
        proposal = await bot.proposals.propose("tools/call", WRITE)
        review = await ann.review()
        with pytest.raises(ValueError, match=r"target= .* 'write' is offered by nobody known"):
            await review.approve()
        await ann.requests.request("files", "tools/list")
        assert await review.approve() == "written"
        await ann.requests.request("disk", "tools/list")
        await bot.proposals.propose("tools/call", WRITE)
        review = await ann.review()
        assert review.schema is None
        with pytest.raises(ValueError, match="is offered by files, disk"):
            await review.approve()
        assert await review.approve(target="disk") == "written"
        assert (len(calls), len(others)) == (1, 1)
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert not outcome.edited


async def test_what_is_for_one_to_do_is_not_approved_for_another() -> None:
    async with people("bot", "ann", "files", "disk") as (bot, ann, _, disk):
        calls = serve(disk)
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        with pytest.raises(ValueError, match="for files to do, not for 'disk'"):
            await review.approve(target="disk")
        assert review.open
        assert calls == []


async def test_who_may_only_call_itself_cannot_answer_for_the_one_that_was_meant() -> None:
    capabilities: dict[str, list[Any]] = {
        "bot": ["mcp/proposal", "mcp/withdraw"],
        "mal": [{"kind": "mcp/request", "to": "mal"}],
        "ann": ["*"],
        "files": ["chat"],
    }
    bank = Participant("files")

    @bank.tool
    async def balance() -> int:
        return 42

    async with (
        asyncio.timeout(5),
        Space(capabilities) as space,
        space.connect("bot") as bot,
        space.connect("mal") as mal,
        space.connect("ann") as ann,
        space.serving(bank, "files"),
    ):
        proposal = await bot.propose_call("files", "balance")
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "balance", "arguments": {}},
        }
        forged = await mal.send(Kind.MCP_REQUEST, call, to="mal", correlation_id=proposal.id)
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"result": 666}, "content": []}}
        await mal.send(Kind.MCP_RESPONSE, answer, to="mal", correlation_id=forged.id)
        await (await anext(ann.proposals())).approve()
        assert await proposal.value() == 42


async def test_a_proposal_to_several_is_approved_for_all_of_them() -> None:
    async with people("bot", "ann", "files", "disk") as (bot, ann, files, disk):
        serve(files)
        proposed = bot.say(Kind.MCP_PROPOSAL, {"method": "tools/call", "params": WRITE}, to=["files", "disk"])
        assert await (await ann.review()).approve() == "written"
        request = await disk.until(Kind.MCP_REQUEST)
        assert request.to == ("files", "disk")
        fulfilment = ann.book[proposed.id].fulfilment
        assert fulfilment is not None
        assert not fulfilment.edited


async def test_an_id_that_is_used_again_is_another_proposal() -> None:
    """TypeScript clients count from the start again: what was looked at is not what would run."""
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        await proposal.withdraw()
        await ann.until(Kind.MCP_WITHDRAW)
        payload = {"method": "tools/call", "params": {"name": "delete"}}
        again = bot.connection.compose(Kind.MCP_PROPOSAL, payload, to=["files"], id=proposal.id)
        ann.book.apply(again, again.ts)  # type: ignore[arg-type]  # it has a time
        assert ann.book[proposal.id].is_open(datetime.now(UTC))
        assert not review.open
        assert review.params == WRITE
        with pytest.raises(AlreadyDecided):
            await review.approve()
        assert not calls


# Rejecting.


async def test_a_rejection_names_its_proposal_and_says_why_3_3_2() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        await (await ann.review()).reject("unsafe")
        no = await bot.until(Kind.MCP_REJECT)
        assert (no.to, no.correlation_id) == (("bot",), (proposal.id,))
        assert no.content == {"reason": "unsafe", "via": "sdk"}
        assert isinstance(await proposal, Rejected)
        assert not ann.kinds(Kind.CHAT)


async def test_a_rejection_carries_its_words_to_the_proposer() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        await (await ann.review()).reject(message="not on a Friday")
        outcome = await proposal
        assert isinstance(outcome, Rejected)
        assert (outcome.by, outcome.reason, outcome.message) == ("ann", "disagree", "not on a Friday")
        assert (await bot.until(Kind.MCP_REJECT)).content == {
            "reason": "disagree",
            "via": "sdk",
            "message": "not on a Friday",
        }
        assert not bot.kinds(Kind.CHAT)


async def test_what_expired_is_neither_offered_nor_approved() -> None:
    async with people("bot", "ann", "files") as (bot, ann, _):
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files", expires_in=60)
        review = await ann.review()
        assert review.expires_at is not None
        past = replace(ann.book[proposal.id], expires_at=datetime.now(UTC))
        ann.book.adopt(past)
        assert not review.open
        assert len(ann.reviews.proposals()) == 0
        with pytest.raises(AlreadyDecided, match="has expired"):
            await review.approve()


async def test_an_approval_says_on_which_surface_it_was_made() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files", why="The tests need it.")
        review = await ann.review()
        assert review.why == "The tests need it."
        await review.approve({"path": "/b", "text": "hi"})
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert (outcome.by, outcome.via) == ("ann", "sdk")
        assert outcome.arguments == {"path": "/b", "text": "hi"}
        assert outcome.digest == bot.book[proposal.id].fulfilments[0].digest is not None


async def test_what_one_has_rejected_is_not_shown_again() -> None:
    async with people("bot", "ann", "bob") as (bot, ann, bob):
        await bot.proposals.propose("tools/call", WRITE, strategy=Strategy.RESILIENT)
        await (await ann.review()).reject()
        assert len(ann.reviews.proposals()) == 0
        await bob.until(Kind.MCP_REJECT)
        assert len(bob.reviews.proposals()) == 1


async def test_who_may_not_reject_is_told() -> None:
    async with people("bot", "kim", "files") as (bot, kim, _):
        await bot.proposals.propose("tools/call", WRITE, target="files")
        with pytest.raises(Refused):
            await (await kim.review()).reject()


async def test_a_review_can_be_had_by_its_id() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        await ann.until(Kind.MCP_PROPOSAL)
        assert ann.reviews.review(proposal.id).open
        with pytest.raises(KeyError):
            ann.reviews.review("nothing")
        await proposal.withdraw()
        assert await proposal == Withdrawn(reason="no_longer_needed")


async def test_what_was_proposed_before_one_came_can_be_decided() -> None:
    async with (
        asyncio.timeout(5),
        Space({"bot": ["mcp/*"], "ann": ["*"]}) as space,
        space.connect("bot") as bot,
    ):
        first = await bot.propose_call("bot", "write", {"text": "a"})
        second = await bot.propose_call("bot", "write", {"text": "b"})
        await second.withdraw()
        async with space.connect("ann", recall=100) as ann:
            assert [record.id for record in ann.book.open(datetime.now(UTC))] == [first.id]
            review = await anext(ann.proposals())
            assert (review.id, review.arguments) == (first.id, {"text": "a"})
            await review.reject("unsafe")
            assert isinstance(await first, Rejected)


async def test_a_reviewer_asks_for_the_tool_where_nobody_did() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        await bot.proposals.propose("tools/call", WRITE, target="files")
        review = await ann.review()
        assert review.schema == TOOL["inputSchema"]


async def test_two_reviews_of_the_same_proposal_approve_it_once() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        calls = serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        await ann.review()
        one, other = ann.reviews.review(proposal.id), ann.reviews.review(proposal.id)
        outcomes = await asyncio.gather(one.approve(), other.approve(), return_exceptions=True)
        assert outcomes[0] == "written"
        assert isinstance(outcomes[1], AlreadyDecided)
        assert len(calls) == 1
