"""What happens in a space, as it happens."""

import asyncio
from typing import Any

import pytest

from mew.cli.commands.send import contents, sent_to
from mew.cli.commands.tail import Picked, follow, last
from mew.cli.errors import CommandError
from mew.protocol.envelope import Envelope
from mew.testing import Space

WHO: dict[str, list[Any]] = {"ann": ["*"], "bob": ["chat"]}


class Seen:
    """What was shown, and a way to wait for so much of it."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self._news = asyncio.Event()

    def __call__(self, envelope: Envelope) -> None:
        self.envelopes.append(envelope)
        self._news.set()

    def texts(self) -> list[str]:
        return [one.content["text"] for one in self.envelopes]

    async def wait(self, number: int) -> None:
        async with asyncio.timeout(5):
            while len(self.envelopes) < number:
                self._news.clear()
                await self._news.wait()


async def test_the_last_come_first_and_then_each_that_comes_once() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann, space.connect("bob") as bob:
        for n in range(5):
            await bob.chat(f"old {n}")
        seen = Seen()
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow(ann, Picked(kinds=("chat",)), seen, 3))
            await seen.wait(3)
            await bob.chat("new")
            await seen.wait(4)
            following.cancel()
        assert seen.texts() == ["old 2", "old 3", "old 4", "new"]


@pytest.mark.parametrize(
    ("picked", "texts"),
    [
        (Picked(kinds=("chat",), senders=("bob",)), ["to all", "to ann"]),
        (Picked(kinds=("chat", "acme/*"), senders=("ann", "bob")), ["to all", "to ann", "to bob", "in it"]),
        (Picked(kinds=("chat",), to_me=True), ["to all", "to ann", "in it"]),
        (Picked(context="plan"), ["in it"]),
    ],
)
async def test_only_what_fits_is_shown(picked: Picked, texts: list[str]) -> None:
    async with Space(WHO) as space, space.connect("ann") as ann, space.connect("bob") as bob:
        await bob.chat("to all")
        await bob.chat("to ann", to=["ann"])
        await ann.chat("to bob", to=["bob"])
        await ann.chat("in it", context="plan/step")
        assert [one.content["text"] for one in await last(ann, picked, 10)] == texts


async def test_what_refers_to_an_envelope_is_found() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann:
        first = await ann.chat("first")
        await ann.chat("second", about=first)
        found = await last(ann, Picked(about=first.id), 10)
        assert [one.content["text"] for one in found] == ["second"]


async def test_without_following_it_ends() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann:
        await ann.chat("one")
        seen = Seen()
        await follow(ann, Picked(kinds=("chat",)), seen, 10, goes_on=False)
        assert seen.texts() == ["one"]


# Sending.


@pytest.mark.parametrize(
    ("kind", "words", "payload", "content"),
    [
        ("chat", ["hello", "there"], None, {"text": "hello there", "format": "plain"}),
        ("reasoning/thought", ["so", "be", "it"], None, {"message": "so be it"}),
        (
            "participant/pause",
            ["timeout_seconds=60", "reason=wait"],
            None,
            {"timeout_seconds": 60, "reason": "wait"},
        ),
        ("acme/order", [], '{"a": 1}', {"a": 1}),
        ("acme/order", [], None, {}),
    ],
)
def test_a_payload_is_what_was_typed(
    kind: str, words: list[str], payload: str | None, content: dict[str, Any]
) -> None:
    assert contents(kind, words, payload, "plain") == content


@pytest.mark.parametrize(
    ("kind", "words", "payload", "says"),
    [
        ("chat", [], None, "the text of a chat is missing"),
        ("hello", ["there"], None, "'hello' is no kind; to say something, write: mew send chat 'TEXT'"),
        ("chat", ["x"], "{}", "give one of them"),
        ("acme/order", [], "7", "expected a JSON object"),
        ("acme/order", ["x"], None, "'x' is no argument"),
    ],
)
def test_what_is_no_payload_is_said(kind: str, words: list[str], payload: str | None, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        contents(kind, words, payload, "plain")


async def test_what_is_sent_has_everything_that_was_typed() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann, space.connect("bob") as bob:
        coming = bob.envelopes("acme/order")
        sent = await sent_to(ann, "acme/order", {"a": 1}, ["bob"], ["e1", "e2"], "plan")
        came = await anext(coming)
        assert (came.id, came.to, came.correlation_id, came.context) == (
            sent.id,
            ("bob",),
            ("e1", "e2"),
            "plan",
        )
        assert came.content == {"a": 1}
