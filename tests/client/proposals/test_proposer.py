"""The proposer's side (§3.2, §3.3, design §5), over a real space."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import awaiting
from mew.client.errors import (
    Absent,
    AlreadyDecided,
    Disconnected,
    NotFulfilled,
    Refused,
    RpcError,
    ToolError,
    Unanswered,
)
from mew.client.mcp.requests import Requests
from mew.client.mcp.results import value_of
from mew.client.proposals.outcomes import Fulfilled, Rejected, Strategy, TimedOut, Withdrawn, is_rejected
from mew.client.proposals.proposer import Proposer
from mew.client.proposals.tracker import keep_current
from mew.proposals.book import ProposalBook
from mew.proposals.record import ProposalStatus
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest
from mew.testing import Space

REVIEWER = ["mcp/*", "chat"]
WHO: dict[str, list[Any]] = {
    "bot": ["chat", "mcp/proposal", "mcp/withdraw"],
    "ann": REVIEWER,
    "bob": REVIEWER,
    "files": ["mcp/response", "mcp/reject"],
    "admin": ["*"],
    "timid": ["mcp/proposal"],
}
WRITE = {"name": "write", "arguments": {"path": "/a", "text": "hi"}}
DONE = {"content": [{"type": "text", "text": "written"}]}

Seen = list[Envelope]


class Person:
    """Somebody in the space, with what it has seen."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.seen: Seen = []
        self.book = ProposalBook()
        keep_current(connection, self.book)
        self.requests = Requests(connection)
        self.proposals = Proposer(connection, self.requests, self.book)
        connection.listen(lambda envelope, _: self.seen.append(envelope))

    async def call(
        self, target: str, tool: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        params = {"name": tool, "arguments": arguments or {}}
        return value_of(await self.proposals.ask(target, "tools/call", params, **options))

    def say(
        self, kind: str, payload: Any, about: Sequence[str] = (), to: Sequence[str] = ()
    ) -> "asyncio.Future[Envelope]":
        envelope = self.connection.compose(kind, payload, to=to, correlation_id=about)
        return self.connection.post(envelope)

    def reject(self, proposal_id: str, reason: str = "unsafe") -> "asyncio.Future[Envelope]":
        return self.say(Kind.MCP_REJECT, {"reason": reason}, [proposal_id], ["bot"])

    def approve(
        self, proposal_id: str, params: dict[str, Any] = WRITE, to: str = "files"
    ) -> "asyncio.Future[Envelope]":
        payload = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        return self.say(Kind.MCP_REQUEST, payload, [proposal_id], [to])

    def on(self, kind: str, react: Callable[[Envelope], object]) -> None:
        """React to each envelope of a kind that another sends."""

        def listen(envelope: Envelope, payload: Any) -> None:
            if envelope.kind == kind and envelope.sender != self.connection.session.me:
                react(envelope)

        self.connection.listen(listen)

    def kinds(self, kind: str) -> Seen:
        return [envelope for envelope in self.seen if envelope.kind == kind]

    async def until(self, kind: str, count: int = 1) -> Envelope:
        """The first, or that many-th, envelope of a kind, be it there or still to come."""
        with awaiting(self.connection, lambda *_: True if len(self.kinds(kind)) >= count else None) as seen:
            if len(self.kinds(kind)) < count:
                await seen
        return self.kinds(kind)[count - 1]

    async def until_joined(self, who: str) -> None:
        """`who` has joined, be it before or still to come."""

        def has_joined(*_: object) -> bool | None:
            shown = [envelope.content for envelope in self.kinds(Kind.PRESENCE)]
            return any(one["participant"]["id"] == who for one in shown) or None

        with awaiting(self.connection, has_joined) as seen:
            if not has_joined():
                await seen


@asynccontextmanager
async def people(*names: str) -> AsyncIterator[list[Person]]:
    async with asyncio.timeout(5), Space(WHO) as space, _entered(space, names) as connections:
        yield [Person(connection) for connection in connections]


@asynccontextmanager
async def _entered(space: Space, names: Sequence[str]) -> AsyncIterator[list[ClientConnection]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(space.connection(name)) for name in names]


def serve(files: Person, result: Any = DONE, error: Any = None) -> None:
    """Answer every request as a tool server does."""

    def answer(request: Envelope) -> None:
        if files.connection.session.me in request.to and request.read(McpRequest).id is not UNSET:
            said = {"result": result} if error is None else {"error": error}
            payload = {"jsonrpc": "2.0", "id": request.content["id"], **said}
            files.say(Kind.MCP_RESPONSE, payload, [request.id], [request.sender])

    files.on(Kind.MCP_REQUEST, answer)


# Outcomes.


async def test_an_approved_proposal_is_fulfilled_with_the_result_3_2_1() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files", context="work")
        outcome = await proposal
        request = ann.kinds(Kind.MCP_REQUEST)[0]
        assert outcome == Fulfilled(
            by="ann",
            request_id=request.id,
            response_by="files",
            result=DONE,
            arguments={"path": "/a", "text": "hi"},
            digest=proposal.digest,
        )
        assert str(outcome) == "approved by ann, answered by files"
        assert await proposal.value() == "written"
        assert (proposal.rejections, proposal.explanations) == ((), ())


async def test_a_proposal_looks_as_in_3_2() -> None:
    async with people("bot", "ann") as (bot, ann):
        first = await bot.proposals.propose("tools/call", WRITE, target="files")
        second = await bot.proposals.propose("tools/list", context="work", correlation_id=["e1"])
        await ann.until(Kind.MCP_PROPOSAL, 2)
        targeted, broadcast = ann.kinds(Kind.MCP_PROPOSAL)
        assert targeted.id == first.id
        assert (targeted.to, targeted.correlation_id) == (("files",), ())
        assert targeted.content == {"method": "tools/call", "params": WRITE}
        assert broadcast.id == second.id
        assert (broadcast.to, broadcast.context, broadcast.correlation_id) == ((), "work", ("e1",))
        assert broadcast.content == {"method": "tools/list"}


async def test_why_and_until_when_are_in_the_envelope() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE, why="The tests need it.", expires_in=60)
        seen = await ann.until(Kind.MCP_PROPOSAL)
        assert seen.content["why"] == "The tests need it."
        record = ann.book[proposal.id]
        assert record.expires_at == datetime.fromisoformat(seen.content["expires_at"])
        assert (record.why, proposal.record.why) == ("The tests need it.", "The tests need it.")


