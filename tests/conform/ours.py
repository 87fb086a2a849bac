"""A participant written with our SDK that does all that the kit can ask of one, and what makes it do so.

As a program it takes MEW_URL, MEW_SPACE and MEW_TOKEN from the environment: `mew conform participant --command`.
"""

import asyncio
import os
from typing import Any, Final

import mew
from mew.conform.participant.prompts import Prompts, ToolPrompt

__all__ = ["TIMEOUT_S", "Ours", "prompts"]

TIMEOUT_S: Final = 0.5
_STEP_S: Final = 0.01
_TOKENS_MAX: Final = 30_000

WRITE: Final = {"target": "{worker}", "text": "{word}"}
SAID: Final[dict[str, str | ToolPrompt]] = {
    "chat": "Hello!",
    "acknowledge": "For your information: all is well.",
    "tool": ToolPrompt("touch", {"times": 1}),
    "effect": ToolPrompt("touched"),
    "recall": ToolPrompt("remembered"),
    "request": ToolPrompt("read", {"target": "{worker}"}),
    "propose": ToolPrompt("write", WRITE),
    "withdraw": ToolPrompt("take_back"),
    "reason": ToolPrompt("think"),
    "ponder": ToolPrompt("ponder"),
    "abandon": ToolPrompt("abandon"),
    "stream": ToolPrompt("stream"),
    "pour": ToolPrompt("pour"),
    "spill": ToolPrompt("spill"),
    "cancel_chat": ToolPrompt("misspeak"),
    "grant": ToolPrompt("give", {"recipient": "{worker}"}),
    "invite": ToolPrompt("invite"),
    "acknowledge_all": ToolPrompt("clear_queue"),
    "cancel_all": ToolPrompt("cancel_all"),
    "cancel_reasoning": ToolPrompt("interrupt", {"start": "{start}"}),
}


def prompts(timeout_s: float = TIMEOUT_S) -> Prompts:
    return Prompts(SAID, timeout_s, feed_tokens_max=2 * _TOKENS_MAX)


