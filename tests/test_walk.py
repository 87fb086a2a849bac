"""The walk of an envelope through the default gateway is the one that ARCHITECTURE.md tells."""

import asyncio
import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import uvloop

from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway

pytest.importorskip("mew._speedups", reason="in Python alone the walk has the twins of what is compiled too")

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mew"
CALLS_MAX = 30
FILES_MAX = 12
MEMBERS = ("ann", "bob", "cid")
BEHIND = {
    ("journal/files/high_water.py", "HighWaterMarks.write")
}  # by a timer, for all that was committed since
UPGRADE = (
    "GET /ws?space=demo HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {}\r\n\r\n"
)

Step = tuple[str, str]


def test_one_chat_takes_the_steps_that_the_architecture_tells(tmp_path: Path) -> None:
    told = _told()
    steps, passes = uvloop.run(_walked(tmp_path))
    assert steps == told
    assert len(steps) <= CALLS_MAX
    assert len({file for file, _ in steps}) <= FILES_MAX
    assert passes == 1


def _told() -> list[Step]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("<!-- walk -->")[2].partition("<!-- /walk -->")[0]
    return [
        (file, function)
        for file, function in re.findall(r"^\|[^|]*\| `([^`]+)` \| `([^`]+)` \|", table, re.M)
    ]


async def _walked(folder: Path) -> tuple[list[Step], int]:
    """The functions of ours that one chat calls in a gateway with its journal, and how often rooms took their turn."""
    config = folder / "space.yaml"
    people = {who: {"tokens": [f"token-of-{who}"], "capabilities": ["chat"]} for who in MEMBERS}
    config.write_text(json.dumps({"space": {"id": "demo"}, "participants": people}))
    async with Gateway(load_config(config, {}), {}, port=0) as gateway:
        sockets = [await _joined(gateway.url, who) for who in MEMBERS]
        try:
            await _chat(sockets, "e1")  # what is looked up only once
            await _chat(sockets, "e2")
            steps: list[Step] = []
            sys.setprofile(_noting(steps))
            try:
                await _chat(sockets, "e3")
            finally:
                sys.setprofile(None)
        finally:
            for one in sockets:
                one.close()
    return steps, steps.count(("gateway/room/turns.py", "Turns._run"))


def _noting(steps: list[Step]) -> Callable[[FrameType, str, Any], None]:
    def note(frame: FrameType, event: str, arg: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(SOURCE):
            step = (file.relative_to(SOURCE).as_posix(), frame.f_code.co_qualname)
            if step not in BEHIND:
                steps.append(step)

    return note


async def _joined(url: str, who: str) -> socket.socket:
    loop = asyncio.get_running_loop()
    one = socket.socket()
    one.settimeout(0)
    await loop.sock_connect(one, ("127.0.0.1", int(url.rpartition(":")[2])))
    await loop.sock_sendall(one, UPGRADE.format(f"token-of-{who}").encode())
    await _until(one, b'"system/presence"')
    return one


async def _chat(sockets: list[socket.socket], envelope_id: str) -> None:
    said = {
        "protocol": "mew/v0.4",
        "id": envelope_id,
        "from": MEMBERS[0],
        "kind": "chat",
        "payload": {"text": "hi"},
    }
    data = json.dumps(said).encode()
    assert len(data) < 126
    await asyncio.get_running_loop().sock_sendall(
        sockets[0], bytes((0x81, 0x80 | len(data), 0, 0, 0, 0)) + data
    )
    for one in sockets:
        await _until(one, envelope_id.encode())


async def _until(one: socket.socket, text: bytes) -> None:
    received = b""
    while text not in received:
        received += await asyncio.get_running_loop().sock_recv(one, 65_536)