@pytest.mark.parametrize("expires_in", [0, -1, float("inf"), float("nan")])
async def test_an_expiry_that_is_none_is_refused(expires_in: float) -> None:
    async with people("bot") as (bot,):
        with pytest.raises(ValueError, match="positive number of seconds"):
            await bot.proposals.propose("tools/call", WRITE, expires_in=expires_in)


async def test_the_proposals_of_a_connection_share_its_book() -> None:
    async with people("bot") as (bot,):
        proposals = [await bot.proposals.propose("tools/call", WRITE) for _ in range(3)]
        assert [proposal.record for proposal in proposals] == list(bot.book)


async def test_the_digest_is_the_one_a_reviewer_sees() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        await ann.until(Kind.MCP_PROPOSAL)
        assert proposal.digest == ann.book[proposal.id].digest


async def test_an_edited_approval_says_what_was_changed() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        other = {"name": "write", "arguments": {"path": "/b", "text": "hi"}}
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id, other))
        outcome = await (await bot.proposals.propose("tools/call", WRITE, target="files"))
        assert isinstance(outcome, Fulfilled)
        assert outcome.edited
        assert [(d.path, d.old, d.new) for d in outcome.differences] == [
            ("$.params.arguments.path", "/a", "/b")
        ]
        assert str(outcome) == "approved by ann with changes ($.params.arguments.path), answered by files"


