"""Links that sign somebody in on the page: once, not for long, and for nobody else."""

import asyncio
from datetime import UTC, datetime, timedelta

from tests.gateway.served import Answer, Caller, Serve, Served

from mew.gateway.auth.authenticator import Claims, Identity, TokenSource
from mew.gateway.auth.sessions import SignInLinks
from mew.protocol.envelope import ParticipantId

ANN, BOT = ParticipantId("ann"), ParticipantId("bot")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, time: timedelta) -> None:
        self.now += time


async def code_of(caller: Caller, space: str = "demo") -> str:
    answer = await caller.ask("POST", f"/spaces/{space}/links")
    assert answer.status == 200, answer.json
    return str(answer.json["code"])


async def redeem(served: Served, code: object) -> Answer:
    return await served.nobody.ask("POST", "/sessions", json={"code": code})


def is_problem(answer: Answer, status: int, error: str) -> bool:
    assert (answer.status, answer.json["error"]) == (status, error), answer.json
    return True


# The codes.


def test_a_code_works_once() -> None:
    links = SignInLinks(Clock())
    code, link = links.make("demo", ANN, "hash")
    assert links.take(code) == link
    assert links.take(code) is None


def test_a_code_works_for_ten_minutes() -> None:
    clock = Clock()
    links = SignInLinks(clock)
    code, link = links.make("demo", ANN, "hash")
    assert link.expires == clock.now + timedelta(minutes=10)
    clock.passes(timedelta(minutes=10))
    assert links.take(code) is None


def test_a_code_works_for_as_long_as_was_asked_and_no_longer_than_a_day() -> None:
    clock = Clock()
    links = SignInLinks(clock)
    long, link = links.make("demo", ANN, "hash", timedelta(days=3))
    short, _ = links.make("demo", ANN, "hash", timedelta(minutes=1))
    assert link.expires == clock.now + timedelta(days=1)
    clock.passes(timedelta(hours=23))
    assert links.take(short) is None
    assert links.take(long) == link


def test_who_asks_for_many_codes_spoils_their_own_alone() -> None:
    links = SignInLinks(Clock())
    first, _ = links.make("demo", BOT, "hash")
    codes = [links.make("demo", ANN, "hash")[0] for _ in range(SignInLinks.EACH_MAX + 1)]
    assert links.take(codes[0]) is None
    assert all(links.take(code) is not None for code in codes[1:])
    assert links.take(first) is not None


def test_there_are_so_many_codes_and_no_more() -> None:
    links = SignInLinks(Clock())
    codes = [links.make("demo", ParticipantId(f"p{n}"), "hash")[0] for n in range(SignInLinks.ALL_MAX + 1)]
    assert links.take(codes[0]) is None
    assert all(links.take(code) is not None for code in codes[1:])


# Over HTTP.


async def test_a_link_is_exchanged_for_a_token_of_the_same_participant(served: Served) -> None:
    answer = await redeem(served, await code_of(served.bot))
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert (answer.json["space"], answer.json["participant"]) == ("demo", "bot")
    page = served.caller("bot", answer.json["token"])
    await page.say(payload={"text": "from the page"})
    assert (await page.get("/spaces")).json["spaces"][0]["participant"] == "bot"
    assert (await page.send({"kind": "mcp/request"})).json["error"] == "capability_violation"


async def test_a_link_says_how_long_it_is_good_which_one_may_ask_for(served: Served) -> None:
    answer = await served.ann.ask("POST", "/spaces/demo/links?lifetime_s=86400")
    left = datetime.fromisoformat(answer.json["expires"]) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(days=1)
    assert (await redeem(served, answer.json["code"])).status == 200
    for wrong in ("86401", "0", "soon"):
        refused = await served.ann.ask("POST", f"/spaces/demo/links?lifetime_s={wrong}")
        assert is_problem(refused, 400, "invalid_query")


async def test_who_invites_asks_for_a_link_with_the_token_of_the_invited(served: Served) -> None:
    sent = await served.ann.send({"kind": "space/invite", "payload": {"participant_id": "carol"}})
    carol = served.caller("carol", sent.json["reply"]["payload"]["token"])
    answer = await redeem(served, await code_of(carol))
    assert (answer.status, answer.json["participant"]) == (200, "carol")


