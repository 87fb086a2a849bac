"""Several worker processes serve one port on one machine."""

import os
import re
import signal
from pathlib import Path

import pytest
from tests.e2e.client import Door
from tests.e2e.process import Gateway, listening, run_gateway, started
from tests.nodes.redis_server import RedisServer

pytestmark = pytest.mark.e2e

NODE = r"node of several.*node=(\w+)"


def children(gateway: Gateway) -> list[int]:
    pid = gateway.process.pid
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_workers_share_a_port_and_its_spaces(
    redis: RedisServer, config: dict[str, object], tokens: dict[str, str], tmp_path: Path
) -> None:
    with run_gateway(tmp_path, config, "--redis", redis.url, "--workers", "3") as gateway:
        assert len(set(re.findall(NODE, gateway.log))) == 3
        async with Door(gateway, tokens, "desk") as door:
            people = [await door.join(who) for who in ("ann", "bob", "cat", "ann", "bob", "cat")]
            for person in people:
                said = await person.say("chat", {"text": "hi"})
                for other in people:
                    if other is not person:
                        await other.until_id(said)


async def test_a_worker_that_dies_is_replaced(
    redis: RedisServer, config: dict[str, object], tokens: dict[str, str], tmp_path: Path
) -> None:
    with run_gateway(tmp_path, config, "--redis", redis.url, "--workers", "2") as gateway:
        before = children(gateway)
        os.kill(before[0], signal.SIGKILL)
        gateway.wait_for("worker ended, starting another")
        gateway.wait_for(NODE, times=3)
        assert len(children(gateway)) == 2
        assert before[1] in children(gateway)


async def test_workers_end_when_their_parent_is_killed(
    redis: RedisServer, config: dict[str, object], tmp_path: Path
) -> None:
    gateway = listening(started(tmp_path, config, "--redis", redis.url, "--workers", "2"))
    gateway.kill()  # returns once nobody holds its log open
    assert gateway.log.count("stopping") == 2


async def test_workers_without_a_redis_are_refused(config: dict[str, object], tmp_path: Path) -> None:
    gateway = started(tmp_path, config, "--workers", "2")
    assert gateway.ended() == 2
    gateway.stop()
    assert "--workers: they share their spaces over Redis" in gateway.log


async def test_workers_that_cannot_start_end_together(config: dict[str, object], tmp_path: Path) -> None:
    gateway = started(tmp_path, config, "--redis", "redis://127.0.0.1:1", "--workers", "2")
    assert gateway.ended() == 2
    gateway.stop()
    assert "Redis at 127.0.0.1:1" in gateway.log
