"""Somebody who uses what others offer, and answers what they ask."""

import asyncio
from typing import Any

import mew
from mew.testing import Space

library = mew.Participant("library")
NOTES = {"today": "Write the manual."}
WHERE = {
    "message": "Which shelf?",
    "requestedSchema": {
        "type": "object",
        "properties": {"shelf": {"type": "string", "enum": ["A", "B"]}},
        "required": ["shelf"],
    },
}


@library.resource("notes://{name}")
async def note(name: str) -> str | None:
    """One note."""
    return NOTES.get(name)


@library.prompt
async def summary(language: str) -> str:
    """How to sum up a note."""
    return f"Sum it up in {language}."


@library.tool
async def archive(name: str, call: mew.Call) -> str:
    """Put a note away."""
    answer = await library.client.request(
        call.sender, "elicitation/create", WHERE, correlation_id=[call.envelope.id]
    )
    if answer["action"] != "accept":
        raise mew.ToolError("nobody said where")
    return f"{name} is on shelf {answer['content']['shelf']}"


@library.answers("sampling/createMessage")
async def sample(params: dict[str, Any], call: mew.Call) -> dict[str, Any]:
    said = {"type": "text", "text": f"{len(params['messages'])} messages from {call.sender}"}
    return {"role": "assistant", "content": said, "model": "none"}


async def use(me: mew.Client) -> str:
    text = await me.read("library", "notes://today")
    (message,) = await me.prompt("library", "summary", {"language": "French"})
    placed = await me.call("library", "archive", {"name": "today"}, on_update=print)
    return f"{text} {message.content} {placed}"


async def ask(me: mew.Client) -> dict[str, Any]:
    params = {"name": "archive", "arguments": {"name": "today"}}
    return await me.ask("library", "tools/call", params)


async def answer(me: mew.Client) -> None:
    async for question in me.questions():
        print(question.preview())
        try:
            if question.mode == "url":
                await question.decline()
            else:
                await question.answer(shelf="B")
        except mew.AlreadyDecided as gone:
            print(gone)


async def approve(me: mew.Client) -> None:
    async for proposal in me.proposals():
        await proposal.approve()


async def main() -> None:
    who = {"ann": ["*"], "bot": ["mcp/proposal"], "library": ["mcp/request:elicitation/create"]}
    async with (
        Space(who) as space,
        space.connect("bot") as bot,
        asyncio.TaskGroup() as tasks,
        space.serving(library, "library"),
        space.connect("ann") as ann,
    ):
        tasks.create_task(answer(ann))
        tasks.create_task(approve(ann))
        done = "Write the manual. Sum it up in French. today is on shelf B"
        assert await use(ann) == done
        assert await use(bot) == done
        assert (await ask(bot))["content"][0]["text"] == "today is on shelf B"
        sampled = await ann.ask("library", "sampling/createMessage", {"messages": []})
        assert sampled["content"]["text"] == "0 messages from ann"


if __name__ == "__main__":
    asyncio.run(main())
