"""JWTs as tokens: real keys, real signatures, a real server for the keys."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from mew.gateway.auth.authenticator import AuthUnavailable, Identity, TokenSource
from mew.gateway.auth.jwt import JwtVerifier
from mew.gateway.config.settings import JwtConfig
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

ISSUER = "https://id.example.org"
ALGORITHMS = ("RS256", "ES256", "EdDSA")


@cache
def private_key(algorithm: str, number: int) -> PrivateKey:
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return rsa.generate_private_key(65537, 2048)


def public_key(kid: str, algorithm: str = "ES256", number: int = 0, **extra: str) -> dict[str, Any]:
    return public(private_key(algorithm, number)) | {"kid": kid} | extra


def public(key: PrivateKey) -> dict[str, Any]:
    match key:
        case rsa.RSAPrivateKey():
            return jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case ec.EllipticCurvePrivateKey():
            return jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case _:
            return jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys})


def at(now: int, value: Any) -> Any:
    """A claim as it is written: a `timedelta` counts from now, not from when the tests were collected."""
    return now + int(value.total_seconds()) if isinstance(value, timedelta) else value


def signed(
    claims: Mapping[str, Any] = {}, *, algorithm: str = "ES256", number: int = 0, kid: str | None = "k"
) -> str:
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": "mew", "sub": "ann", "exp": now + 600, "iat": now}
    content = {name: at(now, value) for name, value in {**usual, **claims}.items() if value is not None}
    headers = {"kid": kid} if kid is not None else None
    return jwt.encode(content, private_key(algorithm, number), algorithm=algorithm, headers=headers)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def config(tmp_path: Path) -> JwtConfig:
    file = tmp_path / "jwks.json"
    file.write_text(key_set(public_key("k")))
    return JwtConfig(issuer=ISSUER, audience=("mew",), jwks=file)


ANN = Identity(ParticipantId("ann"), None, TokenSource.JWT)


async def identified(verifier: JwtVerifier, token: str, space: str) -> Identity | None:
    claims = await verifier.verify(token)
    return None if claims is None else verifier.identity(claims, space)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_token_signed_with_a_key_of_the_issuer_says_who_one_is(
    config: JwtConfig, algorithm: str
) -> None:
    assert isinstance(config.jwks, Path)
    config.jwks.write_text(key_set(public_key("k", algorithm)))
    assert await identified(JwtVerifier(config), signed(algorithm=algorithm), "s") == ANN


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example.org"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"exp": None},
        pytest.param({"exp": timedelta(minutes=-1)}, id="expired"),
        {"exp": "soon"},
        pytest.param({"nbf": timedelta(minutes=10)}, id="not yet"),
        {"sub": None},
        {"sub": 7},
        {"sub": "system"},
        {"sub": "gateway"},
        {"sub": "a:b"},
        {"sub": "../ann"},
    ],
    ids=str,
)
async def test_a_token_with_wrong_claims_is_refused(config: JwtConfig, claims: dict[str, Any]) -> None:
    assert await identified(JwtVerifier(config), signed(claims), "s") is None


async def test_clocks_may_differ_by_the_leeway(config: JwtConfig) -> None:
    now = int(time.time())
    verifier = JwtVerifier(config)
    assert await identified(verifier, signed({"exp": now - 15, "nbf": now + 15}), "s") == ANN
    assert await identified(JwtVerifier(replace(config, leeway_s=0)), signed({"exp": now - 15}), "s") is None


async def test_a_token_signed_with_another_key_is_refused(config: JwtConfig) -> None:
    assert await identified(JwtVerifier(config), signed(number=1), "s") is None


async def test_a_token_without_a_signature_is_refused(config: JwtConfig) -> None:
    claims = jwt.decode(signed(), options={"verify_signature": False})
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": "k"})
    assert await identified(JwtVerifier(config), unsigned, "s") is None


async def test_a_token_signed_with_a_public_key_as_secret_is_refused(config: JwtConfig) -> None:
    secret = "x" * 64
    forged = jwt.encode(
        {"iss": ISSUER, "aud": "mew", "sub": "ann", "exp": time.time() + 60}, secret, algorithm="HS256"
    )
    symmetric = {"kty": "oct", "kid": "k", "k": urlsafe_b64encode(secret.encode()).decode().rstrip("=")}
    assert isinstance(config.jwks, Path)
    config.jwks.write_text(json.dumps({"keys": [symmetric]}))
    assert await identified(JwtVerifier(config), forged, "s") is None


async def test_a_key_is_good_for_the_algorithm_it_names_only(config: JwtConfig) -> None:
    assert isinstance(config.jwks, Path)
    config.jwks.write_text(key_set(public_key("k", "RS256", alg="RS512")))
    assert await identified(JwtVerifier(config), signed(algorithm="RS256"), "s") is None


async def test_a_key_for_encryption_signs_nothing(config: JwtConfig) -> None:
    assert isinstance(config.jwks, Path)
    config.jwks.write_text(key_set(public_key("k", use="enc")))
    assert await identified(JwtVerifier(config), signed(), "s") is None


async def test_a_key_that_is_too_short_is_refused(config: JwtConfig) -> None:
    short = rsa.generate_private_key(65537, 1024)
    assert isinstance(config.jwks, Path)
    config.jwks.write_text(key_set({**public(short), "kid": "k"}))
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = jwt.encode(
            {"iss": ISSUER, "aud": "mew", "sub": "ann", "exp": time.time() + 60},
            short,
            algorithm="RS256",
            headers={"kid": "k"},
        )
    assert await identified(JwtVerifier(config), token, "s") is None


async def test_a_token_that_names_no_key_is_tried_with_all(config: JwtConfig) -> None:
    assert isinstance(config.jwks, Path)
    config.jwks.write_text(key_set(public_key("a", number=1), public_key("b", "RS256"), public_key("c")))
    assert await identified(JwtVerifier(config), signed(kid=None), "s") == ANN


@pytest.mark.parametrize(
    "token", ["", "t", "a.b.c", "..", "\ud800.\ud800.\ud800", "x" * 20_000, "e30.e30.e30"]
)
async def test_what_is_no_jwt_is_not_known_and_costs_no_keys(token: str) -> None:
    config = JwtConfig(issuer=ISSUER, audience=("mew",), jwks=Path("/nowhere"))
    assert await identified(JwtVerifier(config), token, "s") is None


async def test_a_token_larger_than_16_kib_is_refused(config: JwtConfig) -> None:
    assert await identified(JwtVerifier(config), signed({"fill": "x" * 16_384}), "s") is None


async def test_claims_become_participant_and_capabilities(config: JwtConfig) -> None:
    chat, read = Capability.parse("chat"), Capability.parse("mcp/request:tools/call:read_*")
    verifier = JwtVerifier(
        replace(
            config,
            participant_claim="email",
            capabilities_claim="mew",
            profile_claim="roles",
            profiles={"reader": (read,)},
        )
    )

    async def given(**claims: object) -> tuple[Capability, ...] | None:
        identity = await identified(verifier, signed({"email": "ann@b.org", **claims}), "s")
        assert identity is not None
        assert identity.participant == "ann@b.org"
        return identity.capabilities

    assert await given() is None
    assert await given(mew=["chat"]) == (chat,)
    assert await given(mew=[]) == ()
    assert await given(roles="reader") == (read,)
    assert await given(roles=["unrelated", "reader"], mew=[{"kind": "chat"}]) == (chat, read)


@pytest.mark.parametrize(
    "claims",
    [{"roles": "writer"}, {"roles": []}, {"mew": "chat"}, {"mew": [{"kind": "/(/"}]}, {"mew": [7]}],
    ids=str,
)
async def test_a_claim_that_makes_no_sense_refuses(config: JwtConfig, claims: dict[str, Any]) -> None:
    claiming = replace(config, capabilities_claim="mew", profile_claim="roles", profiles={"reader": ()})
    assert await identified(JwtVerifier(claiming), signed(claims), "s") is None


async def test_a_token_may_be_for_some_spaces_only(config: JwtConfig) -> None:
    verifier = JwtVerifier(replace(config, space_claim="spaces"))
    assert await identified(verifier, signed({"spaces": ["s", "t"]}), "s") == ANN
    assert await identified(verifier, signed({"spaces": "s"}), "s") == ANN
    assert await identified(verifier, signed({"spaces": ["t"]}), "s") is None
    assert await identified(verifier, signed(), "s") is None


async def test_neither_token_nor_claims_are_logged(
    config: JwtConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    token = signed({"sub": "s3cret name", "email": "ann@b.org"})
    assert await identified(JwtVerifier(config), token, "s") is None
    said = logged(caplog)
    assert (said["reason"], said["claim"]) == ("is no participant id", "sub")
    assert not any(part in str(said) for part in (token, "s3cret", "ann@b.org"))


@pytest.mark.parametrize(
    "written", [["/(s3cret/"], [{"kind": "chat", "s3cret": 1}], [{"kind": "/(s3cret/"}], [{"s3cret": 1}]]
)
async def test_of_a_capability_that_makes_no_sense_only_the_claim_is_logged(
    config: JwtConfig, caplog: pytest.LogCaptureFixture, written: list[object]
) -> None:
    caplog.set_level("DEBUG")
    claiming = replace(config, capabilities_claim="mew")
    assert await identified(JwtVerifier(claiming), signed({"mew": written}), "s") is None
    said = logged(caplog)
    assert (said["msg"], said["claim"]) == ("a JWT was refused", "mew")
    assert "s3cret" not in str(said)


def logged(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """The one thing that was said."""
    (record,) = (record for record in caplog.records if record.name == "mew.gateway.auth.jwt")
    return vars(record)


class Keys:
    """A server of keys that counts how often it is asked, and can fail."""

    def __init__(self) -> None:
        self.text = key_set(public_key("k"))
        self.status = 200
        self.asked = 0

    async def answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(text=self.text, status=self.status, content_type="application/json")


@pytest.fixture
async def keys() -> Keys:
    return Keys()


@pytest.fixture
async def clock() -> Clock:
    return Clock()


@pytest.fixture
async def verifier(keys: Keys, clock: Clock) -> AsyncIterator[JwtVerifier]:
    app = web.Application()
    app.router.add_get("/keys", keys.answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/keys"))
        yield JwtVerifier(JwtConfig(issuer=ISSUER, audience=("mew",), jwks=url), monotonic=clock)


async def test_keys_are_fetched_once_and_kept(verifier: JwtVerifier, keys: Keys) -> None:
    for _ in range(3):
        assert await identified(verifier, signed(), "s") == ANN
    assert keys.asked == 1


async def test_an_unknown_key_makes_it_fetch_again_at_most_every_30_seconds(
    verifier: JwtVerifier, keys: Keys, clock: Clock
) -> None:
    assert await identified(verifier, signed(), "s") == ANN
    rotated = signed(number=1, kid="new")
    keys.text = key_set(public_key("k"), public_key("new", number=1))
    clock.now = 29.0
    assert await identified(verifier, rotated, "s") is None
    assert keys.asked == 1
    clock.now = 31.0
    assert await identified(verifier, rotated, "s") == ANN
    assert await identified(verifier, signed(kid="other"), "s") is None
    assert keys.asked == 2


async def test_a_key_taken_out_is_good_for_ten_more_minutes_at_most(
    verifier: JwtVerifier, keys: Keys, clock: Clock
) -> None:
    assert await identified(verifier, signed(), "s") == ANN
    keys.text = key_set(public_key("new", number=1))
    clock.now = 599.0
    assert await identified(verifier, signed(), "s") == ANN
    clock.now = 600.0
    assert await identified(verifier, signed(), "s") is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keys": []}', '{"keys": [1]}', "[" * 100_000, "x" * (2 << 20)], ids=len
)
async def test_keys_from_before_stay_good_when_no_usable_ones_come(
    verifier: JwtVerifier, keys: Keys, clock: Clock, text: str
) -> None:
    assert await identified(verifier, signed(), "s") == ANN
    keys.text, clock.now = text, 700.0
    assert await identified(verifier, signed(), "s") == ANN
    assert keys.asked == 2


async def test_without_any_keys_nothing_is_known_and_soon_tried_again(
    verifier: JwtVerifier, keys: Keys, clock: Clock
) -> None:
    keys.status = 503
    for _ in range(2):
        with pytest.raises(AuthUnavailable):
            await identified(verifier, signed(), "s")
    assert keys.asked == 1
    keys.status, clock.now = 200, 2.0
    assert await identified(verifier, signed(), "s") == ANN


async def test_a_redirect_is_not_followed(verifier: JwtVerifier, keys: Keys) -> None:
    keys.status = 302
    with pytest.raises(AuthUnavailable):
        await identified(verifier, signed(), "s")


async def test_a_missing_file_of_keys_is_unavailable(tmp_path: Path) -> None:
    config = JwtConfig(issuer=ISSUER, audience=("mew",), jwks=tmp_path / "none.json")
    with pytest.raises(AuthUnavailable):
        await identified(JwtVerifier(config), signed(), "s")


async def test_nobody_behind_the_url_is_unavailable(unused_tcp_port: int) -> None:
    config = JwtConfig(issuer=ISSUER, audience=("mew",), jwks=f"http://127.0.0.1:{unused_tcp_port}/keys")
    with pytest.raises(AuthUnavailable):
        await identified(JwtVerifier(config), signed(), "s")