async def test_a_link_works_once(served: Served) -> None:
    code = await code_of(served.ann)
    assert (await redeem(served, code)).status == 200
    assert is_problem(await redeem(served, code), 401, "bad_link")


async def test_a_session_opens_a_connection_as_browsers_open_it(served: Served) -> None:
    token = (await redeem(served, await code_of(served.ann))).json["token"]
    protocols = ("mew.v0.4", f"mew.bearer.{token}")
    url = served.gateway.url + "/ws?space=demo"
    async with served.session.ws_connect(url, protocols=protocols, origin=served.gateway.url) as socket:
        welcome = await socket.receive_json(timeout=5)
        assert (socket.protocol, welcome["payload"]["you"]["id"]) == ("mew.v0.4", "ann")


async def test_a_link_needs_a_token(served: Served) -> None:
    assert is_problem(await served.nobody.ask("POST", "/spaces/demo/links"), 401, "no_token")
    stranger = served.caller("ann", "wrong")
    assert is_problem(await stranger.ask("POST", "/spaces/demo/links"), 401, "bad_token")


async def test_a_session_cannot_ask_for_links_and_so_live_for_ever(served: Served) -> None:
    token = (await redeem(served, await code_of(served.ann))).json["token"]
    page = served.caller("ann", token)
    assert is_problem(await page.ask("POST", "/spaces/demo/links"), 403, "link_refused")


class Issuer:
    """Knows one token, as an issuer of JWTs would."""

    def is_candidate(self, token: str) -> bool:
        return token == "a.jw.t"

    async def verify(self, token: str) -> Claims | None:
        return {"sub": "joe"}

    def identity(self, claims: Claims, space: str) -> Identity | None:
        return Identity(ParticipantId(claims["sub"]), (), TokenSource.JWT)


async def test_a_jwt_ends_by_itself_and_nothing_stands_for_it(served: Served) -> None:
    served.gateway._guard.authenticator = Issuer()
    joe = served.caller("joe", "a.jw.t")
    assert (await joe.get("/spaces/demo/participants")).status == 200
    assert is_problem(await joe.ask("POST", "/spaces/demo/links"), 403, "link_refused")


async def test_a_link_is_no_way_in_for_a_page_of_another_origin(served: Served) -> None:
    code = await code_of(served.ann)
    foreign = {"Origin": "https://evil.example"}
    answer = await served.nobody.ask("POST", "/sessions", json={"code": code}, headers=foreign)
    assert is_problem(answer, 403, "origin_refused")
    assert (await redeem(served, code)).status == 200  # and it was not used up


async def test_who_was_kicked_in_between_has_a_link_to_nothing(served: Served) -> None:
    code = await code_of(served.bot)
    await served.ann.say("space/kick", payload={"participant_id": "bot"})
    assert is_problem(await redeem(served, code), 401, "bad_link")


async def test_what_is_no_code_is_said_to_be_none(served: Served) -> None:
    assert is_problem(await redeem(served, "guessed"), 401, "bad_link")
    for body in (b"", b"[]", b"{", b'{"code": 1}', b'{"code": ""}', b'{"code": "a", "code": "b"}'):
        answer = await served.nobody.ask("POST", "/sessions", data=body)
        assert answer.status == 400, body
    assert is_problem(await served.nobody.ask("POST", "/sessions", data=b" " * 2000), 413, "too_large")


async def test_who_guesses_codes_waits_like_who_guesses_tokens(served: Served) -> None:
    for _ in range(5):
        assert is_problem(await redeem(served, "guessed"), 401, "bad_link")
    throttle = served.gateway._guard._throttle
    assert throttle.failed("127.0.0.1", asyncio.get_running_loop().time()) > 0


async def test_a_code_is_for_its_space(serve: Serve) -> None:
    several = """
spaces:
  - {id: one, participants: {ann: {tokens: [t-ann]}}}
  - {id: two, participants: {ann: {tokens: [t-ann]}}}
server: {port: 0}
"""
    served = await serve(several)
    answer = await redeem(served, await code_of(served.ann, "two"))
    listed = (await served.caller("ann", answer.json["token"]).get("/spaces")).json["spaces"]
    assert [space["id"] for space in listed] == ["two"]
