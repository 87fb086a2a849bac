"""An agent that thinks aloud, and somebody who stops it."""

import asyncio

import mew
from mew.protocol.kinds import Chat
from mew.testing import Space

agent = mew.Participant("agent")


@agent.on("chat")
async def answer(said: mew.Envelope, chat: Chat) -> None:
    async with agent.client.reasoning(f"Thinking about {chat.text!r}", about=said) as reasoning:
        await reasoning.thought("This will take a while")
        found = await search(chat.text)
        await reasoning.conclude(found)
        await agent.client.chat(found, about=said)
    if reasoning.cancelled:  # the block ended wherever it was waiting
        why = reasoning.cancel_reason or "no reason given"
        await agent.client.chat(f"Stopped by {reasoning.cancelled_by}: {why}", about=said)


async def search(text: str) -> str:
    await asyncio.sleep(0 if text == "2 + 2" else 3600)
    return "4"


async def stop_whatever_goes_on(me: mew.Client) -> None:
    for active in me.reasonings.of_others:
        print(f"{active.by} is thinking: {active.message}")
        await me.reasonings.cancel(active.id, "we have enough")


async def main() -> None:
    capabilities = ["chat", "reasoning/*"]
    async with (
        Space({"ann": capabilities, "agent": capabilities}) as space,
        space.serving(agent, "agent"),
        space.connect("ann") as ann,
    ):
        answers, thoughts = ann.envelopes("chat", sender="agent"), ann.envelopes("reasoning/thought")

        await ann.chat("2 + 2")
        assert (await anext(answers)).read(Chat).text == "4"
        await anext(thoughts)

        await ann.chat("the meaning of life")
        await anext(thoughts)
        await stop_whatever_goes_on(ann)
        assert (await anext(answers)).read(Chat).text == "Stopped by ann: we have enough"


if __name__ == "__main__":
    asyncio.run(main())