async def test_an_error_is_an_outcome_and_value_raises_it() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files, error={"code": -32602, "message": "no such path", "data": 1})
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert outcome.error is not None
        assert str(outcome) == "approved by ann, failed: no such path"
        with pytest.raises(RpcError, match="no such path") as caught:
            await proposal.value()
        assert caught.value.data == 1


async def test_a_tool_that_failed_is_raised_by_value() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files, {"isError": True, "content": [{"type": "text", "text": "disk full"}]})
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        with pytest.raises(ToolError, match="disk full"):
            await (await bot.proposals.propose("tools/call", WRITE, target="files")).value()


async def test_a_long_result_comes_in_full() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files, {"content": [{"type": "text", "text": "x" * 500_000}]})
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        value = await (await bot.proposals.propose("tools/call", WRITE, target="files")).value()
        assert value == "x" * 500_000


async def test_the_result_of_another_method_is_given_as_it_is() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files, {"contents": []})

        def approve(envelope: Envelope) -> None:
            payload = {"jsonrpc": "2.0", "id": 1, **envelope.content}
            ann.say(Kind.MCP_REQUEST, payload, [envelope.id], ["files"])

        ann.on(Kind.MCP_PROPOSAL, approve)
        proposal = await bot.proposals.propose("resources/read", {"uri": "a:b"}, target="files")
        assert await proposal.value() == {"contents": []}


async def test_a_response_from_another_is_not_taken_for_the_answer() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        request = await files.until(Kind.MCP_REQUEST)
        await bob.say(Kind.MCP_RESPONSE, {"id": 7, "result": {"content": []}}, [request.id], ["ann"])
        await files.say(Kind.MCP_RESPONSE, {"id": 7, "result": DONE}, [request.id], ["ann"])
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert (outcome.response_by, outcome.result) == ("files", DONE)


async def test_what_nobody_takes_up_times_out_and_is_withdrawn() -> None:
    """§3.3.1; timed out is not rejected."""
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files", timeout_s=0.3)
        outcome = await proposal
        assert outcome == TimedOut()
        assert str(outcome) == "nobody took it up in time"
        withdrawn = await ann.until(Kind.MCP_WITHDRAW)
        assert withdrawn.correlation_id == (proposal.id,)
        assert withdrawn.content == {"reason": "timeout"}
        with pytest.raises(NotFulfilled, match="nobody took it up in time"):
            await proposal.value()


async def test_a_proposal_times_out_though_nobody_waits_for_it() -> None:
    async with people("bot", "ann") as (bot, ann):
        await bot.proposals.propose("tools/call", WRITE, timeout_s=0.2)
        await ann.until(Kind.MCP_WITHDRAW)


async def test_what_was_approved_and_not_answered_says_so_and_is_not_withdrawn() -> None:
    async with people("bot", "ann", "files") as (bot, ann, _):
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files", timeout_s=0.1)
        outcome = await proposal
        assert outcome == TimedOut(approved_by="ann")
        assert str(outcome).startswith("approved by ann, but no answer came in time")
        await bot.say(Kind.CHAT, {"text": "over"})
        await ann.until(Kind.CHAT)
        assert not ann.kinds(Kind.MCP_WITHDRAW)


async def test_a_withdrawn_proposal_says_why_3_3_1() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        await proposal.withdraw()
        outcome = await proposal
        assert outcome == Withdrawn(reason="no_longer_needed")
        assert str(outcome) == "withdrawn: no_longer_needed"
        withdrawn = await ann.until(Kind.MCP_WITHDRAW)
        assert (withdrawn.to, withdrawn.correlation_id) == ((), (proposal.id,))
        with pytest.raises(AlreadyDecided, match="has come to its end"):
            await proposal.withdraw()


