"""Questions that others ask (`elicitation/create`), over a real space."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.client.ear import Ear, settled

from mew.client.client import Client
from mew.client.errors import AlreadyDecided, RpcError, Unanswered
from mew.client.mcp.call import Call
from mew.client.mcp.questions import Question
from mew.client.mcp.validation import InvalidArguments
from mew.client.participant.participant import Participant
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {"ann": ["*"], "bob": ["*"], "files": ["*"], "bot": ["*"]}
ASK = "elicitation/create"
SCHEMA = {
    "type": "object",
    "properties": {
        "branch": {"type": "string", "enum": ["main", "dev"], "description": "Where to"},
        "force": {"type": "boolean"},
    },
    "required": ["branch"],
}
FORM = {"message": "Which branch?", "requestedSchema": SCHEMA}
PAGE = {"mode": "url", "message": "Log in", "url": "https://git.example/login?x=1", "elicitationId": "e1"}


@asynccontextmanager
async def people(*names: str) -> AsyncIterator[tuple[Any, ...]]:
    async with asyncio.timeout(5), Space(WHO) as space, AsyncExitStack() as stack:
        yield space, *[await stack.enter_async_context(space.connect(name)) for name in names]


def ask(
    asker: Client, *whom: str, params: dict[str, Any] = FORM, **options: Any
) -> "asyncio.Future[dict[str, Any]]":
    """As a bridge does, of one or several."""
    return asyncio.ensure_future(asker._requests.request(whom, ASK, params, **options))


async def test_a_question_says_who_asks_what_and_for_which_request() -> None:
    async with people("files", "ann") as (_, files, ann):
        questions = ann.questions()
        asking = ask(files, "ann", correlation_id=["r1"], context="work")
        question = await anext(questions)
        assert (question.asker, question.about, question.context) == ("files", ("r1",), "work")
        assert (question.message, question.mode, question.schema) == ("Which branch?", "form", SCHEMA)
        assert question.params == FORM
        assert question.url is None
        assert question.open
        assert question.preview().splitlines() == [
            "files asks: Which branch?",
            '  branch (required): Where to; {type: "string", enum: ["main", "dev"]}',
            '  force: {type: "boolean"}',
        ]
        await question.answer(branch="main", force=True)
        assert await asking == {"action": "accept", "content": {"branch": "main", "force": True}}
        assert not question.open


async def test_an_answer_that_the_schema_does_not_allow_is_not_sent() -> None:
    async with people("files", "ann") as (_, files, ann):
        questions = ann.questions()
        asking = ask(files, "ann")
        question = await anext(questions)
        with pytest.raises(InvalidArguments, match="branch: 'x' is not one of"):
            await question.answer({"branch": "x"})
        with pytest.raises(InvalidArguments, match="'branch' is a required property"):
            await question.answer()
        assert question.open
        await question.answer({"branch": "dev"})
        assert (await asking)["content"] == {"branch": "dev"}


async def test_a_schema_that_is_none_is_the_questions() -> None:
    async with people("files", "ann") as (_, files, ann):
        questions = ann.questions()
        asking = ask(files, "ann", params={"message": "?", "requestedSchema": {"type": 7}})
        question = await anext(questions)
        with pytest.raises(InvalidArguments, match="the question's schema is no JSON Schema"):
            await question.answer(a=1)
        await question.decline()
        assert await asking == {"action": "decline"}


async def test_a_question_is_declined_or_left_without_a_decision() -> None:
    async with people("files", "ann") as (_, files, ann):
        questions = ann.questions()
        first, second = ask(files, "ann"), ask(files, "ann")
        await (await anext(questions)).decline()
        await (await anext(questions)).cancel()
        assert await first == {"action": "decline"}
        assert await second == {"action": "cancel"}


async def test_a_page_to_go_to_has_no_fields_and_shows_where_it_leads() -> None:
    async with people("files", "ann") as (_, files, ann):
        questions = ann.questions()
        asking = ask(files, "ann", params=PAGE)
        question = await anext(questions)
        assert (question.mode, question.url, question.schema) == ("url", PAGE["url"], None)
        assert "go to https://git.example/login?x=1 (on git.example)" in question.preview()
        with pytest.raises(ValueError, match="has no fields"):
            await question.answer(password="secret")
        await question.answer()
        assert await asking == {"action": "accept"}


async def test_of_several_the_first_answer_counts() -> None:
    async with people("files", "ann", "bob") as (_, files, ann, bob):
        anns, bobs = ann.questions(), bob.questions()
        asking = ask(files, "ann", "bob")
        mine, theirs = await anext(anns), await anext(bobs)
        await theirs.answer(branch="main")
        await asking
        await settled(ann.connection)
        assert not mine.open
        with pytest.raises(AlreadyDecided, match="was answered by bob"):
            await mine.answer(branch="dev")


async def test_who_cannot_answer_leaves_it_to_the_others() -> None:
    async with people("files", "ann") as (space, files, ann), space.serving(Participant("plain"), "bot"):
        questions = ann.questions()
        ear = Ear(ann.connection)
        asking = ask(files, "ann", "bot")
        question = await anext(questions)
        await ear.hears(Kind.MCP_RESPONSE)
        assert question.open
        await question.answer(branch="main")
        assert (await asking)["action"] == "accept"
        with pytest.raises(RpcError, match="unknown method"):
            await files.request("bot", ASK, FORM)


async def test_a_question_that_is_taken_back_is_closed() -> None:
    async with people("files", "ann") as (_, files, ann):
        questions = ann.questions()
        asking = ask(files, "ann")
        question = await anext(questions)
        asking.cancel()
        await Ear(ann.connection).hears(Kind.MCP_REQUEST)
        with pytest.raises(AlreadyDecided, match="was taken back by files"):
            await question.answer(branch="main")


async def test_nobody_takes_back_or_answers_anothers_question() -> None:
    async with people("files", "ann", "bob") as (_, files, ann, bob):
        questions = ann.questions()
        asking = ask(files, "ann")
        question = await anext(questions)
        await bob.notify(None, "notifications/cancelled", {"requestId": question.id})
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}
        await bob.send(Kind.MCP_RESPONSE, answer, to="files", correlation_id=question.id)
        await settled(ann.connection)
        assert question.open
        await question.decline()
        assert await asking == {"action": "decline"}


async def test_an_answer_that_waits_for_the_end_of_a_pause_is_not_sent_after_it_was_taken_back() -> None:
    async with people("files", "ann", "bob") as (_, files, ann, bob):
        questions = ann.questions()
        asking = ask(files, "ann")
        question = await anext(questions)
        await bob.control.pause("ann", timeout_s=60)
        answering = asyncio.ensure_future(question.answer(branch="main"))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(AlreadyDecided, match="was taken back by files"):
            await answering
        await bob.control.resume("ann")
        ear = Ear(bob.connection)
        await settled(ann.connection)
        assert not ear.all(Kind.MCP_RESPONSE)


async def test_without_anybody_who_takes_questions_nothing_is_answered() -> None:
    async with people("files", "ann") as (_, files, ann):
        with pytest.raises(Unanswered):
            await ask(files, "ann", timeout_s=0.05)
        assert not ann.takes_questions


async def test_what_was_asked_before_is_there_for_who_comes_later() -> None:
    async with people("files", "ann") as (space, files, ann):
        asking = ask(files, "ann")
        await Ear(ann.connection).hears(Kind.MCP_REQUEST)
        question = await anext(ann.questions())
        async with space.connect("ann", recall=10) as again:
            same = await anext(again.questions())
            assert same.id == question.id
            await same.answer(branch="main")
        await asking
        await settled(ann.connection)
        assert not question.open
        async with space.connect("ann", recall=10) as later:
            assert len(later.questions()) == 0


async def test_no_more_than_256_questions_are_kept() -> None:
    async with people("files", "bob", "ann") as (_, files, bob, ann):
        for number in range(257):
            payload = {"jsonrpc": "2.0", "id": number, "method": ASK, "params": FORM}
            await files.send(Kind.MCP_REQUEST, payload, to="ann")
        await bob.send(Kind.MCP_REQUEST, {"jsonrpc": "2.0", "id": 1, "method": ASK}, to="ann")
        await settled(ann.connection)
        questions = ann.questions()
        assert len(questions) == 256
        assert [(await anext(questions)).asker for _ in range(256)].count("bob") == 1


# A participant.


async def test_a_participant_is_asked_by_on_question() -> None:
    clerk = Participant("clerk")
    asked: list[Question] = []

    @clerk.on_question
    async def fill_in(question: Question) -> None:
        asked.append(question)
        await question.answer(branch="dev")

    async with people("files") as (space, files), space.serving(clerk, "bot"):
        assert await ask(files, "bot") == {"action": "accept", "content": {"branch": "dev"}}
        assert [question.asker for question in asked] == ["files"]


async def test_a_participant_whose_author_iterates_over_questions_answers_none_itself() -> None:
    clerk = Participant("clerk")
    async with people("files") as (space, files), space.serving(clerk, "bot") as bot:
        questions = bot.questions()
        asking = ask(files, "bot")
        await (await anext(questions)).decline()
        assert await asking == {"action": "decline"}


async def test_a_participant_answers_further_methods() -> None:
    model = Participant("model")

    @model.answers("sampling/createMessage")
    async def sample(params: dict[str, Any], call: Call) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": {"type": "text", "text": f"{call.sender}: {params['prompt']}"},
        }

    @model.answers(ASK)
    def refuse(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    @model.answers("x/wrong")
    def wrong(params: dict[str, Any]) -> str:
        return "no object"

    @model.answers("x/no")
    def no(params: dict[str, Any]) -> dict[str, Any]:
        raise RpcError(-32000, "not today")

    @model.on_question
    async def never(question: Question) -> None:
        raise AssertionError("a function answers these")

    async with people("files") as (space, files), space.serving(model, "bot"):
        sampled = await files.ask("bot", "sampling/createMessage", {"prompt": "hi"})
        assert sampled["content"]["text"] == "files: hi"
        assert await ask(files, "bot") == {"action": "decline"}
        with pytest.raises(RpcError, match="'x/wrong' could not be answered"):
            await files.request("bot", "x/wrong")
        with pytest.raises(RpcError, match="not today"):
            await files.request("bot", "x/no")


def test_a_method_is_answered_by_one_function() -> None:
    model = Participant("model")
    with pytest.raises(ValueError, match="tools/call is answered already"):
        model.answers("tools/call")(lambda params: {})
    with pytest.raises(TypeError, match="takes the params, and the call if wanted, not 0"):
        model.answers("x/y")(lambda: {})
