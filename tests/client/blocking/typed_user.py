"""What a user writes with either face, for mypy to read: nothing here is run."""

from pathlib import Path
from typing import Any, assert_type

import mew
from mew.client.blocking import sync
from mew.client.blocking.sync import connect_sync
from mew.client.connection.feed import Feed
from mew.client.proposals.review import Review
from mew.client.streams.files import Uploaded
from mew.protocol.envelope import Envelope, ParticipantId


async def asynchronous() -> None:
    async with mew.connect("ws://localhost:8080", space="demo", token=Path("ann.token")) as me:
        assert_type(await me.chat("hello"), Envelope)
        await me.call("calculator", "add", timout_s=3)  # type: ignore[call-arg]  # a misspelt option is no argument
        await me.propose_call("calculator", "add", timout_s=3)  # type: ignore[call-arg]  # the same
        assert_type(me.proposals(), Feed[Review])
        async for proposal in me.proposals():
            await proposal.approve()


def synchronous() -> None:
    with connect_sync("ws://localhost:8080", space="demo", token=Path("ann.token")) as me:
        assert_type(me, sync.Client)
        assert_type(me.id, ParticipantId)
        assert_type(me.chat("hello"), Envelope)
        assert_type(me.call("calculator", "add", {"a": 2, "b": 3}), Any)
        me.call("calculator", "add", timout_s=3)  # type: ignore[call-arg]  # a misspelt option is no argument
        assert_type(me.proposals(), sync.Feed[sync.Review])
        for review in me.proposals():
            assert_type(review, sync.Review)
            review.reject("unsafe", "why")
        assert_type(me.envelopes("chat").next_within(1.0), Envelope | None)
        assert_type(me.propose("tools/call", {"name": "add"}).wait(timeout_s=5.0), mew.Outcome)
        assert_type(me.upload("data.csv", progress=print), Uploaded)
        reasoned(me)
        streamed(me.streams)


def reasoned(me: sync.Client) -> None:
    with me.reasoning("Which file?") as r, me.reasoning("Which part?", context=r) as part:
        assert_type(r, sync.Reasoning)
        part.thought("It is YAML")
        r.conclusion = "config.yaml"


def streamed(streams: sync.Streams) -> None:
    stream = streams.open(description="numbers")
    stream.write(b"1")
    for chunk in stream.read():
        assert_type(chunk, bytes)
    for chunk in stream:
        assert_type(chunk, bytes)
    with stream:
        assert_type(streams.active, tuple[sync.Stream, ...])