async def test_a_withdrawal_over_another_connection_counts_too() -> None:
    async with people("bot", "bot") as (bot, again):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        again.say(Kind.MCP_WITHDRAW, {"reason": "other"}, [proposal.id])
        assert await proposal == Withdrawn(reason="other")


async def test_what_was_approved_cannot_be_withdrawn() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        ann.approve(proposal.id)
        request = await bot.until(Kind.MCP_REQUEST)
        with pytest.raises(AlreadyDecided, match="was approved by ann"):
            await proposal.withdraw()
        files.say(Kind.MCP_RESPONSE, {"id": 7, "result": DONE}, [request.id], ["ann"])
        assert isinstance(await proposal, Fulfilled)


async def test_an_approval_that_came_before_the_withdrawal_counts() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        await ann.until(Kind.MCP_PROPOSAL)
        approved = ann.approve(proposal.id)
        await asyncio.sleep(0)  # the approval is written first, and neither has heard of the other
        with pytest.raises(AlreadyDecided):
            await proposal.withdraw()
        await approved
        assert await proposal.value() == "written"


async def test_who_may_not_withdraw_is_told_and_still_times_out() -> None:
    async with people("timid", "ann") as (timid, ann):
        proposal = await timid.proposals.propose("tools/call", WRITE, timeout_s=0.5)
        with pytest.raises(Refused):
            await proposal.withdraw()
        assert await proposal == TimedOut()
        assert not ann.kinds(Kind.MCP_WITHDRAW)
        assert len(timid.kinds(Kind.ERROR)) == 1


async def test_cancelling_who_waits_does_not_withdraw_but_cancelling_value_does() -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(proposal, 0.01)
        await bot.say(Kind.CHAT, {"text": "still open"})
        await ann.until(Kind.CHAT)
        assert not ann.kinds(Kind.MCP_WITHDRAW)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(proposal.value(), 0.01)
        withdrawn = await ann.until(Kind.MCP_WITHDRAW)
        assert withdrawn.content == {"reason": "no_longer_needed"}
        assert await proposal == Withdrawn(reason="no_longer_needed")


async def test_what_the_gateway_refuses_is_not_proposed() -> None:
    async with people("files") as (files,):
        with pytest.raises(Refused):
            await files.proposals.propose("tools/call", WRITE)


async def test_a_proposal_that_is_not_accepted_in_time_is_given_up() -> None:
    async with people("bot", "admin") as (bot, admin):
        await admin.say(Kind.PAUSE, {"timeout_seconds": 60}, to=["bot"])
        await bot.until(Kind.PAUSE)
        with pytest.raises(Unanswered, match="did not accept"):
            await bot.proposals.propose("tools/call", WRITE, timeout_s=0.02)


async def test_who_waits_is_told_when_the_connection_ends_for_good() -> None:
    async with people("bot", "admin") as (bot, admin):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        admin.say(Kind.KICK, {"participant_id": "bot"})
        with pytest.raises(Disconnected):
            await proposal


async def test_who_waits_is_told_when_the_connection_is_left() -> None:
    async with asyncio.timeout(5), Space(WHO) as space:
        async with space.connection("bot") as connection:
            proposal = await Person(connection).proposals.propose("tools/call", WRITE)
        with pytest.raises(Disconnected):
            await proposal


async def test_a_proposal_lives_on_over_a_lost_connection() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        _entered(space, ["bot", "ann", "files"]) as connections,
    ):
        bot, ann, files = map(Person, connections)
        serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        space.cut("bot")
        ann.approve(proposal.id)
        assert await proposal.value() == "written"


# Strategies.


