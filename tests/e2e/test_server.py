"""Running it: certificates, signals, files and what it writes (issue 2, items 5 to 8)."""

import asyncio
import json
import re
import signal
import socket
import ssl
import stat
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import websockets
from tests.certificates import make_certificate

from .client import Client, Door, RawSocket, upgrade
from .process import Gateway, run_gateway, secret, secrets_used, started


def demo(participants: dict[str, object], **more: Any) -> dict[str, Any]:
    return {"space": {"id": "demo"}, "participants": participants, **more}


# TLS.


async def test_with_a_certificate_wss_works_and_plain_is_refused(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    make_certificate(tmp_path)
    config = demo(participants, tls={"cert": "cert.pem", "key": "key.pem"})
    with run_gateway(tmp_path, config) as gateway:
        assert gateway.url.startswith("https://")
        async with Door(gateway, tokens, "demo") as door:
            trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
            ann = await door.join("ann", ssl=trusted)
            await ann.say("chat", {"text": "unheard by others", "large": "x" * 300_000})
            await ann.say("space/invite", {"participant_id": "dan"})
            ack = await ann.until("space/invite-ack")
            secrets_used.add(ack["payload"]["token"])
            assert ack["payload"]["connection_url"].startswith("wss://")
            plain = f"ws://127.0.0.1:{gateway.port}/ws?space=demo"
            with pytest.raises((websockets.InvalidMessage, ConnectionError)):
                await door.open(plain, additional_headers={"Authorization": f"Bearer {tokens['ann']}"})
            await ann.say("chat", {"text": "still"})


def test_a_certificate_that_does_not_load_is_one_sentence(
    tmp_path: Path, participants: dict[str, object]
) -> None:
    make_certificate(tmp_path)
    (tmp_path / "cert.pem").write_text("no certificate")
    gateway = started(tmp_path, demo(participants, tls={"cert": "cert.pem", "key": "key.pem"}))
    assert gateway.ended() == 2
    assert one_sentence(gateway, "cert.pem")


def one_sentence(gateway: Gateway, *parts: str) -> bool:
    """All it said is one line that starts with its name."""
    gateway.stop()
    lines = gateway.log.splitlines()
    assert len(lines) == 1, gateway.log
    assert lines[0].startswith("mew gateway: ")
    return all(part in lines[0] for part in parts)


# Starting.


def test_a_taken_port_is_one_clear_sentence_and_exit_code_2(
    tmp_path: Path, participants: dict[str, object]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        gateway = started(tmp_path, demo(participants), port=port)
        assert gateway.ended() == 2
    assert one_sentence(gateway, f"port {port}", "taken", "--port")


WRONG_FILES = {
    "space:\n  id: demo\nparticipant:\n  ann: {}\n": (":3:", "'participant'", "'participants'"),
    "space: {id: demo}\nlimits:\n  envelope_bites: 1\n": (":3:", "envelope_bites", "envelope_bytes"),
    "space: [": ("space.yaml",),
    "space: {id: demo}\nserver: {keepalive_s: fast}\n": (":2:", "keepalive_s"),
    "space: {id: demo}\nparticipants: {gateway: {}}\n": (":2:", "gateway"),
}


def test_a_wrong_file_is_one_error_with_file_line_key_and_the_nearest_key(tmp_path: Path) -> None:
    running = []
    for n, written in enumerate(WRONG_FILES):
        (tmp_path / str(n)).mkdir()
        running.append(started(tmp_path / str(n), written))
    for gateway, expected in zip(running, WRONG_FILES.values(), strict=True):
        assert gateway.ended() == 2
        assert one_sentence(gateway, "space.yaml", *expected)


def test_a_file_that_is_not_there_is_one_error(tmp_path: Path, participants: dict[str, object]) -> None:
    gateway = started(tmp_path, demo(participants), "--config", str(tmp_path / "none.yaml"))
    assert gateway.ended() == 2
    assert one_sentence(gateway, "none.yaml")


# Stopping.


async def test_who_is_connected_is_told_to_come_back_when_the_gateway_stops(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    with run_gateway(tmp_path, demo(participants)) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            clients = await door.meet("ann", "bob", "cat")
            by_frame = await door.join_by_frame({"type": "join", "token": tokens["bot"]})
            await by_frame.until("system/presence")
            last = await clients[0].say("chat", {"text": "the last word"})
            gateway.signal(signal.SIGTERM)
            for client in (*clients, by_frame):
                code, reason = await client.closed()
                assert code == 4001
                assert reason
            assert last in [said["id"] for said in clients[1].seen]
        assert await asyncio.to_thread(gateway.ended) == 0
    assert "stopping" in gateway.log


async def test_what_was_echoed_before_the_stop_was_shown_to_all(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    """Nothing half-done: amid traffic, all were shown the same envelopes when the end comes."""
    with run_gateway(tmp_path, demo(participants)) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            clients = await door.meet("ann", "bob", "cat")

            async def talk(client: Client) -> None:
                try:
                    while True:
                        await client.send("chat", {"text": "x"})
                        await asyncio.sleep(0.004)
                except websockets.ConnectionClosed:
                    pass

            async with asyncio.TaskGroup() as tasks:
                for client in clients:
                    tasks.create_task(talk(client))
                ends = [tasks.create_task(client.closed()) for client in clients]
                await asyncio.sleep(0.2)
                gateway.signal(signal.SIGINT)
            assert [end.result()[0] for end in ends] == [4001] * 3
            heard = [[said["id"] for said in client.seen if said["kind"] == "chat"] for client in clients]
            assert heard[0] == heard[1] == heard[2]
            assert len(heard[0]) > 20
        assert await asyncio.to_thread(gateway.ended) == 0


async def test_who_does_not_answer_the_close_does_not_keep_the_gateway_from_stopping(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    def stop() -> None:
        with (
            RawSocket(gateway, "/ws?space=demo", tokens["ann"]) as mute,
            RawSocket(gateway, "/", None) as unjoined,
            socket.create_connection(("127.0.0.1", gateway.port)) as half,
        ):
            half.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            gateway.signal(signal.SIGTERM)
            assert mute.until_closed()[0] == 4001
            gateway.wait_for("stopping")
            with pytest.raises(ConnectionError):  # and nobody new is let in meanwhile
                upgrade(gateway, "/ws?space=demo", authorization=f"Bearer {tokens['bob']}")
            assert unjoined.until_closed()[0] == 4001
            assert gateway.ended(within_s=5) == 0

    with run_gateway(tmp_path, demo(participants)) as gateway:
        await asyncio.to_thread(stop)


async def test_a_stop_lasts_no_longer_than_its_grace_whoever_does_not_answer(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    """One does not answer the close, one has half a request under way, and the mail server says nothing."""

    def stop() -> float:
        with (
            RawSocket(gateway, "/ws?space=demo", tokens["cat"]),
            socket.create_connection(("127.0.0.1", gateway.port)) as half,
        ):
            half.sendall(
                b"POST /participants/cat/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
                b"Authorization: Bearer %s\r\n\r\n{" % tokens["cat"].encode()
            )
            gateway.wait_for("connected.*who=cat")
            began = time.monotonic()
            gateway.signal(signal.SIGTERM)
            assert gateway.ended(within_s=5) == 0
            return time.monotonic() - began

    with socket.create_server(("127.0.0.1", 0)) as mute:
        smtp = {
            "host": "127.0.0.1",
            "port": mute.getsockname()[1],
            "from": "mew@example.org",
            "security": "none",
        }
        config = demo(participants, smtp=smtp, server={"shutdown_grace_s": 0.5})
        with run_gateway(tmp_path, config) as gateway:
            async with Door(gateway, tokens, "demo") as door:
                ann = await door.join("ann")
                await ann.say("space/invite", {"participant_id": "dan", "email": "dan@example.org"})
                secrets_used.add((await ann.until("space/invite-ack"))["payload"]["token"])
                mailing, _ = await asyncio.to_thread(mute.accept)
            with mailing:
                assert 0.5 <= await asyncio.to_thread(stop) < 2  # the process ends after the gateway
    assert "invitations not sent: the gateway is shutting down  count=1" in gateway.log


# Reading the file again: one process, which each test gives a file of its own.


@pytest.fixture(scope="module")
def reloading(tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]) -> Iterator[Gateway]:
    with run_gateway(tmp_path_factory.mktemp("reloading"), demo(participants)) as running:
        yield running


async def reload(
    gateway: Gateway, config: dict[str, Any] | str, expected: str = "configuration reloaded"
) -> str:
    """Put a file in place and send SIGHUP; the line of the log about it."""
    gateway.rewrite(config)
    times = len(re.findall(expected, gateway.log))
    gateway.signal(signal.SIGHUP)
    return await asyncio.to_thread(gateway.wait_for, expected, times=times + 1)


@pytest.fixture
async def reload_door(
    reloading: Gateway, participants: dict[str, object], tokens: dict[str, str]
) -> AsyncIterator[Door]:
    await reload(reloading, demo(participants))
    async with Door(reloading, tokens, "demo") as door:
        yield door


async def test_a_reload_brings_new_participants_and_capabilities_and_drops_no_connection(
    reload_door: Door, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    door, gateway = reload_door, reload_door.gateway
    ann, cat = await door.meet("ann", "cat")
    assert (await cat.refused("mcp/request", {}))["error"] == "capability_violation"
    new = secret("token-of-dan")
    changed = {
        **participants,
        "cat": {"tokens": [tokens["cat"]], "capabilities": ["chat", "mcp/request"]},
        "dan": {"tokens": [new], "capabilities": ["chat"]},
    }
    gateway.rewrite(demo(changed))
    gateway.signal(signal.SIGHUP)
    welcome = await cat.until("system/welcome")
    assert {"kind": "mcp/request"} in welcome["payload"]["you"]["capabilities"]
    await cat.say("mcp/request", {})
    await (await door.join("dan", token=new)).say("chat", {"text": "new here"})
    kinds = [said["kind"] for said in await ann.since_now()]
    assert "system/welcome" not in kinds  # hers did not change


async def test_a_reload_that_removes_somebody_closes_their_connections(
    reload_door: Door, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    door, gateway = reload_door, reload_door.gateway
    ann, cat = await door.meet("ann", "cat")
    gateway.rewrite(demo({who: said for who, said in participants.items() if who != "cat"}))
    gateway.signal(signal.SIGHUP)
    assert (await cat.closed())[0] == 4501
    await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    answer = await door.upgrade("/ws?space=demo", authorization=f"Bearer {tokens['cat']}")
    assert answer.status == 401


async def test_a_reload_opens_new_spaces_and_closes_those_that_are_gone(
    reload_door: Door, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    door, gateway = reload_door, reload_door.gateway

    def spaces(*names: str) -> dict[str, Any]:
        return {"spaces": [{"id": name} for name in names], "participants": participants}

    await reload(gateway, spaces("old", "kept"))
    ann = await door.join("ann", space="kept")
    gone = await door.join("ann", space="old")
    gateway.rewrite(spaces("kept", "new"))
    gateway.signal(signal.SIGHUP)
    assert (await gone.closed())[0] == 4504
    await ann.say("chat", {"text": "still here"})
    await (await door.join("cat", space="new")).say("chat", {"text": "first"})
    answer = await door.upgrade("/ws?space=old", authorization=f"Bearer {tokens['ann']}")
    assert answer.status == 404


async def test_a_reload_of_an_invalid_file_changes_nothing_and_says_why(reload_door: Door) -> None:
    door, gateway = reload_door, reload_door.gateway
    cat = await door.join("cat")
    wrong = "space: {id: demo}\nparticipants:\n  cat: {capabilites: [chat]}\n"
    said = await reload(gateway, wrong, "not reloaded")
    assert "space.yaml:3" in said
    assert "capabilites" in said
    assert "capabilities" in said
    await cat.say("chat", {"text": "as before"})
    await (await door.join("bob")).say("mcp/request", {})


async def test_a_reload_while_a_file_is_missing_changes_nothing(reload_door: Door) -> None:
    door, gateway = reload_door, reload_door.gateway
    cat = await door.join("cat")
    gateway.config.unlink()
    gateway.signal(signal.SIGHUP)
    await asyncio.to_thread(gateway.wait_for, "not reloaded.*no such file")
    await cat.say("chat", {"text": "as before"})


# Tokens.


async def test_tokens_not_written_are_made_once_and_kept_for_the_owner_alone(tmp_path: Path) -> None:
    config = {"space": {"id": "demo"}, "participants": {"ann": {"capabilities": ["chat"]}, "bob": {}}}
    kept = tmp_path / ".mew" / "tokens"
    with run_gateway(tmp_path, config) as gateway:
        made = {path.stem: path.read_text().strip() for path in kept.glob("*.token")}
        secrets_used.update(made.values())
        assert made.keys() == {"ann", "bob"}
        for path in kept.glob("*.token"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700
        async with Door(gateway, made, "demo") as door:
            await door.join("ann")
    with run_gateway(tmp_path, config) as gateway:
        async with Door(gateway, made, "demo") as door:
            assert (await door.join("ann")).welcome["to"] == ["ann"]


async def test_tokens_of_file_folder_and_environment_are_all_valid(tmp_path: Path) -> None:  # item 6, item 9
    tokens = {source: secret(source) for source in ("written", "kept", "environment")}
    folder = tmp_path / ".mew" / "tokens"
    folder.mkdir(parents=True)
    (folder / "my.agent-1.token").write_text(tokens["kept"] + "\n")
    config = {"space": {"id": "demo"}, "participants": {"my.agent-1": {"tokens": [tokens["written"]]}}}
    environ = {"MEW_TOKEN_MY_AGENT_1": tokens["environment"]}
    with run_gateway(tmp_path, config, environ=environ) as gateway:
        async with Door(gateway, {}, "demo") as door:
            for token in tokens.values():
                assert (await door.join("my.agent-1", token=token)).welcome["to"] == ["my.agent-1"]
        assert stat.S_IMODE((folder / "my.agent-1.token").stat().st_mode) == 0o600


# A file with one space, and with what the TypeScript implementation writes.


@pytest.fixture(scope="module")
def single(
    tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object], tokens: dict[str, str]
) -> Iterator[Gateway]:
    theirs = {
        "tokens": [tokens["bot"]],
        "capabilities": [{"kind": "system/*"}, {"kind": "chat"}],
        "type": "local",
        "command": "node",
        "args": ["a.js"],
        "env": {"A": "b"},
        "auto_start": True,
        "output_log": "x.log",
    }
    with run_gateway(tmp_path_factory.mktemp("single"), demo({**participants, "bot": theirs})) as running:
        yield running


@pytest.fixture
async def single_door(single: Gateway, tokens: dict[str, str]) -> AsyncIterator[Door]:
    async with Door(single, tokens, "demo") as door:
        yield door


async def test_the_space_may_be_left_out_where_there_is_only_one(single_door: Door) -> None:  # design 3.3
    url, tokens = single_door.gateway.ws_url, single_door.tokens
    for path in ("/ws", "/"):
        headers = {"Authorization": f"Bearer {tokens['ann']}"}
        connection = await single_door.open(url + path, additional_headers=headers)
        assert (await Client("ann", connection).next())["to"] == ["ann"]
    by_frame = await single_door.join_by_frame({"type": "join", "token": tokens["cat"]})
    assert (await by_frame.next())["to"] == ["cat"]


async def test_system_kinds_in_a_configured_capability_are_tolerated_and_without_effect(
    single_door: Door,
) -> None:  # item 9
    bot = await single_door.join("bot")
    held = [one["kind"] for one in bot.welcome["payload"]["you"]["capabilities"]]
    assert "system/*" not in held
    assert (await bot.refused("system/presence", {}))["error"] == "reserved_kind"
    single_door.gateway.wait_for("'system/\\*' has no effect")


async def test_a_line_of_the_log_cannot_be_forged(single_door: Door) -> None:
    cat = await single_door.join("cat")
    await cat.refused("x\n12:00:00 info    connected  who=ann", {})
    single_door.gateway.wait_for("refused.*who=cat")
    assert not [
        line for line in single_door.gateway.log.splitlines() if line.startswith("12:00:00 info    conn")
    ]


def test_failed_attempts_are_slowed_down_and_others_are_not(single: Gateway, tokens: dict[str, str]) -> None:
    def attempt(token: str, address: str) -> float:  # item 7
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", single.port), 10, source_address=(address, 0)) as one:
            one.sendall(
                f"GET /participants/ann/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                f"Authorization: Bearer {token}\r\n\r\n".encode()
            )
            status = int(one.recv(1000).split()[1])
        assert status == (401 if token != tokens["ann"] else 200)
        return time.monotonic() - began

    waited = [attempt(secret("guess"), "127.2.0.1") for _ in range(7)]
    assert sum(waited[:5]) < 0.25 * 5
    assert waited[5] >= 0.24
    assert waited[6] >= 0.49
    slow = threading.Thread(target=attempt, args=(secret("guess"), "127.2.0.1"))
    slow.start()
    assert attempt(tokens["ann"], "127.2.0.2") < 0.9
    slow.join(5)


# Logs and traces.


async def talk_of_everything(door: Door) -> None:
    """Good and bad, so that much is logged; what leaks is found when the gateway ends."""
    ann, cat = await door.meet("ann", "cat")
    wrong, path = secret("wrong"), f"/ws?space={door.space}"
    await door.upgrade(path, authorization=f"Bearer {wrong}")
    await door.upgrade(path, authorization=wrong)
    await door.upgrade(path, authorization=f"Bearer {wrong} {wrong}")
    await door.upgrade(path, sec_websocket_protocol=f"mew.v0.4, mew.bearer.{wrong}")
    await door.upgrade(path, sec_websocket_protocol=wrong)
    await door.upgrade(f"{path}&token={wrong}")
    await door.upgrade(f"{path}&after={wrong}", authorization=f"Bearer {wrong}")
    await door.upgrade(path, origin=f"https://{wrong}.example", authorization=f"Bearer {door.tokens['ann']}")
    await door.upgrade(f"/ws?space={wrong}", authorization=f"Bearer {door.tokens['ann']}")
    await door.upgrade(path, authorization=f"Bearer {door.tokens['ann']}", sec_websocket_version="1")
    for headers in (
        b"Authorization: Bearer %s\x01\x02",
        b"Authorization : Bearer %s",
        b"Authorization: Bearer\xff %s\x00",
    ):
        await asyncio.to_thread(broken_request, door.gateway, headers % door.tokens["ann"].encode())
    await (await door.join_by_frame({"type": "join", "space": door.space, "token": wrong})).closed()
    await (await door.join_by_frame({"type": "join", "tokn": wrong})).closed()
    await cat.refused("mcp/request", {"secret": wrong})
    await cat.refused("chat", {"text": wrong}, sender="ann")
    await ann.say("chat", {"text": wrong})
    await ann.say("space/invite", {"participant_id": "dan", "reason": wrong})
    secrets_used.add((await ann.until("space/invite-ack"))["payload"]["token"])
    answer = await door.post("ann", {"kind": "chat", "payload": {"text": wrong}})
    assert answer.status == 200


def broken_request(gateway: Gateway, header: bytes) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as connection:
        connection.sendall(b"GET /ws?space=demo HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
        assert connection.recv(1000).startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))


@pytest.mark.parametrize("args", [("--log-level", "debug"), ("--log-format", "json", "--log-level", "debug")])
async def test_no_token_and_no_payload_is_ever_in_the_log(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str], args: tuple[str, ...]
) -> None:
    """`run_gateway` looks for every token of this run in what was logged."""
    with run_gateway(tmp_path, demo(participants), *args) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            await talk_of_everything(door)
    assert "who=cat" in gateway.log or '"who": "cat"' in gateway.log
    if "json" in args:
        lines = [line for line in gateway.log.splitlines() if not line.startswith("mew gateway listens")]
        assert all("message" in json.loads(line) for line in lines)


async def test_the_trace_has_what_was_received_refused_and_delivered_and_no_secret(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    with run_gateway(tmp_path, demo(participants), "--trace", str(trace)) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            await talk_of_everything(door)
            ann = await door.join("ann")
            said = await ann.say("chat", {"text": "in the trace"})
            cat = await door.join("cat")
            refused = await cat.send(
                "mcp/request", {"method": "tools/call", "params": {"name": "write_file"}}
            )
            await cat.error(refused)
            malformed = await cat.send("chat", "no object")
            await cat.error(malformed)
    written = trace.read_text()
    lines = [json.loads(line) for line in written.splitlines()]
    events = {(line["event"], line["id"]): line for line in lines}
    assert events["received", said]["sender"] == "ann"
    assert {"ann", "cat"} <= set(events["delivered", said]["delivered_to"])
    assert events["refused", refused]["error"] == "capability_violation"
    assert events["refused", refused]["lacked"] == "mcp/request:tools/call:write_file"
    assert events["refused", malformed]["error"] == "malformed"
    assert {line["space"] for line in lines} == {"demo"}
    assert not [token for token in secrets_used if token in written]
    assert "in the trace" not in written


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
async def test_a_trace_that_cannot_be_written_ends_and_the_space_goes_on(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    with run_gateway(tmp_path, demo(participants), "--trace", "/dev/full") as gateway:
        async with Door(gateway, tokens, "demo") as door:
            ann, cat = await door.meet("ann", "cat")
            for client in (ann, cat, ann):
                await client.say("chat", {"text": "all the same"})
    assert gateway.log.count("trace ended") == 1
