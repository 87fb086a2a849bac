"""Tokens that are JWTs, with the issuer's keys in a file: claims say who one is and what one may (§5.1)."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from .client import Door
from .process import Gateway, run_gateway, secrets_used

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())


def at(now: int, value: Any) -> Any:
    """A claim as it is written: a `timedelta` counts from now, not from when the tests were collected."""
    return now + int(value.total_seconds()) if isinstance(value, timedelta) else value


def token(key: ec.EllipticCurvePrivateKey = KEY, **claims: Any) -> str:
    now = int(time.time())
    said = {"iss": "https://issuer.example", "aud": "mew", "exp": now + 60, "iat": now, **claims}
    made = jwt.encode(
        {name: at(now, value) for name, value in said.items() if value is not ...},
        key,
        algorithm="ES256",
        headers={"kid": "k1"},
    )
    secrets_used.add(made)
    return made


@pytest.fixture(scope="module")
def issuing(tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("jwt")
    public = json.loads(ECAlgorithm.to_jwk(KEY.public_key()))
    (folder / "jwks.json").write_text(
        json.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "ES256"}]})
    )
    issuer = {
        "issuer": "https://issuer.example",
        "audience": "mew",
        "jwks": "jwks.json",
        "capabilities_claim": "mew_capabilities",
        "profile_claim": "role",
        "profiles": {"reviewer": ["chat", "mcp/reject"]},
        "space_claim": "spaces",
        "leeway_s": 0,
    }
    config = {
        "spaces": [{"id": "demo"}, {"id": "other"}],
        "participants": participants,
        "defaults": {"capabilities": ["chat"]},
        "auth": {"jwt": issuer},
    }
    with run_gateway(folder, config) as running:
        yield running


@pytest.fixture
async def door(issuing: Gateway, tokens: dict[str, str]) -> AsyncIterator[Door]:
    async with Door(issuing, tokens, "demo") as opened:
        yield opened


def kinds(welcome: dict[str, Any]) -> set[str]:
    held = {capability["kind"] for capability in welcome["payload"]["you"]["capabilities"]}
    return held - {"mcp/response", "capability/grant-ack"}


async def test_the_claims_say_who_one_is_and_what_one_may(door: Door) -> None:
    made = token(sub="eve@example.org", spaces=["demo"], mew_capabilities=["chat", {"kind": "mcp/proposal"}])
    eve = await door.join("eve@example.org", token=made)
    assert kinds(eve.welcome) == {"chat", "mcp/proposal"}
    await eve.say("mcp/proposal", {"method": "tools/list"})
    assert (await eve.refused("mcp/request", {}))["error"] == "capability_violation"


async def test_a_claim_may_name_a_profile_of_the_configuration(door: Door) -> None:
    dora = await door.join("dora", token=token(sub="dora", spaces="demo", role=["reviewer", "unknown"]))
    assert kinds(dora.welcome) == {"chat", "mcp/reject"}


async def test_without_such_claims_the_defaults_of_the_space_hold(door: Door) -> None:
    fred = await door.join("fred", token=token(sub="fred", spaces=["demo"]))
    assert kinds(fred.welcome) == {"chat"}


async def test_a_configured_participant_may_come_with_a_jwt_too(door: Door) -> None:
    cat = await door.join("cat", token=token(sub="cat", spaces=["demo"]))
    assert kinds(cat.welcome) == {"chat"}
    bot = await door.join("bot", token=token(sub="bot", spaces=["demo"]))
    assert "mcp/proposal" in kinds(bot.welcome)


async def test_static_tokens_still_work_beside_it(door: Door) -> None:
    assert (await door.join("ann")).welcome["to"] == ["ann"]


async def test_a_jwt_opens_only_the_spaces_it_names(door: Door) -> None:
    made = token(sub="gus", spaces=["other"])
    answer = await door.upgrade("/ws?space=demo", authorization=f"Bearer {made}")
    assert answer.status == 401
    await door.join("gus", token=made, space="other")


async def test_a_jwt_comes_as_a_subprotocol_or_in_a_join_too(door: Door) -> None:
    made = token(sub="hal", spaces=["demo"])
    connection = await door.open(door.url(), subprotocols=["mew.v0.4", f"mew.bearer.{made}"])
    assert connection.subprotocol == "mew.v0.4"
    by_frame = await door.join_by_frame({"type": "join", "space": "demo", "token": made}, who="hal")
    assert (await by_frame.next())["to"] == ["hal"]


@pytest.mark.parametrize(
    ("key", "claims"),
    [
        pytest.param(OTHER, {}, id="another's signature"),
        pytest.param(KEY, {"exp": timedelta(seconds=-5)}, id="expired"),
        pytest.param(KEY, {"nbf": timedelta(minutes=10)}, id="not yet"),
        pytest.param(KEY, {"iss": "https://else.example"}, id="another issuer"),
        pytest.param(KEY, {"aud": "else"}, id="another audience"),
        pytest.param(KEY, {"sub": "gateway"}, id="a reserved name"),
        pytest.param(KEY, {"sub": ...}, id="nobody"),
        pytest.param(KEY, {"exp": ...}, id="for ever"),
        pytest.param(KEY, {"role": "unknown"}, id="no such profile"),
        pytest.param(KEY, {"mew_capabilities": ["/(/"]}, id="no capability"),
    ],
)
async def test_a_jwt_that_does_not_hold_is_401(
    door: Door, key: ec.EllipticCurvePrivateKey, claims: dict[str, Any]
) -> None:
    made = token(key, **{"sub": "ivy", "spaces": ["demo"], **claims})
    answer = await door.upgrade("/ws?space=demo", authorization=f"Bearer {made}")
    assert (answer.status, answer.json["error"]) == (401, "bad_token")


async def test_a_kick_outlives_the_next_jwt(door: Door) -> None:
    ann = await door.join("ann")
    jon = await door.join("jon", token=token(sub="jon", spaces=["demo"]))
    await ann.say("space/kick", {"participant_id": "jon"})
    assert (await jon.closed())[0] == 4503
    again = token(sub="jon", spaces=["demo"], jti="another")
    answer = await door.upgrade("/ws?space=demo", authorization=f"Bearer {again}")
    assert answer.status == 403