async def test_first_reject_ends_on_the_first_rejection_and_withdraws_3_3_2() -> None:
    async with people("bot", "ann", "bob") as (bot, ann, bob):
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        no = await ann.reject(proposal.id)
        outcome = await proposal
        assert isinstance(outcome, Rejected)
        assert (outcome.by, outcome.reason, outcome.rejections) == ("ann", "unsafe", proposal.rejections)
        assert str(outcome) == "rejected by ann: unsafe"
        assert [rejection.id for rejection in proposal.rejections] == [no.id]
        assert (await bob.until(Kind.MCP_WITHDRAW)).correlation_id == (proposal.id,)
        with pytest.raises(NotFulfilled, match="rejected by ann: unsafe") as caught:
            await proposal.value()
        assert caught.value.outcome is outcome


@pytest.mark.parametrize("payload", [{}, {"reason": "because \x1b[31m"}])
async def test_any_reason_or_none_is_understood_3_3_3(payload: dict[str, str]) -> None:
    async with people("bot", "ann") as (bot, ann):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        ann.say(Kind.MCP_REJECT, payload, [proposal.id], ["bot"])
        outcome = await proposal
        assert isinstance(outcome, Rejected)
        assert outcome.reason == payload.get("reason")
        assert "\x1b" not in str(outcome)


async def test_explanations_follow_and_are_not_waited_for_3_3_3() -> None:
    async with people("bot", "ann", "bob") as (bot, ann, bob):
        proposal = await bot.proposals.propose("tools/call", WRITE)
        no = await ann.reject(proposal.id)
        assert isinstance(await proposal, Rejected)
        assert not any(said.explanations for said in proposal.rejections)
        await bob.say(Kind.CHAT, {"text": "not mine to explain"}, [no.id])
        await ann.say(Kind.CHAT, {"text": "that disk is full"}, [no.id], ["bot"])
        await bot.until(Kind.CHAT, 2)
        assert [said.text for said in proposal.explanations] == ["that disk is full"]
        assert proposal.rejections[0].explanations == proposal.explanations


async def test_an_approval_that_came_before_the_rejection_was_answered_counts() -> None:
    """Rejected by one, approved by another before the proposer's withdrawal: it ran, and that is the outcome."""
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        serve(files)
        proposal = await bot.proposals.propose("tools/call", WRITE, target="files")
        await bob.until(Kind.MCP_PROPOSAL)
        ann.reject(proposal.id)
        bob.approve(proposal.id)
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert [rejection.by for rejection in proposal.rejections] == ["ann"]


async def test_resilient_waits_for_others_3_3_2() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        serve(files)
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.RESILIENT
        )
        await ann.reject(proposal.id, "busy")
        await bob.until(Kind.MCP_REJECT)
        bob.approve(proposal.id)
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert outcome.by == "bob"
        assert not bob.kinds(Kind.MCP_WITHDRAW)


async def test_resilient_is_rejected_when_everybody_who_could_fulfil_it_rejected_it() -> None:
    """`files` may reject, but not request: its word is not waited for."""
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.RESILIENT
        )
        await files.reject(proposal.id, "busy")
        await ann.reject(proposal.id, "unsafe")
        await bob.reject(proposal.id, "policy")
        outcome = await proposal
        assert isinstance(outcome, Rejected)
        assert outcome.by == "bob"
        assert str(outcome) == "rejected by files: busy; by ann: unsafe; by bob: policy"


async def test_resilient_is_rejected_when_the_last_who_could_have_fulfilled_it_leaves() -> None:
    async with asyncio.timeout(5), Space(WHO) as space, _entered(space, ["bot", "ann"]) as connections:
        bot, ann = map(Person, connections)
        async with space.connection("bob"):
            await bot.until_joined("bob")
            proposal = await bot.proposals.propose("tools/call", WRITE, strategy=Strategy.RESILIENT)
            await ann.reject(proposal.id)
        assert isinstance(await proposal, Rejected)


async def test_resilient_times_out_where_only_those_rejected_it_who_could_not_fulfil_it() -> None:
    async with people("bot", "files") as (bot, files):
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.RESILIENT, timeout_s=0.5
        )
        await files.reject(proposal.id, "busy")
        outcome = await proposal
        assert isinstance(outcome, TimedOut)
        assert str(outcome) == "nobody took it up in time (rejected by files: busy)"
        withdrawn = await files.until(Kind.MCP_WITHDRAW)
        assert withdrawn.content == {"reason": "timeout"}


