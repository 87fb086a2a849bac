"""Nothing that is not committed reaches anyone: not while a commit is under way, and not after one that failed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from tests.gateway.room.rooms import (
    SPACES,
    Clock,
    HeldStorage,
    Visitor,
    chat,
    envelope,
    kick,
    node_with,
    passes,
)
from tests.gateway.served import Served

from mew.gateway.config.loader import load_config
from mew.gateway.node import Node
from mew.gateway.room.ports import AcceptedPost
from mew.gateway.room.room import Room
from mew.gateway.server import Gateway
from mew.journal.port import JournalUnavailable
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import Decision, Entry, Joined, Left, Space

ANN = ParticipantId("ann")


# Before a commit.


async def test_nothing_is_delivered_answered_or_closed_before_the_commit(
    storage: HeldStorage, desk: Room
) -> None:
    ann, cat = await Visitor(desk, "ann").enter(), await Visitor(desk, "cat").enter()
    ann.log.clear()
    cat.log.clear()
    storage.is_held = True
    newcomer = Visitor(desk, "bob")
    waiting = [
        asyncio.ensure_future(newcomer.enter()),
        asyncio.ensure_future(desk.post(ANN, chat("ann", "e3"))),
        asyncio.ensure_future(desk.post(ANN, b"nonsense")),
        asyncio.ensure_future(desk.news()),
    ]
    ann.send(chat("ann", "e1"), chat("bob", "not hers"), kick("ann", "e2", "cat"))
    await passes()
    assert storage.is_committing
    assert storage.batches() == [("e1",), ("e2",), ("e3",)], "it is decided"
    await passes()
    assert (ann.log, cat.log, newcomer.log) == ([], [], [])
    assert not any(future.done() for future in waiting)
    storage.release()
    await passes()
    assert all(future.done() for future in waiting)
    assert isinstance(waiting[1].result(), AcceptedPost)
    assert ann.seen == ["e1", "e2", "e3"]
    assert [error["error"] for error in ann.errors] == ["wrong_sender", "malformed"], "the second was posted"
    assert cat.seen == ["e1", "e2"]
    assert cat.log[-1] == ("closed", CloseCode.KICKED)
    assert newcomer.log[0]["kind"] == "system/welcome"
    assert newcomer.seen == ["e3"]


async def test_an_invitation_is_mailed_after_the_commit(
    storage: HeldStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailed: list[str] = []
    smtp = "smtp: {host: mail.example, port: 25, from: mew@mew.example, security: none}\n"

    def note(node: Node, to: str, space: str, ack: Envelope) -> None:
        mailed.append(to)

    monkeypatch.setattr(Node, "invite_by_mail", note)
    async with node_with(storage, tmp_path, smtp) as node:
        ann = await Visitor(node.rooms["desk"], "ann").enter()
        storage.is_held = True
        ann.send(
            envelope("ann", "i1", "space/invite", {"participant_id": "dan", "email": "dan@there.example"})
        )
        await passes()
        assert (storage.is_committing, mailed) == (True, [])
        storage.finish()
        assert mailed == ["dan@there.example"]
        assert ann.log[-1]["payload"]["email"] == "sending"


async def test_two_rooms_share_one_commit(storage: HeldStorage, desk: Room, hall: Room) -> None:
    here, there = await Visitor(desk, "ann").enter(), await Visitor(hall, "ann").enter()
    before = storage.commits
    storage.is_held = True
    here.send(chat("ann", "e1"))
    there.send(chat("ann", "e2"))
    await passes()
    assert storage.commits == before + 1
    assert (storage.batches("desk"), storage.batches("hall")) == ([("e1",)], [("e2",)])
    storage.finish()
    assert (here.seen, there.seen) == (["e1"], ["e2"])


async def test_what_comes_during_a_commit_is_taken_after_it_in_order(
    storage: HeldStorage, desk: Room
) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    storage.is_held = True
    ann.send(chat("ann", "e1"))
    await passes()
    bob.send(chat("bob", "e2"))
    ann.send(chat("ann", "e3"))
    cat = Visitor(desk, "cat")
    entering = asyncio.ensure_future(cat.enter())
    posting = asyncio.ensure_future(desk.post(ANN, chat("ann", "e4")))
    await passes()
    bob.send(chat("bob", "e5"))
    assert storage.batches() == [("e1",)]
    storage.release()
    await entering
    await posting
    assert storage.batches() == [("e1",), ("e2", "e3"), ("e4",), ("e5",)]
    assert ann.seen == bob.seen == ["e1", "e2", "e3", "e4", "e5"]
    assert cat.seen == ["e4", "e5"]


async def test_a_connection_that_says_more_than_once_during_a_commit_is_paused_until_it_is_over(
    storage: HeldStorage, desk: Room
) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    old = await Visitor(desk, "cat", lenient=True).enter()
    storage.is_held = True
    ann.send(chat("ann", "e1"))
    await passes()
    assert not ann.is_paused
    ann.send(chat("ann", "e2"))
    bob.send(chat("bob", "e3"))
    old.send(chat("cat", "e4"))
    desk.receive_binary(ann, b"#none#frame")
    assert (ann.is_paused, bob.is_paused, old.is_paused) == (True, True, True)
    storage.finish()
    await passes()
    assert storage.is_committing, "of what came meanwhile"
    storage.release()
    assert (ann.is_paused, bob.is_paused, old.is_paused) == (False, False, False)
    assert ann.seen == ["e1", "e2", "e3", "e4"]


async def test_no_snapshot_is_made_of_what_is_not_committed(
    storage: HeldStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.gateway.history.recovery._ENTRIES", 0)  # one is due with every entry
    async with node_with(storage, tmp_path) as node:
        desk = node.rooms["desk"]
        ann = await Visitor(desk, "ann").enter()
        storage.snapshots.clear()
        storage.is_held = True
        ann.send(chat("ann", "e1"))
        await passes()
        desk.forget()
        assert storage.snapshots == []
        storage.finish()
        assert storage.snapshots == [len(storage.log)]


# A commit that fails.

FAILED = JournalUnavailable("the disk is full", summary="no room")


async def test_a_commit_that_fails_closes_exactly_the_rooms_of_that_pass(
    storage: HeldStorage, node: Node, desk: Room, hall: Room
) -> None:
    here, there = await Visitor(desk, "ann").enter(), await Visitor(hall, "ann").enter()
    here.log.clear()
    storage.is_held = True
    newcomer = Visitor(desk, "bob")
    in_that_pass = [
        newcomer.enter(),
        desk.post(ANN, chat("ann", "e2")),
        desk.post(ANN, b"nonsense"),
        desk.news(),
    ]
    waiting = [asyncio.ensure_future(one) for one in in_that_pass]
    here.send(chat("ann", "e1"))
    await passes()
    assert storage.is_committing
    late = Visitor(desk, "cat")
    after_it = [late.enter(), desk.post(ANN, chat("ann", "e3"))]
    waiting += [asyncio.ensure_future(one) for one in after_it]
    there.send(chat("ann", "e4"))
    await passes()
    storage.finish(FAILED)
    storage.release()
    await passes()
    assert here.log == [("closed", CloseCode.UNAVAILABLE)], "and nothing before that"
    assert (newcomer.log, late.log) == ([("closed", CloseCode.UNAVAILABLE)],) * 2
    news = waiting.pop(3)
    assert news.result() is None, "whoever waits for news need not wait longer"
    for one in waiting:
        assert isinstance(one.exception(), JournalUnavailable)
    assert node.failed == {"desk": FAILED.summary}
    assert (desk.is_closed, hall.is_closed) == (True, False)
    assert there.seen == ["e4"]
    with pytest.raises(JournalUnavailable):
        await desk.post(ANN, chat("ann", "e5"))
    with pytest.raises(JournalUnavailable):
        await Visitor(desk, "ann").enter()
    here.send(chat("ann", "e6"))  # on its way when it was closed
    await passes()
    assert "e6" not in str(storage.batches())


async def test_a_storage_with_a_bug_closes_the_rooms_too(
    storage: HeldStorage, node: Node, desk: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await Visitor(desk, "ann").enter()

    def broken(*args: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "commit", broken)
        with pytest.raises(JournalUnavailable):
            await desk.post(ANN, chat("ann", "e1"))
    assert node.failed == {"desk": "an internal error; see the log"}
    assert (ann.seen, ann.closed) == ([], CloseCode.UNAVAILABLE)


class Brittle(Space):
    """A space with a bug that one envelope brings to light, after others."""

    __slots__ = ()

    def apply(self, entry: Entry) -> list[Decision]:
        decisions = super().apply(entry)
        if "boom" in str(entry.event):
            raise AssertionError("a bug")
        return decisions


async def test_a_bug_in_one_rooms_turn_closes_it_and_stops_no_other(
    storage: HeldStorage, node: Node, desk: Room, hall: Room
) -> None:
    here, there = await Visitor(desk, "ann").enter(), await Visitor(hall, "ann").enter()
    here.log.clear()
    desk.space = Brittle(desk.space.state)
    posting = asyncio.ensure_future(desk.post(ANN, chat("ann", "boom")))
    here.send(chat("ann", "e1"))
    there.send(chat("ann", "e2"))
    await passes()
    assert here.log == [("closed", CloseCode.UNAVAILABLE)]
    assert isinstance(posting.exception(), JournalUnavailable)
    assert node.failed == {"desk": "an internal error; see the log"}
    assert there.seen == ["e2"]
    there.send(chat("ann", "e3"))
    await passes()
    assert there.seen == ["e2", "e3"]


# Over HTTP and sockets.


@pytest.fixture
async def served(storage: HeldStorage, tmp_path: Path) -> AsyncIterator[Served]:
    """A gateway whose commits are ended by hand."""
    (tmp_path / "space.yaml").write_text(SPACES)
    async with AsyncExitStack() as stack:
        timeout = aiohttp.ClientTimeout(total=20)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        gateway = Gateway(load_config(tmp_path / "space.yaml", {}), {}, open_room=Room, journals=storage)
        await stack.enter_async_context(gateway)
        stack.callback(storage.release)
        yield Served(gateway, session, stack.aclose)


async def committing(storage: HeldStorage) -> None:
    async with asyncio.timeout(20):
        while not storage.is_committing:  # noqa: ASYNC110  # it is held there
            await asyncio.sleep(0)


async def test_who_asks_during_a_commit_is_answered_after_it(storage: HeldStorage, served: Served) -> None:
    storage.is_held = True
    path = "/participants/ann/messages"
    posting = asyncio.ensure_future(
        served.ann.ask("POST", path, params={"space": "desk"}, json={"kind": "chat"})
    )
    await committing(storage)
    asking = [
        asyncio.ensure_future(served.ann.get(where, **params))
        for where, params in (
            (path, {"space": "desk"}),
            ("/spaces/desk/envelopes", {}),
            ("/spaces/desk/participants", {}),
            ("/spaces/desk/proposals", {}),
        )
    ]
    assert (await served.nobody.get("/health")).status == 200
    assert not any(one.done() for one in (posting, *asking))
    storage.release()
    said = (await posting).json["id"]
    messages, envelopes, *others = await asyncio.gather(*asking)
    assert [one["id"] for one in messages.json["messages"]] == [said]
    assert [one["id"] for one in envelopes.json["envelopes"]] == [said]
    assert [answer.status for answer in others] == [200, 200]


async def test_who_asks_during_a_commit_that_fails_is_told_nothing_of_it_and_ready_names_the_space(
    storage: HeldStorage, served: Served
) -> None:
    storage.is_held = True
    path, query = "/participants/ann/messages", {"space": "desk"}
    posting = asyncio.ensure_future(served.ann.ask("POST", path, params=query, json={"kind": "chat"}))
    await committing(storage)
    asking = asyncio.ensure_future(served.ann.get(path, **query))
    assert (await served.nobody.get("/health")).status == 200
    storage.finish(FAILED)
    storage.release()
    for answer in (await posting, await asking, await served.ann.get(path, **query)):
        assert (answer.status, answer.json["error"]) == (503, "unavailable")
    ready = await served.nobody.get("/ready")
    assert (ready.status, ready.json["detail"]) == (503, f"spaces that have failed: desk ({FAILED.summary})")
    there = await served.ann.ask("POST", path, params={"space": "hall"}, json={"kind": "chat"})
    assert there.status == 200
    served.gateway.reload()
    assert (await served.nobody.get("/ready")).status == 200
    assert (await served.ann.ask("POST", path, params=query, json={"kind": "chat"})).status == 200


async def test_a_reload_during_a_commit_takes_effect_after_it(
    storage: HeldStorage, served: Served, tmp_path: Path
) -> None:
    storage.is_held = True
    query = {"space": "desk"}
    posting = asyncio.ensure_future(
        served.ann.ask("POST", "/participants/ann/messages", params=query, json={"kind": "chat"})
    )
    await committing(storage)
    (tmp_path / "space.yaml").write_text(SPACES.replace("{id: hall}", "{id: hall}, {id: attic}"))
    served.gateway.reload()
    assert served.gateway._node.rooms.keys() == {"desk", "hall"}
    storage.release()
    assert (await posting).status == 200
    there = await served.ann.ask(
        "POST", "/participants/ann/messages", params={"space": "attic"}, json={"kind": "chat"}
    )
    assert there.status == 200


async def test_connections_that_are_paused_over_a_commit_lose_nothing(
    storage: HeldStorage, served: Served
) -> None:
    url = f"{served.gateway.url}/ws?space=desk"
    async with (
        served.session.ws_connect(url, headers=served.ann.headers) as ann,
        served.session.ws_connect(url, headers=served.caller("bob").headers) as bob,
    ):
        storage.is_held = True
        for n in range(200):
            await ann.send_bytes(b"") if n == 150 else await ann.send_str(chat("ann", f"a{n}").decode())
            await bob.send_str(chat("bob", f"b{n}").decode())
            if storage.is_committing and n % 7 == 0:
                storage.finish()
        storage.release()
        seen: list[str] = []
        async with asyncio.timeout(20):
            while len(seen) < 399:
                said = await bob.receive_json()
                seen += [] if said["from"] == "system:gateway" else [said["id"]]
    assert [one for one in seen if one[0] == "a"] == [f"a{n}" for n in range(200) if n != 150]
    assert [one for one in seen if one[0] == "b"] == [f"b{n}" for n in range(200)]


# At the end.


async def test_when_a_node_ends_every_turn_is_settled_before_its_rooms_close(
    storage: HeldStorage, tmp_path: Path, clock: Clock
) -> None:
    async with node_with(storage, tmp_path, now=clock) as node:
        desk = node.rooms["desk"]
        ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
        storage.is_held = True
        ann.send(chat("ann", "e1"))
        await passes()
        bob.send(chat("bob", "e2"))
        posting = asyncio.ensure_future(desk.post(ANN, chat("ann", "e3")))
        await passes()
        node.begin_shutdown(CloseCode.SHUTDOWN, "going")
        ann.leave()
        bob.leave()
    assert desk.is_closed
    assert isinstance(await posting, AcceptedPost)
    assert storage.batches() == [("e1",), ("e2",), ("e3",)]
    assert [type(event) for event in storage.events()[-2:]] == [Left, Left]
    assert {event.connection for event in storage.events() if isinstance(event, Joined)} == {ann.id, bob.id}
    assert {event.connection for event in storage.events() if isinstance(event, Left)} == {ann.id, bob.id}


@pytest.mark.parametrize("grace_s", [5, 0.05])
async def test_who_is_connected_when_a_gateway_stops_has_left_when_it_has(
    storage: HeldStorage, tmp_path: Path, grace_s: float
) -> None:
    """Also those who do not answer its goodbye, and are cut off."""
    text = SPACES.replace("port: 0", f"port: 0, shutdown_grace_s: {grace_s}")
    (tmp_path / "space.yaml").write_text(text)
    gateway = Gateway(load_config(tmp_path / "space.yaml", {}), {}, open_room=Room, journals=storage)
    async with aiohttp.ClientSession() as session:
        async with gateway:
            served = Served(gateway, session, gateway.__aexit__)
            url = f"{gateway.url}/ws?space=desk"
            sockets = [await session.ws_connect(url, headers=served.ann.headers) for _ in range(3)]
            reading = [asyncio.ensure_future(_read_to_the_end(one)) for one in sockets if grace_s > 1]
        await asyncio.gather(*reading)
        for socket in sockets:
            await socket.close()
    joined = [event.connection for event in storage.events() if isinstance(event, Joined)]
    left = [event.connection for event in storage.events() if isinstance(event, Left)]
    assert len(joined) == 3
    assert sorted(left) == sorted(joined)


async def _read_to_the_end(socket: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in socket:
        pass
