"""Who may come in: token, space and origin of whoever knocks (§5.1, §5.2, design 3.3, 3.4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from mew.gateway.auth.authenticator import (
    AuthUnavailable,
    Claims,
    Identity,
    StaticTokens,
    Throttle,
    TokenSource,
)
from mew.gateway.auth.guard import AccessGuard, Denied, token_of
from mew.gateway.auth.sessions import PageSessions
from mew.gateway.auth.tokens import load_tokens
from mew.gateway.config.loader import load_config
from mew.gateway.config.settings import ServerConfig
from mew.gateway.node import Node
from mew.gateway.room.ports import AcceptedPost
from mew.journal.memory import MemoryStorage
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

FILE = """
spaces:
  - {id: demo, participants: {ann: {tokens: [ann-token], capabilities: ['*']}, bob: {tokens: [bob-token]}}}
  - {id: other, participants: {ann: {tokens: [other-token]}, bob: {tokens: [bob-token]}}}
defaults: {capabilities: [chat]}
"""


def knock(host: str = "127.0.0.1:8080", remote: str | None = None, **headers: str) -> web.Request:
    """A request; `x_forwarded_for=…` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = make_mocked_request("GET", "/ws", headers={"Host": host, **named})
    return request if remote is None else request.clone(remote=remote)


@pytest.fixture
async def guard(tmp_path: Path) -> AsyncIterator[AccessGuard]:
    (tmp_path / "space.yaml").write_text(FILE)
    config = load_config(tmp_path / "space.yaml", {})
    async with Node(config, "ws://127.0.0.1:8080", MemoryStorage()) as node:
        tokens = StaticTokens(load_tokens(config, {}).tables)
        sessions = PageSessions(None, node.now)
        yield AccessGuard(node.rooms, config.server, configured=tokens, sessions=sessions)


def server(guard: AccessGuard, **settings: object) -> AccessGuard:
    guard.server = replace(ServerConfig(), **settings)  # type: ignore[arg-type]  # the settings as named
    return guard


async def denied(guard: AccessGuard, token: str | None, space: str | None) -> tuple[int, str]:
    with pytest.raises(Denied) as caught:
        await guard.admit(knock(), token, space)
    return caught.value.status, caught.value.code


# Tokens.


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"Authorization": "Bearer t"}, "t"),
        ({"Authorization": "bearer   t  "}, "t"),
        ({"Authorization": "Basic t"}, None),
        ({"Authorization": "t"}, None),
        ({"Authorization": "Bearer"}, None),
        ({"Authorization": "Bearer "}, None),
        ({"Sec_WebSocket_Protocol": "mew.v0.4, mew.bearer.t"}, "t"),
        ({"Sec_WebSocket_Protocol": "mew.bearer.a.b.c,mew.v0.4"}, "a.b.c"),
        ({"Sec_WebSocket_Protocol": "mew.v0.4"}, None),
        ({"Authorization": "Bearer t", "Sec_WebSocket_Protocol": "mew.bearer.u"}, "t"),
        ({}, None),
    ],
)
def test_a_token_is_read_from_the_header_or_the_subprotocols(
    headers: dict[str, str], token: str | None
) -> None:
    assert token_of(knock(**headers)) == token


def test_a_token_is_never_read_from_the_url() -> None:
    assert token_of(make_mocked_request("GET", "/ws?token=t&access_token=t", headers={})) is None


async def test_the_holder_of_a_token_is_admitted_as_who_it_says(guard: AccessGuard) -> None:
    admission = await guard.admit(knock(), "ann-token", "demo")
    assert (admission.who, admission.room.id) == ("ann", "demo")


async def test_a_token_is_good_in_its_own_space_only(guard: AccessGuard) -> None:
    assert await denied(guard, "ann-token", "other") == (401, "bad_token")
    assert await denied(guard, "other-token", "demo") == (401, "bad_token")


async def test_no_token_an_unknown_space_and_none_among_several_are_told_apart(guard: AccessGuard) -> None:
    assert await denied(guard, None, "demo") == (401, "no_token")
    assert await denied(guard, "", "demo") == (401, "no_token")
    assert await denied(guard, "ann-token", "nowhere") == (404, "no_such_space")
    assert await denied(guard, "ann-token", None) == (400, "space_missing")