async def test_exclusive_counts_only_rejections_by_those_named() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.EXCLUSIVE, reviewers=["ann", "files"]
        )
        seen = await ann.until(Kind.MCP_PROPOSAL)
        assert seen.to == ("files",)
        assert seen.content["targeting"] == {"preferred": ["ann", "files"], "exclusive": True}
        await bob.reject(proposal.id, "bob's")
        await files.reject(proposal.id, "files'")
        await bob.reject(proposal.id, "bob's again")
        await bot.until(Kind.MCP_REJECT, 3)
        assert not bot.kinds(Kind.MCP_WITHDRAW)
        await ann.reject(proposal.id, "ann's")
        outcome = await proposal
        assert isinstance(outcome, Rejected)
        assert (outcome.by, outcome.reason, len(outcome.rejections)) == ("ann", "ann's", 4)


async def test_preferred_asks_everyone_once_all_of_those_named_rejected_it() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        serve(files)
        params = {"name": "write", "arguments": {"path": "/a"}}
        proposal = await bot.proposals.propose(
            "tools/call",
            params,
            target="files",
            strategy=Strategy.PREFERRED,
            reviewers=["ann"],
            context="work",
            correlation_id=["task"],
        )
        params["arguments"] = {"path": "/etc"}  # too late to change it
        first = await ann.until(Kind.MCP_PROPOSAL)
        assert first.content["targeting"] == {"preferred": ["ann"]}
        await ann.reject(proposal.id, "busy")
        second = await bob.until(Kind.MCP_PROPOSAL, 2)
        assert (second.to, second.context) == (("files",), "work")
        assert second.correlation_id == ("task", first.id)
        assert second.content == {
            "method": "tools/call",
            "params": {"name": "write", "arguments": {"path": "/a"}},
        }
        assert proposal.id == second.id
        (withdrawn,) = bob.kinds(Kind.MCP_WITHDRAW)
        assert withdrawn.correlation_id == (first.id,)
        bob.approve(second.id)
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert outcome.by == "bob"
        assert [rejection.by for rejection in proposal.rejections] == ["ann"]


async def test_preferred_asks_everyone_after_a_time() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, _, bob, files):
        serve(files)
        proposal = await bot.proposals.propose(
            "tools/call",
            WRITE,
            target="files",
            strategy=Strategy.PREFERRED,
            reviewers=["ann"],
            fallback_s=0.03,
        )
        second = await bob.until(Kind.MCP_PROPOSAL, 2)
        assert bob.kinds(Kind.MCP_WITHDRAW)[0].content == {"reason": "timeout"}
        bob.approve(second.id)
        assert await proposal.value() == "written"


async def test_preferred_is_rejected_when_everyone_else_rejects_it_too() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, _):
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.PREFERRED, reviewers=["ann"]
        )
        await ann.reject(proposal.id)
        second = await bob.until(Kind.MCP_PROPOSAL, 2)
        await bob.reject(second.id, "policy")
        outcome = await proposal
        assert isinstance(outcome, Rejected)
        assert [rejection.by for rejection in outcome.rejections] == ["ann", "bob"]


async def test_preferred_asks_nobody_else_where_nobody_else_could() -> None:
    async with people("bot", "ann", "files") as (bot, ann, _):
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.PREFERRED, reviewers=["ann"]
        )
        await ann.reject(proposal.id)
        assert isinstance(await proposal, Rejected)
        assert len(ann.kinds(Kind.MCP_PROPOSAL)) == 1


