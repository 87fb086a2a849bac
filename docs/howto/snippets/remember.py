"""An agent with a memory that others can look after."""

import asyncio

import mew
from mew.protocol.kinds import Chat
from mew.testing import Space


def tokens(envelope: mew.Envelope) -> int:
    return len(bytes(envelope.payload)) // 4  # what your model counts


memory = mew.EnvelopeMemory(max_tokens=1_000, count=tokens)
agent = mew.Participant("agent", memory=memory)


@agent.on("chat")
async def answer(said: mew.Envelope) -> None:
    texts = [past.read(Chat).text for past in memory if past.kind == "chat"]
    await agent.client.chat(f"I remember {len(texts)} chats, the first is {texts[0]!r}", about=said)


@agent.status
def metrics() -> dict[str, object]:
    return {"model": "none", "latency_ms": 3}


async def look_after(me: mew.Client, who: str) -> None:
    status = await me.control.request_status(who)
    print(status)
    if status["tokens"] > status["max_tokens"] // 2:
        done = await me.control.compact(who, target_tokens=100)
        print(done.status, done.freed_messages, "envelopes")
    await me.control.forget(who, "oldest", 1)


async def main() -> None:
    async with (
        Space({"ann": ["*"], "agent": ["chat", "chat/*", "participant/*"]}) as space,
        space.serving(agent, "agent"),
        space.connect("ann") as ann,
    ):
        answers = ann.envelopes("chat", sender="agent")
        await ann.chat("good morning")
        assert (await anext(answers)).read(Chat).text == "I remember 1 chats, the first is 'good morning'"
        await ann.chat("x" * 2_400)
        await anext(answers)
        assert len(memory) == 4

        await look_after(ann, "agent")
        status = await ann.control.request_status("agent")
        assert status["messages_in_context"] == 0
        assert status["model"] == "none"


if __name__ == "__main__":
    asyncio.run(main())