async def test_where_a_token_opens_something_is_found_without_naming_a_space(guard: AccessGuard) -> None:
    admissions = await guard.admit_anywhere(knock(), "bob-token")
    assert [(one.room.id, one.who) for one in admissions] == [("demo", "bob"), ("other", "bob")]
    with pytest.raises(Denied) as caught:
        await guard.admit_anywhere(knock(), "unknown")
    assert caught.value.status == 401


class Issuer:
    """Signs tokens of the form `WHO.signed`; counts how many it verified."""

    def __init__(self) -> None:
        self.verified: list[str] = []

    def is_candidate(self, token: str) -> bool:
        return "." in token

    async def verify(self, token: str) -> Claims | None:
        self.verified.append(token)
        who, _, signature = token.partition(".")
        return {"sub": who} if signature == "signed" else None

    def identity(self, claims: Claims, space: str) -> Identity | None:
        return Identity(ParticipantId(claims["sub"]), (Capability.parse("mcp/proposal"),), TokenSource.JWT)


async def test_who_the_authenticator_alone_knows_is_introduced_to_the_space(guard: AccessGuard) -> None:
    guard.authenticator = Issuer()
    admission = await guard.admit(knock(), "eve.signed", "demo")
    room, eve = admission.room, ParticipantId("eve")
    proposed = b'{"protocol": "mew/v0.4", "id": "e1", "from": "eve", "kind": "mcp/proposal"}'
    assert isinstance(await room.post(eve, proposed), AcceptedPost)
    assert "mcp/proposal" in [one.source["kind"] for one in room.space.held(eve)]


async def test_when_tokens_cannot_be_checked_now_one_may_try_again_later(guard: AccessGuard) -> None:
    class Unreachable(Issuer):
        async def verify(self, token: str) -> Claims | None:
            raise AuthUnavailable("out of reach")

    guard.authenticator = Unreachable()
    assert await denied(guard, "a.b.c", "demo") == (503, "auth_unavailable")
    assert (await guard.admit(knock(), "ann-token", "demo")).who == "ann"


async def test_after_several_failures_an_address_waits_and_another_does_not(guard: AccessGuard) -> None:
    loop = asyncio.get_running_loop()

    async def attempt(token: str, remote: str) -> float:
        began = loop.time()
        with suppress(Denied):
            await guard.admit(knock(remote=remote), token, "demo")
        return loop.time() - began

    for _ in range(5):
        assert await attempt("wrong", "192.0.2.1") < 0.2
    assert await attempt("wrong", "192.0.2.1") >= 0.25
    assert await attempt("ann-token", "192.0.2.2") < 0.2


async def attempt(guard: AccessGuard, token: str) -> str:
    """Who is admitted with this token, or the code of the refusal."""
    try:
        return (await guard.admit(knock(remote="192.0.2.1"), token, "demo")).who
    except Denied as denied:
        return denied.code


@asynccontextmanager
async def guessing(guard: AccessGuard, *guesses: str) -> AsyncIterator[list[str]]:
    """While each of these guesses waits for its answer; the codes of those that were answered at once."""
    attempts = [asyncio.ensure_future(attempt(guard, guess)) for guess in guesses]
    await asyncio.sleep(0)
    yield [one.result() for one in attempts if one.done()]
    for one in attempts:
        one.cancel()
    await asyncio.wait(attempts)


async def test_a_token_never_seen_before_gets_in_while_others_guess_from_its_address(
    guard: AccessGuard,
) -> None:
    async with guessing(guard, *(f"guess-{n}" for n in range(64))) as told:
        delayed = Throttle.WAITING_MAX
        assert told == ["bad_token"] * Throttle.FREE + ["too_many_attempts"] * (64 - Throttle.FREE - delayed)
        assert await attempt(guard, "ann-token") == "ann"
        assert await attempt(guard, "bob-token") == "bob"


