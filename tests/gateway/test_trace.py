"""What `--trace` writes, and what becomes of it when the file cannot be written."""

import asyncio
import json
from pathlib import Path

import pytest

from mew.gateway.trace import Trace
from mew.protocol.envelopes import Envelopes

RAW = b'{"protocol":"mew/v0.4","id":"e1","from":"ann","kind":"chat","payload":{"text":"hi"}}'
ENVELOPES = Envelopes.decode((RAW,))


async def test_lines_are_there_after_a_turn_of_the_loop(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    trace = Trace(file)
    for _ in range(3):
        trace.received("demo", ENVELOPES)
    assert file.read_bytes() == b""
    await asyncio.sleep(0)
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [(line["event"], line["id"], line["space"]) for line in lines] == [("received", "e1", "demo")] * 3
    trace.close()


async def test_what_was_not_written_yet_is_written_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    trace = Trace(file)
    trace.received("demo", ENVELOPES)
    trace.close()
    assert len(file.read_bytes().splitlines()) == 1
    trace.received("demo", ENVELOPES)
    await asyncio.sleep(0)
    assert len(file.read_bytes().splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
async def test_a_full_disk_ends_the_trace_with_one_line_in_the_log_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trace = Trace(Path("/dev/full"))
    for _ in range(3):
        trace.received("demo", ENVELOPES)
        await asyncio.sleep(0)
    trace.close()
    assert [record.message for record in caplog.records] == ["trace ended: the file cannot be written"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
async def test_a_full_disk_at_the_end_raises_nothing(caplog: pytest.LogCaptureFixture) -> None:
    trace = Trace(Path("/dev/full"))
    trace.received("demo", ENVELOPES)
    trace.close()
    assert len(caplog.records) == 1