async def test_preferred_proposes_nothing_again_when_it_was_fulfilled_before_the_withdrawal() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        serve(files)
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.PREFERRED, reviewers=["ann"]
        )
        await bob.until(Kind.MCP_PROPOSAL)
        ann.reject(proposal.id)
        bob.approve(proposal.id)
        assert await proposal.value() == "written"
        assert len(ann.kinds(Kind.MCP_PROPOSAL)) == 1


async def test_preferred_takes_a_late_approval_of_the_first_and_withdraws_the_second() -> None:
    async with people("bot", "ann", "bob", "files") as (bot, ann, bob, files):
        serve(files)
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.PREFERRED, reviewers=["ann"]
        )
        first = proposal.id
        ann.reject(first)
        second = await bob.until(Kind.MCP_PROPOSAL, 2)
        bob.approve(first)
        assert await proposal.value() == "written"
        withdrawn = await bob.until(Kind.MCP_WITHDRAW, 2)
        assert (withdrawn.correlation_id, withdrawn.content) == ((second.id,), {"reason": "duplicate"})


async def test_preferred_proposes_nothing_again_where_it_may_not_withdraw() -> None:
    async with people("timid", "ann", "bob", "files") as (timid, ann, bob, files):
        serve(files)
        proposal = await timid.proposals.propose(
            "tools/call", WRITE, target="files", strategy=Strategy.PREFERRED, reviewers=["ann"]
        )
        await ann.say(Kind.MCP_REJECT, {"reason": "busy"}, [proposal.id], ["timid"])
        await timid.until(Kind.MCP_REJECT)
        bob.approve(proposal.id)
        assert await proposal.value() == "written"
        assert len(bob.kinds(Kind.MCP_PROPOSAL)) == 1


async def test_preferred_may_be_withdrawn_while_everyone_is_asked() -> None:
    async with people("bot", "ann", "bob") as (bot, ann, bob):
        proposal = await bot.proposals.propose(
            "tools/call", WRITE, strategy=Strategy.PREFERRED, reviewers=["ann"]
        )
        await ann.reject(proposal.id)
        second = await bob.until(Kind.MCP_PROPOSAL, 2)
        await proposal.withdraw("other")
        assert await proposal == Withdrawn(reason="other")
        assert (await bob.until(Kind.MCP_WITHDRAW, 2)).correlation_id == (second.id,)


@pytest.mark.parametrize(
    ("strategy", "reviewers"),
    [
        (Strategy.EXCLUSIVE, []),
        (Strategy.PREFERRED, []),
        (Strategy.RESILIENT, ["ann"]),
        (Strategy.FIRST_REJECT, ["ann"]),
    ],
)
async def test_reviewers_are_for_the_strategies_that_name_some(
    strategy: Strategy, reviewers: list[str]
) -> None:
    async with people("bot") as (bot,):
        with pytest.raises(ValueError, match="reviewers"):
            await bot.proposals.propose("tools/call", WRITE, strategy=strategy, reviewers=reviewers)


def test_a_no_counts_as_the_strategy_has_it() -> None:
    def ends(strategy: Strategy, *rejecters: str, able: Sequence[str] = ()) -> bool:
        return is_rejected(strategy, rejecters, reviewers=["ann", "bob"], able=able)

    assert ends(Strategy.FIRST_REJECT, "eve")
    assert not ends(Strategy.FIRST_REJECT)
    assert not ends(Strategy.EXCLUSIVE, "ann", "eve")
    assert ends(Strategy.PREFERRED, "ann", "bob")
    assert not ends(Strategy.RESILIENT, "ann", able=["ann", "eve"])
    assert ends(Strategy.RESILIENT, "ann", "eve", able=["ann", "eve"])
    assert not ends(Strategy.RESILIENT, "ann", able=[])


# Calls.


async def test_a_call_is_a_request_where_capabilities_allow_it() -> None:
    async with people("ann", "files") as (ann, files):
        serve(files)
        assert await ann.call("files", "write", {"path": "/a"}, context="work") == "written"
        (request,) = files.kinds(Kind.MCP_REQUEST)
        assert request.content["params"] == {"name": "write", "arguments": {"path": "/a"}}
        assert not files.kinds(Kind.MCP_PROPOSAL)


