"""Who has not said who they are: how long they are waited for, and what is not held against them."""

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .client import Client, Door, RawSocket
from .process import WAIT_S, Gateway, run_gateway

PATIENCE_S = 0.5
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]) -> Iterator[Gateway]:
    """A gateway that waits for nobody for long."""
    config: dict[str, Any] = {
        "space": {"id": "demo"},
        "participants": participants,
        "server": {"join_timeout_s": PATIENCE_S},
    }
    with run_gateway(tmp_path_factory.mktemp("hasty"), config) as running:
        yield running


def test_who_says_nothing_or_half_a_request_is_cut_off_and_who_has_joined_is_not(
    hasty: Gateway, tokens: dict[str, str]
) -> None:
    with RawSocket(hasty, "/ws?space=demo", tokens["cat"]) as joined:
        strangers = [stranger(hasty) for _ in range(20)]
        for n, one in enumerate(strangers):
            one.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n"[: 4 * n])
        began = time.monotonic()
        for one in strangers:
            with one:
                assert one.recv(1) == b""
        assert 0.3 < time.monotonic() - began < 2
        joined.send_text(
            json.dumps({"protocol": "mew/v0.4", "id": "e1", "from": "cat", "kind": "chat", "payload": {}})
        )
        while b'"e1"' not in joined.receive()[1]:
            pass


async def test_who_sends_no_join_in_time_is_closed_and_may_come_back(
    hasty: Gateway, tokens: dict[str, str]
) -> None:
    async with Door(hasty, tokens, "demo") as door:
        connection = await door.open(door.gateway.ws_url + "/")
        assert (await Client("", connection).closed())[0] == 4009
        await door.join("cat")


def test_who_asked_in_time_is_answered_though_the_gateway_was_held_up(hasty: Gateway) -> None:
    with stranger(hasty) as one:
        is_well(hasty)  # who came before that has been let in
        with held_up(hasty):
            one.sendall(HEALTH)
            time.sleep(1.5 * PATIENCE_S)  # its deadline has to pass while it cannot look
        assert one.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("path", ["/", "/ws?space=demo"])
def test_who_hangs_up_before_the_answer_is_no_failure_of_the_gateway(
    hasty: Gateway, tokens: dict[str, str], path: str
) -> None:
    bearer = "" if path == "/" else f"Authorization: Bearer {tokens['ann']}\r\n"
    with stranger(hasty) as one:
        is_well(hasty)
        with held_up(hasty):
            one.sendall(
                f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{bearer}"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            one.close()
    is_well(hasty)
    assert " error " not in hasty.log


def stranger(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), WAIT_S)


def is_well(gateway: Gateway) -> None:
    with stranger(gateway) as asking:
        asking.sendall(HEALTH)
        assert asking.recv(12) == b"HTTP/1.1 200"


@contextmanager
def held_up(gateway: Gateway) -> Iterator[None]:
    """As on a machine that has no time for it."""
    gateway.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        gateway.signal(signal.SIGCONT)
