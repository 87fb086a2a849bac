"""Questions that wait for an answer, and those who think aloud."""

import asyncio
from typing import Any

import pytest

from mew.cli.commands.reasoning import active, picked
from mew.cli.commands.review.questions import OpenQuestions, answered
from mew.cli.errors import CommandError
from mew.testing import Space

WHO: dict[str, list[Any]] = {"ann": ["*"], "fs": ["*"], "bot": ["*"]}
ASKED = {
    "message": "Which branch?",
    "requestedSchema": {
        "type": "object",
        "properties": {"branch": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["branch"],
    },
}


async def test_a_question_asked_before_one_came_is_answered_with_what_is_typed() -> None:
    async with Space(WHO) as space, space.connect("fs") as fs, space.connect("ann") as first:
        coming = first.envelopes("mcp/request")
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(fs.request("ann", "elicitation/create", ASKED))
            question = (await anext(coming)).id
            async with space.connect("ann") as later:
                inbox = await OpenQuestions.open(later)
                assert [one.id for one in inbox.waiting] == [question]
                with pytest.raises(CommandError, match="required"):
                    await answered(inbox.find(question[:8]), ["times=1"], None)
                await answered(inbox.find(question[:8]), ["branch=7", "times=2"], None)
        assert asking.result() == {"action": "accept", "content": {"branch": "7", "times": 2}}
        assert (await OpenQuestions.open(first)).waiting == []


async def test_a_question_that_is_not_there_is_said() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann:
        with pytest.raises(CommandError, match="no question 'none' waits for you"):
            (await OpenQuestions.open(ann)).find("none")


# Reasoning.


async def test_who_thinks_aloud_is_known_to_who_comes_later() -> None:
    async with (
        Space(WHO) as space,
        space.connect("bot") as bot,
        bot.reasoning("Looking at it") as one,
        space.connect("ann") as ann,
    ):
        (found,) = await active(ann)
        assert (found.id, found.by, found.message) == (one.id, "bot", "Looking at it")
        assert picked([found], "bot") == picked([found], one.id[:6]) == [found]
        with pytest.raises(CommandError, match="'fs' is too short"):
            picked([found], "fs")
        await one.conclude("Done")
        assert await active(ann) == []


async def test_what_is_in_a_reasoning_ends_with_it() -> None:
    async with Space(WHO) as space, space.connect("bot") as bot, space.connect("ann") as ann:
        outer = await bot.send("reasoning/start", {"message": "a"})
        await bot.send("reasoning/start", {"message": "b"}, context=outer.id)
        assert [one.message for one in await active(ann)] == ["a", "b"]
        await ann.send("reasoning/cancel", {"reason": "enough"}, context=outer.id)
        assert await active(ann) == []


async def test_who_has_left_thinks_no_more() -> None:
    async with Space(WHO) as space:
        async with space.connect("bot") as bot:
            await bot.send("reasoning/start", {"message": "a"})
        async with space.connect("ann") as ann:
            assert await active(ann) == []