async def test_a_call_is_a_proposal_otherwise_9_1() -> None:
    async with people("bot", "ann", "files") as (bot, ann, files):
        serve(files)
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.approve(envelope.id))
        assert await bot.call("files", "write", WRITE["arguments"]) == "written"  # type: ignore[arg-type]  # a dict
        assert not bot.kinds(Kind.ERROR)


async def test_a_call_that_is_rejected_says_by_whom() -> None:
    async with people("bot", "ann", "files") as (bot, ann, _):
        ann.on(Kind.MCP_PROPOSAL, lambda envelope: ann.reject(envelope.id))
        with pytest.raises(NotFulfilled, match="rejected by ann: unsafe"):
            await bot.call("files", "write")


async def test_a_call_whose_right_was_just_taken_is_proposed_9_2() -> None:
    async with people("bot", "admin", "files") as (bot, admin, files):
        serve(files)
        await admin.say(Kind.GRANT, {"recipient": "bot", "capabilities": ["mcp/request"]}, to=["bot"])
        await bot.until(Kind.WELCOME, 1)
        assert await bot.call("files", "write") == "written"
        admin.on(Kind.MCP_PROPOSAL, lambda envelope: admin.approve(envelope.id))
        admin.say(Kind.REVOKE, {"recipient": "bot", "capabilities": ["mcp/request"]}, to=["bot"])
        await asyncio.sleep(0)  # it is on its way, and bot has not heard of it
        assert await bot.call("files", "write") == "written"
        assert len(admin.kinds(Kind.MCP_PROPOSAL)) == 1


async def test_a_call_that_may_neither_be_made_nor_proposed_says_what_is_lacking() -> None:
    async with people("files", "ann") as (files, _):
        with pytest.raises(
            Refused, match="'mcp/request:tools/call:write' or 'mcp/proposal:tools/call:write'"
        ):
            await files.call("ann", "write")
        assert not files.kinds(Kind.ERROR)


async def test_a_call_to_somebody_absent_is_not_proposed() -> None:
    async with people("bot", "ann") as (bot, ann):
        with pytest.raises(Absent, match="'fils'"):
            await bot.call("fils", "write", timeout_s=0.02)
        assert not ann.kinds(Kind.MCP_PROPOSAL)


async def test_a_cancelled_call_withdraws_its_proposal() -> None:
    async with people("bot", "ann", "files") as (bot, ann, _):
        calling = asyncio.ensure_future(bot.call("files", "write"))
        proposed = await ann.until(Kind.MCP_PROPOSAL)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert (await ann.until(Kind.MCP_WITHDRAW)).correlation_id == (proposed.id,)


async def test_a_tool_that_failed_is_raised_by_a_call() -> None:
    async with people("ann", "files") as (ann, files):
        serve(files, {"isError": True, "content": [{"type": "text", "text": "disk full"}]})
        with pytest.raises(ToolError, match="disk full"):
            await ann.call("files", "write")


async def test_the_book_of_everyone_says_the_same_as_the_outcome() -> None:
    async with people("bot", "ann") as (bot, ann):
        rejected = await bot.proposals.propose("tools/call", WRITE)
        await ann.reject(rejected.id)
        await rejected
        timed_out = await bot.proposals.propose("tools/call", WRITE, timeout_s=0.01)
        await timed_out
        await ann.until(Kind.MCP_WITHDRAW, 2)
        for envelope in ann.seen:
            ann.book.apply(envelope, envelope.ts)  # type: ignore[arg-type]  # all have a time
        assert ann.book[rejected.id].status(datetime.now(UTC)) is ProposalStatus.WITHDRAWN
        assert ann.book[timed_out.id].status(datetime.now(UTC)) is ProposalStatus.WITHDRAWN
