"""Tokens that the page got for links: they die with the token behind them, and outlive a restart."""

import json
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from tests.gateway.auth.test_links import ANN, BOT, Clock, code_of, is_problem, redeem
from tests.gateway.served import SPACE_YAML, Caller, Serve, Served

from mew.gateway.auth.sessions import PageSession, PageSessions, SignInLink
from mew.gateway.auth.tokens import hash_token
from mew.protocol.envelope import ParticipantId


def link(clock: Clock, participant: ParticipantId = ANN, space: str = "demo") -> SignInLink:
    return SignInLink(space, participant, "hash-of-token", clock.now)


async def signed_in(served: Served, caller: Caller) -> Caller:
    """The page of who calls."""
    answer = await redeem(served, await code_of(caller))
    return served.caller(caller.who, answer.json["token"])


# What is kept.


async def test_a_session_is_found_by_its_token_in_its_space(tmp_path: Path) -> None:
    clock = Clock()
    sessions = PageSessions(None, clock)
    token, session = await sessions.open(link(clock))
    assert session == PageSession(
        hash_token(token), "hash-of-token", "demo", ANN, clock.now + timedelta(days=30)
    )
    assert sessions.find(hash_token(token), "demo") == session
    assert sessions.find(hash_token(token), "other") is None
    assert sessions.find(hash_token("another"), "demo") is None


async def test_a_session_ends_after_thirty_days(tmp_path: Path) -> None:
    clock = Clock()
    sessions = PageSessions(tmp_path / "sessions.json", clock)
    token, _ = await sessions.open(link(clock))
    clock.passes(timedelta(days=30))
    assert sessions.find(hash_token(token), "demo") is None
    await sessions.open(link(clock))
    assert token_count(tmp_path) == 1


def token_count(folder: Path) -> int:
    return len(json.loads((folder / "sessions.json").read_bytes())["sessions"])


async def test_the_file_has_hashes_only_and_is_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / ".mew" / "sessions.json"
    token, session = await PageSessions(file, Clock()).open(link(Clock()))
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(file.parent)) == [".gitignore", "sessions.json"]
    assert PageSessions(file, Clock()).find(session.digest, "demo") == session


async def test_a_session_that_was_ended_is_gone_from_the_file(tmp_path: Path) -> None:
    sessions = PageSessions(tmp_path / "sessions.json", Clock())
    _, session = await sessions.open(link(Clock()))
    assert await sessions.end(session.digest)
    assert not await sessions.end(session.digest)
    assert token_count(tmp_path) == 0


async def test_who_signs_in_often_ends_their_own_oldest_session_alone() -> None:
    clock = Clock()
    sessions = PageSessions(None, clock)
    _, other = await sessions.open(link(clock, BOT))
    opened = [(await sessions.open(link(clock)))[1] for _ in range(PageSessions.EACH_MAX + 1)]
    assert [s for s in opened if sessions.find(s.digest, "demo") is None] == opened[:1]
    assert sessions.find(other.digest, "demo") == other


async def test_there_are_so_many_sessions_and_no_more() -> None:
    clock = Clock()
    sessions = PageSessions(None, clock)
    everyone = [ParticipantId(f"p{number}") for number in range(PageSessions.ALL_MAX + 1)]
    opened = [(await sessions.open(link(clock, who)))[1] for who in everyone]
    assert [s for s in opened if sessions.find(s.digest, "demo") is None] == opened[:1]


@pytest.mark.parametrize(
    "written",
    [b"", b"{", b"[]", b'{"sessions": [{}]}', b'{"sessions": 1}', b"\xff", b"[" * 9999],
    ids=["nothing", "half", "a list", "no session", "a number", "no text", "deep"],
)
async def test_a_file_that_makes_no_sense_costs_the_sessions_in_it(tmp_path: Path, written: bytes) -> None:
    file = tmp_path / "sessions.json"
    file.write_bytes(written)
    sessions = PageSessions(file, Clock())
    await sessions.open(link(Clock()))
    assert token_count(tmp_path) == 1


async def test_a_folder_that_cannot_be_written_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in-the-way").write_text("a file where the folder should be")
    sessions = PageSessions(tmp_path / "in-the-way" / "sessions.json", Clock())
    token, session = await sessions.open(link(Clock()))
    assert sessions.find(session.digest, "demo") == session
    assert "not kept over a restart" in caplog.text
    assert token not in caplog.text


# Over HTTP.


async def test_a_session_outlives_a_restart(serve: Serve) -> None:
    before = await serve()
    page = await signed_in(before, before.bot)
    await before.stop()
    after = await serve()
    again = after.caller("bot", page.headers["Authorization"].removeprefix("Bearer "))
    await again.say(payload={"text": "still here"})


async def test_who_is_kicked_is_out_of_the_page(served: Served) -> None:
    page = await signed_in(served, served.bot)
    await served.ann.say("space/kick", payload={"participant_id": "bot"})
    assert is_problem(await page.get("/spaces/demo/participants"), 403, "kicked")


async def test_who_is_given_another_token_is_out_of_the_page(served: Served) -> None:
    page = await signed_in(served, served.bot)
    served.gateway._config.file.write_text(SPACE_YAML.replace("t-bot", "t-bot-new"))
    served.gateway.reload()
    assert is_problem(await page.get("/spaces/demo/participants"), 401, "bad_token")


async def test_a_token_that_becomes_anothers_takes_nobodys_page_along(served: Served) -> None:
    page = await signed_in(served, served.bot)
    swapped = SPACE_YAML.replace("t-bot", "t").replace("t-eve", "t-bot").replace("[t]", "[t-eve]")
    served.gateway._config.file.write_text(swapped)
    served.gateway.reload()
    assert is_problem(await page.get("/spaces/demo/participants"), 401, "bad_token")


async def test_who_was_invited_can_sign_in_on_the_page_until_they_are_kicked(served: Served) -> None:
    payload = {"participant_id": "zoe", "initial_capabilities": [{"kind": "chat"}]}
    invited = await served.ann.send({"kind": "space/invite", "payload": payload})
    zoe = served.caller("zoe", invited.json["reply"]["payload"]["token"])
    page = await signed_in(served, zoe)
    await page.say(payload={"text": "hello"})
    await served.ann.say("space/kick", payload={"participant_id": "zoe"})
    assert (await page.send({"kind": "chat"})).status in (401, 403)


async def test_signing_out_makes_the_token_worthless(served: Served) -> None:
    page = await signed_in(served, served.bot)
    answer = await page.ask("POST", "/sessions/end")
    assert (answer.status, answer.json) == (200, {"status": "ended"})
    assert is_problem(await page.get("/spaces"), 401, "bad_token")
    await served.bot.say()


async def test_only_a_session_can_be_ended_so(served: Served) -> None:
    assert is_problem(await served.ann.ask("POST", "/sessions/end"), 403, "not_a_session")
    assert is_problem(await served.nobody.ask("POST", "/sessions/end"), 401, "no_token")
    stranger = served.caller("ann", "wrong")
    assert is_problem(await stranger.ask("POST", "/sessions/end"), 401, "bad_token")
    await served.ann.say()