async def test_wrong_signatures_are_checked_at_a_bounded_rate_and_lock_out_no_other_token(
    guard: AccessGuard,
) -> None:
    issuer = guard.authenticator = Issuer()
    assert await attempt(guard, "eve.signed") == "eve"
    async with guessing(guard, *(f"guess-{n}.forged" for n in range(500))):
        assert 100 <= len(issuer.verified) < 250
        assert await attempt(guard, "eve.signed") == "eve"
        assert await attempt(guard, "ann-token") == "ann"


async def test_a_signature_is_checked_once_for_all_spaces(guard: AccessGuard) -> None:
    issuer = guard.authenticator = Issuer()
    assert [one.room.id for one in await guard.admit_anywhere(knock(), "eve.signed")] == ["demo", "other"]
    with pytest.raises(Denied):
        await guard.admit_anywhere(knock(), "eve.forged")
    assert issuer.verified == ["eve.signed", "eve.forged"]


async def test_a_right_token_does_not_make_those_after_wrong_ones_cheap(guard: AccessGuard) -> None:
    for _ in range(5):
        assert await denied(guard, "wrong", "demo") == (401, "bad_token")
        await guard.admit(knock(), "ann-token", "demo")
    began = asyncio.get_running_loop().time()
    assert await denied(guard, "wrong", "demo") == (401, "bad_token")
    assert asyncio.get_running_loop().time() - began >= 0.2


# Origins.


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", None),
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("localhost:8080", "http://localhost:8080"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("127.0.0.1:8080", "https://page.example"),
        ("mew.example", "https://mew.example"),
        ("192.0.2.7:8080", "http://192.0.2.7:8080"),
    ],
)
def test_our_own_pages_and_allowed_ones_may_connect(
    guard: AccessGuard, host: str, origin: str | None
) -> None:
    server(guard, allowed_origins=("https://page.example",), public_url="https://mew.example")
    guard.check_origin(knock(host) if origin is None else knock(host, Origin=origin))


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", "null"),
        ("127.0.0.1:8080", ""),
        ("127.0.0.1:8080", "https://foe.example"),
        ("127.0.0.1:8080", "http://127.0.0.1:9090"),
        ("127.0.0.1:8080", "http://page.example"),
        ("127.0.0.1:8080", "https://page.example:444"),
        ("127.0.0.1:8080", "file://127.0.0.1:8080"),
        ("rebound.example:8080", "http://rebound.example:8080"),
        ("null", "null"),
        ("127.0.0.1:8080", "http://[bad"),
        ("127.0.0.1:8080", "http://127.0.0.1:notaport"),
    ],
)
def test_other_pages_may_not_connect(guard: AccessGuard, host: str, origin: str) -> None:
    server(guard, allowed_origins=("https://page.example",))
    with pytest.raises(Denied) as caught:
        guard.check_origin(knock(host, Origin=origin))
    assert (caught.value.status, caught.value.code) == (403, "origin_refused")


# Addresses.


@pytest.mark.parametrize(
    ("remote", "forwarded", "address"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.1", "192.0.2.1"),  # no proxy of ours: it may say what it likes
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"),  # the first is what the client claims
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", " , ", "10.0.0.1"),
    ],
)
def test_only_trusted_proxies_say_where_a_request_comes_from(
    guard: AccessGuard, remote: str, forwarded: str | None, address: str
) -> None:
    server(guard, trusted_proxies=(ip_network("10.0.0.0/8"),))
    headers = {} if forwarded is None else {"X_Forwarded_For": forwarded}
    assert guard.address(knock(remote=remote, **headers)) == address


async def test_a_jwt_cannot_bring_in_a_look_alike_of_somebody_who_is_there(guard: AccessGuard) -> None:
    guard.authenticator = Issuer()
    admission = await guard.admit(knock(), "eve.signed", "demo")
    await admission.room.post(admission.who, b"{}")  # by then, the space knows her
    with pytest.raises(Denied, match="'Eve' is easily taken for 'eve'") as caught:
        await guard.admit(knock(), "Eve.signed", "demo")
    assert (caught.value.status, caught.value.code) == (403, "similar_id")
