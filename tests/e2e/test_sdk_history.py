"""All that was ever shown, told by a gateway that keeps little in memory and was killed in between (issue 4)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import mew
from mew.protocol.kinds import Kind

from .process import listening, secret, started

SPACE = "desk"
WITHIN_S = 150.0


async def talk(speakers: list[mew.Client], many: int) -> None:
    """Some to all, some to one alone, and some that is no talk."""
    for n in range(many):
        me, other = speakers[n % 2], speakers[(n + 1) % 2]
        await me.chat(f"{n}", to=[other.id] if n % 3 == 0 else [])
        if n % 5 == 0:
            await me.send("mcp/proposal", {"method": "tools/list"}, to=[me.id])


async def seen(feed: AsyncIterator[mew.Envelope], end: mew.Envelope) -> list[mew.Envelope]:
    """What came, up to this one; a welcome is said to one connection, and not part of what was shown."""
    shown = [await anext(feed)]
    while shown[-1] != end:
        shown.append(await anext(feed))
    return [envelope for envelope in shown if envelope.kind != Kind.WELCOME]


@pytest.mark.e2e
async def test_the_history_is_what_each_was_shown_also_after_a_crash(tmp_path: Path) -> None:
    tokens = {name: secret(f"token-of-{name}") for name in ("ann", "bob", "cid")}
    config: dict[str, Any] = {
        "space": {"id": SPACE, "delivery": "addressed"},
        "participants": {
            name: {"tokens": [token], "capabilities": ["chat", "mcp/proposal"]}
            for name, token in tokens.items()
        },
        "limits": {"history_envelopes": 20, "envelopes_per_second": 100_000, "burst": 100_000},
    }
    gateway = await asyncio.to_thread(listening, started(tmp_path, config))
    port = gateway.port
    try:
        async with (
            asyncio.timeout(WITHIN_S),
            mew.connect(gateway.ws_url, space=SPACE, token=tokens["cid"]) as cid,
            mew.connect(gateway.ws_url, space=SPACE, token=tokens["ann"]) as ann,
            mew.connect(gateway.ws_url, space=SPACE, token=tokens["bob"]) as bob,
        ):
            everyone = [ann, bob, cid]
            feeds = [me.envelopes() for me in everyone]
            await talk([ann, bob], 150)
            half = ann.history(kind="chat")
            told = [await anext(half) for _ in range(10)]
            await asyncio.to_thread(gateway.kill)
            again = await asyncio.to_thread(started, tmp_path, config, port=port)
            gateway = await asyncio.to_thread(listening, again)
            told += await half.list()
            assert [envelope.content["text"] for envelope in told] == [f"{n}" for n in range(150)]
            for me in everyone:
                await me.chat("back again")  # so that nobody misses more than memory holds
            await talk([bob, ann], 50)
            end = await ann.chat("end")
            for me, feed in zip(everyone, feeds, strict=True):
                shown = await seen(feed, end)
                history = me.history(after=shown[0])
                assert await history.list() == shown[1:]
                assert history.complete
                back = await me.history(newest_first=True, limit=len(shown)).list()
                assert back[::-1] == shown
            async with mew.connect(gateway.ws_url, space=SPACE, token=tokens["cid"], recall=120) as late:
                assert len(late.recalled) == 120
                assert late.recalled[-1] == end
    finally:
        gateway.stop()
    assert "Traceback" not in gateway.log