class Ours:
    """The participant, and what it keeps beside its memory."""

    def __init__(self) -> None:
        memory = mew.EnvelopeMemory(
            max_tokens=_TOKENS_MAX, count=lambda envelope: len(envelope.payload) // 4 + 1
        )
        self.participant = mew.Participant("ours", version="1", memory=memory)
        self.memory = memory
        self.touched = 0
        self.proposal: Any = None
        self.resumed = asyncio.Event()
        self.resumed.set()
        for offer in (
            self._offer_tools,
            self._offer_notes,
            self._offer_talk,
            self._offer_streams,
            self._offer_interface,
        ):
            offer(self.participant)
        self._behave(self.participant)

    @property
    def me(self) -> mew.Client:
        return self.participant.client

    def _behave(self, p: mew.Participant) -> None:
        @p.on("chat", to_me=True)
        async def answer(chat: mew.Envelope) -> None:
            await self.resumed.wait()  # what is cancelled meanwhile wants no answer
            if chat.id not in {waiting.id for waiting in self.me.chats.waiting}:
                return
            if "information" in chat.content["text"]:
                await self.me.chats.acknowledge(chat)
            else:
                await self.me.chat("Hello to you.", to=[chat.sender], about=chat)

        @p.on_proposal
        async def decide(review: mew.Review) -> None:
            await (
                self.resumed.wait()
            )  # what is approved in a pause goes out after it, also if withdrawn meanwhile
            if not review.open:
                return
            if review.tool == "read_note" and review.target == "worker":
                await review.approve()
            elif self.me.id in (review.target or ""):
                await review.reject("policy", "I only pass on what reads.")

        @p.on_pause
        async def hold(_: mew.Envelope) -> None:
            self.resumed.clear()

        @p.on_resume
        async def go_on(_: mew.Envelope | None) -> None:
            self.resumed.set()

    def _offer_tools(self, p: mew.Participant) -> None:
        @p.tool
        async def touch(times: int) -> str:
            """Nothing but count."""
            self.touched += times
            return f"touched {times} times"

        @p.tool(read_only=True)
        async def touched() -> int:
            """How often it was touched."""
            return self.touched

        @p.tool(read_only=True)
        async def remembered() -> list[str]:
            """What is remembered."""
            return [bytes(envelope.payload).decode() for envelope in self.memory if envelope.kind == "chat"]

    def _offer_notes(self, p: mew.Participant) -> None:
        @p.tool
        async def read(target: str) -> Any:
            """Read the note of somebody."""
            return await self.me.call(target, "read_note")

        @p.tool
        async def write(target: str, text: str) -> Any:
            """Write the note of somebody, or propose that."""
            params = {"name": "write_note", "arguments": {"text": text}}
            request = {"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params}
            if self.me.can_send("mcp/request", request, to=target):
                return await self.me.call(target, "write_note", {"text": text})
            self.proposal = await self.me.propose_call(target, "write_note", {"text": text})
            try:
                return await self.proposal.value()
            except mew.NotFulfilled as error:
                raise mew.ToolError(str(error)) from error

        @p.tool
        async def take_back() -> str:
            """Withdraw what is proposed."""
            await self.proposal.withdraw("no_longer_needed")
            return "withdrawn"

        @p.resource("notes://today")
        async def today() -> str:
            """What is on today."""
            return "nothing"

        @p.prompt
        async def greet(name: str) -> str:
            """Greet somebody."""
            return f"Greet {name}."

    def _offer_talk(self, p: mew.Participant) -> None:
        @p.tool
        async def think(call: mew.Call) -> str:
            """Think about it."""
            async with self.me.reasoning("Let me see", about=call.envelope) as r:
                await r.thought("It is simple")
                await r.chat("I am thinking about it")
                await r.conclude("Yes")
            return "yes"

        @p.tool
        async def ponder(call: mew.Call) -> str:
            """Think about it for ever."""
            async with self.me.reasoning("A hard one", about=call.envelope) as r:
                while True:
                    await r.thought("Hm")
                    await asyncio.sleep(_STEP_S)
            return f"stopped: {r.cancel_reason}"

        @p.tool
        async def abandon(call: mew.Call) -> str:
            """Begin to think, and let it be."""
            async with self.me.reasoning("Let me see", about=call.envelope) as r:
                await r.thought("It is too hard")
                raise mew.ToolError("too hard")
            return ""

        @p.tool
        async def misspeak() -> str:
            """Say something, and take it back."""
            said = await self.me.chat("The answer is 41", to=["owner"])
            await self.me.chats.cancel_chat(said, "duplicate")
            return "cancelled"

        @p.tool
        async def give(recipient: str) -> str:
            """Grant somebody a chat."""
            await self.me.grant(recipient, {"kind": "chat"}, reason="to talk", ack_within_s=0.01)
            return "granted"

        @p.tool
        async def invite() -> str:
            """Invite somebody."""
            await self.me.invite("somebody-new", {"kind": "chat"}, reason="one more to talk to")
            return "invited"

    def _offer_streams(self, p: mew.Participant) -> None:
        @p.tool
        async def stream(call: mew.Call) -> str:
            """Send something over two streams at once."""
            about = [call.envelope.id]
            async with (
                await self.me.streams.open(
                    direction="upload", description="one", correlation_id=about
                ) as one,
                await self.me.streams.open(
                    direction="upload", description="two", expected_size_bytes=9
                ) as two,
            ):
                for number in range(3):
                    await one.write(f"one {number} # with a mark")
                    await two.write(bytes([number, 0, 255]))
            return "sent"

        @p.tool
        async def pour() -> str:
            """Write to a stream for ever."""
            stream = await self.me.streams.open(direction="upload", description="much")
            try:
                async with stream:
                    while True:
                        await stream.write(b"drop")
                        await asyncio.sleep(_STEP_S)
            except mew.Refused:
                return "closed"

        @p.tool
        async def spill() -> str:
            """Begin a stream, and fail."""
            async with await self.me.streams.open(direction="upload", description="trouble") as stream:
                await stream.write(b"oh")
                raise mew.ToolError("oh")

    def _offer_interface(self, p: mew.Participant) -> None:
        @p.tool
        async def clear_queue() -> str:
            """Acknowledge everything."""
            return f"{len(await self.me.chats.acknowledge_all())} acknowledged"

        @p.tool
        async def cancel_all() -> str:
            """Cancel everything not acknowledged."""
            return f"{len(await self.me.chats.cancel_all())} cancelled"

        @p.tool
        async def interrupt(start: str) -> str:
            """Cancel somebody's reasoning."""
            await self.me.reasonings.cancel(start, "superseded")
            return "interrupted"


if __name__ == "__main__":
    Ours().participant.run(
        os.environ["MEW_URL"], space=os.environ["MEW_SPACE"], token=os.environ["MEW_TOKEN"]
    )
