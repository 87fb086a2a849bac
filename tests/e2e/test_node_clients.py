"""JavaScript clients (npm `ws`) that send what the TypeScript SDK sends (design §3.3, §3.19)."""

import asyncio
import base64
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import mew

from .client import Door
from .mcp_servers import SERVERS

pytestmark = pytest.mark.e2e

PROGRAM = Path(__file__).with_name("node_client.cjs")


class Node:
    """One client, as a process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def send(self, **frame: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")
        await self._process.stdin.drain()

    async def say(self, kind: str, payload: Any = None, **fields: Any) -> None:
        """An envelope without what the TypeScript SDK leaves out."""
        await self.send(json={"kind": kind, "payload": payload or {}, **fields})

    async def next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        async with asyncio.timeout(10):
            line = await self._process.stdout.readline()
        assert line, "the client has ended"
        said: dict[str, Any] = json.loads(line)
        return said

    async def until(self, kind: str) -> dict[str, Any]:
        """The next envelope of this kind."""
        while True:
            said = await self.next()
            assert "closed" not in said, said
            if "text" in said and not said["text"].startswith("#"):
                envelope: dict[str, Any] = json.loads(said["text"])
                if envelope["kind"] == kind:
                    return envelope

    async def frame(self) -> bytes:
        """The next stream frame."""
        while True:
            said = await self.next()
            raw = base64.b64decode(said["base64"]) if "base64" in said else said.get("text", "").encode()
            if raw.startswith(b"#"):
                return raw


@asynccontextmanager
async def node(door: Door, *, header: str | None = None, path: str = "/") -> AsyncIterator[Node]:
    program = str(Path(sys.executable).with_name("node"))
    arguments = [str(PROGRAM), door.gateway.ws_url + path, *([] if header is None else [header])]
    environ = {**os.environ, "NODE_PATH": str(SERVERS / "node_modules")}
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdin=PIPE, stdout=PIPE, env=environ, limit=1 << 20
    )
    try:
        client = Node(process)
        assert await client.next() == {"open": True}
        yield client
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(10):
            await process.wait()


def join(door: Door, who: str, **more: Any) -> dict[str, Any]:
    return {"space": door.space, "token": door.tokens[who], "participantId": who, **more}


@pytest.mark.parametrize("form", ["type", "kind", "header"])
async def test_each_form_of_a_join_is_welcomed(door: Door, form: str) -> None:
    header = door.tokens["bob"] if form == "header" else None
    path = f"/?space={door.space}" if form == "header" else "/"
    async with node(door, header=header, path=path) as bob:
        if form == "kind":
            await bob.send(json={"kind": "system/join", "payload": join(door, "bob")})
        else:
            await bob.send(json={"type": "join", **join(door, "bob")})
        assert (await bob.until("system/welcome"))["payload"]["you"]["id"] == "bob"
        ann = await door.join("ann")
        await bob.say("chat", {"text": "hi", "format": "plain"})
        assert (await ann.until("chat"))["from"] == "bob"


async def test_counters_as_ids_and_a_string_as_correlation_id_pass(door: Door) -> None:
    ann = await door.join("ann")
    for _ in range(2):  # a client that is started again counts from the beginning
        async with node(door) as bob:
            await bob.send(json={"type": "join", **join(door, "bob")})
            await bob.until("system/welcome")
            await bob.say("chat", {"text": "hi"}, id="env-1", correlation_id="one")
            said = await ann.until("chat")
            assert (said["id"], said["from"], said["correlation_id"]) == ("env-1", "bob", ["one"])


async def test_it_lists_and_calls_the_tools_of_a_python_participant(door: Door) -> None:
    participant = mew.Participant("calculator")

    @participant.tool
    def add(a: int, b: int) -> int:
        return a + b

    url, token = door.gateway.ws_url, door.tokens["ann"]
    async with asyncio.TaskGroup() as tasks, mew.connect(url, space=door.space, token=token) as ann:
        tasks.create_task(participant.serve(ann))
        async with node(door) as bob:
            await bob.send(json={"type": "join", **join(door, "bob")})
            await bob.until("system/welcome")
            await bob.say("mcp/request", {"method": "tools/list", "params": {}}, id="r-1", to=["ann"])
            listed = await bob.until("mcp/response")
            assert listed["correlation_id"] == ["r-1"]
            assert [tool["name"] for tool in listed["payload"]["result"]["tools"]] == ["add"]
            call = {"name": "add", "arguments": {"a": 2, "b": 3}}
            await bob.say("mcp/request", {"method": "tools/call", "params": call}, id="r-2", to=["ann"])
            answer = await bob.until("mcp/response")
            assert answer["payload"]["result"]["structuredContent"] == {"result": 5}
        participant.stop()


async def test_stream_frames_reach_the_others_and_their_writer(door: Door) -> None:
    ann = await door.join("ann")
    async with node(door) as bob:
        await bob.send(json={"type": "join", **join(door, "bob")})
        await bob.until("system/welcome")
        await bob.say("stream/request", {"description": "numbers"}, to=["gateway"])
        stream = (await bob.until("stream/open"))["payload"]["stream_id"]
        frames = (f"#{stream}#text".encode(), f"#{stream}#".encode() + bytes(range(256)))
        await bob.send(text=frames[0].decode())
        await bob.send(base64=base64.b64encode(frames[1]).decode())
        for frame in frames:
            assert await bob.frame() == frame
            heard = await ann.frame()
            assert (heard.encode() if isinstance(heard, str) else heard) == frame
