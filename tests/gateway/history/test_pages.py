"""Over HTTP and WebSocket: what is older than memory comes from the journal, and for whom it was."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.served import SPACE_YAML, Answer, Caller, Serve

from mew.gateway.history import archive
from mew.gateway.history import journal_query as excerpt
from mew.journal.files.database import FILE

Start = Callable[..., Awaitable[Any]]

LITTLE = "limits: {history_envelopes: 3}\n"


def ids(answer: Answer, name: str = "envelopes") -> list[str]:
    assert answer.status == 200, answer.json
    return [envelope["id"] for envelope in answer.json[name]]


async def pages(caller: Caller, **params: Any) -> tuple[list[str], bool]:
    """All pages, and whether every one of them says that nothing is gone."""
    found: list[str] = []
    complete = True
    where = "before" if params.get("order") == "desc" else "after"
    while True:
        answer = await caller.get("/spaces/demo/envelopes", **params)
        found += ids(answer)
        complete = complete and answer.json["complete"]
        if answer.json["next"] is None:
            return found, complete
        params[where] = answer.json["next"]


async def test_the_history_goes_back_to_the_beginning(serve: Serve) -> None:
    served = await serve(more=LITTLE)
    said = [await served.ann.say(payload={"text": f"{n}"}) for n in range(10)]
    assert await pages(served.bot, limit=2) == (said, True)
    assert await pages(served.bot, limit=4, order="desc") == (said[::-1], True)
    assert await pages(served.bot, after=said[1], before=said[8]) == (said[2:8], True)
    assert await pages(served.bot, participant="bot") == ([], True)
    ever = {"since": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59.999999-14:00"}
    assert await pages(served.bot, **ever) == (said, True)


async def test_without_a_journal_it_goes_back_as_far_as_memory(serve: Serve) -> None:
    served = await serve(more=LITTLE + "journal: off\n")
    said = [await served.ann.say() for _ in range(10)]
    assert await pages(served.bot, limit=2) == (said[-3:], False)


async def test_it_goes_on_where_it_was_after_a_restart(serve: Serve, tmp_path: Path) -> None:
    first = await serve(more=LITTLE)
    said = [await first.ann.say() for _ in range(10)]
    page = await first.bot.get("/spaces/demo/envelopes", limit=4)
    await first.stop()
    again = await serve(more=LITTLE)
    said.append(await again.ann.say())
    assert await pages(again.bot, after=page.json["next"]) == (said[4:], True)
    assert await pages(again.bot, order="desc", limit=3) == (said[::-1], True)


async def test_what_the_journal_lost_is_not_mixed_with_what_came_instead(
    serve: Serve, tmp_path: Path
) -> None:
    """An older copy of it was put back, but not of the index: other entries get the numbers of those that are lost."""
    private = SPACE_YAML.replace("id: demo,", "id: demo, delivery: addressed,")
    first = await serve(private, more=LITTLE)
    said = [await first.ann.say() for _ in range(4)]
    await first.stop()
    folder = tmp_path / ".mew" / "journal"
    copy = {file: file.read_bytes() for file in folder.glob(f"{FILE}*")}  # with what SQLite has beside it
    second = await serve(SPACE_YAML, more=LITTLE)
    for _ in range(6):
        await second.ann.say("mcp/request")
        await second.bot.send({"kind": "mcp/request"})
    await second.stop()
    for file in folder.glob(f"{FILE}*"):
        file.unlink()
    for file, content in copy.items():
        file.write_bytes(content)
    third = await serve(private, more=LITTLE)
    secrets = [await third.ann.say(to=["eve"]) for _ in range(8)]
    assert await pages(third.eve) == ([*said, *secrets], False)
    assert await pages(third.bot) == (said, False)


async def test_what_was_for_others_stays_so_also_when_the_rules_have_changed(serve: Serve) -> None:
    private = SPACE_YAML.replace("id: demo,", "id: demo, delivery: addressed,")
    first = await serve(private, more=LITTLE)
    secret = await first.ann.say(to=["eve"], payload={"text": "between us"})
    to_all = await first.ann.say()
    await first.stop()
    second = await serve(SPACE_YAML, more=LITTLE)
    later = [await second.ann.say(to=["eve"]) for _ in range(5)]
    assert await pages(second.eve) == ([secret, to_all, *later], True)
    assert await pages(second.bot) == ([to_all, *later], True)
    assert await pages(second.bot, after=secret) == ([to_all, *later], True)


async def test_who_reads_messages_can_go_on_from_where_it_was_long_ago(serve: Serve) -> None:
    served = await serve(more=LITTLE)
    said = [await served.ann.say() for _ in range(10)]
    missed = await served.bot.messages(after=said[2], limit=4)
    assert (ids(missed, "messages"), missed.json["complete"]) == (said[3:7], True)
    rest = await served.bot.messages(after=missed.json["next"])
    assert (ids(rest, "messages"), rest.json["complete"]) == (said[7:], True)
    last = await served.ann.say()
    for after in (rest.json["next"], said[-1]):
        assert ids(await served.bot.messages(after=after), "messages") == [last]
    begun = await served.bot.messages()
    assert (ids(begun, "messages"), begun.json["complete"]) == ([*said[-2:], last], False)


async def test_messages_that_are_searched_for_in_vain_say_where_to_go_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpt, "_ENVELOPES_MAX", 3)
    private = SPACE_YAML.replace("id: demo,", "id: demo, delivery: addressed,")
    served = await serve(private, more=LITTLE)
    first = await served.ann.say()
    for _ in range(10):
        await served.ann.say(to=["eve"])
    last = await served.ann.say()
    after, polls = first, 0
    while True:
        answer = await served.bot.messages(after=after, wait_s=5)
        assert answer.json["complete"]
        after, polls = answer.json["next"], polls + 1
        if answer.json["messages"]:
            break
    assert (ids(answer, "messages"), polls > 1) == ([last], True)


async def test_a_socket_resumes_where_a_page_ended_as_long_as_memory_has_it(serve: Serve) -> None:
    served = await serve(more="limits: {history_envelopes: 6}\n")
    said = [await served.ann.say() for _ in range(10)]
    page = await served.bot.get("/spaces/demo/envelopes", limit=4)
    for cursor, resumed in ((page.json["next"], True), (said[0], False), ("gw-at-99999.0", False)):
        url = f"{served.gateway.url}/ws?space=demo&after={cursor}"
        async with served.session.ws_connect(url, headers=served.bot.headers) as socket:
            welcome = await socket.receive_json(timeout=5)
            assert welcome["payload"]["resumed"] is resumed
            if resumed:
                assert [(await socket.receive_json(timeout=5))["id"] for _ in range(6)] == said[4:]


async def test_no_envelope_can_have_the_id_of_a_cursor(serve: Serve) -> None:
    served = await serve()
    answer = await served.ann.send({"kind": "chat", "id": "gw-at-12.0"})
    assert (answer.status, answer.json["error"]) == (403, "reserved_id")


async def test_an_envelope_that_is_not_found_in_time_is_not_taken_for_unknown(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(more=LITTLE)
    for _ in range(5):
        await served.ann.say()
    monkeypatch.setattr(excerpt, "_FIND_S", 0.0)
    answer = await served.bot.get("/spaces/demo/envelopes", after="nobody's")
    assert (answer.status, answer.json["error"]) == (503, "unavailable")


async def test_when_too_many_read_the_next_is_told_to_come_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_WAITING_MAX", 0)
    served = await serve(more=LITTLE)
    said = [await served.ann.say() for _ in range(5)]
    answer = await served.bot.get("/spaces/demo/envelopes")
    assert (answer.status, answer.json["error"], answer.headers["Retry-After"]) == (429, "rate_limited", "1")
    assert (await served.bot.get("/spaces/demo/envelopes", after=said[-1])).status == 200  # in memory
