"""The codes that clients rely on: they never change."""

import pytest

from mew.protocol.errors import CloseCode, InvalidCapability, ProtocolError, Refusal


def test_the_refusal_codes_are_these() -> None:
    assert sorted(Refusal) == [
        "already_exists",
        "capability_violation",
        "duplicate_id",
        "grant_exceeds_own",
        "invalid_capability",
        "invalid_payload",
        "limit_reached",
        "malformed",
        "not_a_member",
        "not_proposer",
        "not_stream_owner",
        "paused",
        "rate_limited",
        "reserved_id",
        "reserved_kind",
        "shut_down",
        "too_large",
        "unauthorized_stream_write",
        "unavailable",
        "unknown_grant",
        "unknown_participant",
        "unknown_stream",
        "wrong_sender",
        "wrong_version",
    ]


def test_the_close_codes_are_these() -> None:
    assert {code.name: code.value for code in CloseCode} == {
        "SHUTDOWN": 4001,
        "SLOW_READER": 4008,
        "JOIN_TIMEOUT": 4009,
        "UNAVAILABLE": 4010,
        "SPACE_FULL": 4011,
        "FLOODING": 4012,
        "BAD_TOKEN": 4501,
        "KICKED": 4503,
        "NO_SUCH_SPACE": 4504,
        "BAD_JOIN": 4505,
        "WRONG_VERSION": 4506,
    }


def test_a_close_code_says_whether_to_come_back() -> None:
    stay_away = {code.name for code in CloseCode if code >= 4500}
    assert stay_away == {"BAD_TOKEN", "KICKED", "NO_SUCH_SPACE", "BAD_JOIN", "WRONG_VERSION"}
    assert all(4000 <= code <= 4999 for code in CloseCode)


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (ProtocolError("no"), Refusal.MALFORMED),
        (ProtocolError("no", Refusal.TOO_LARGE), Refusal.TOO_LARGE),
        (InvalidCapability("no"), Refusal.INVALID_CAPABILITY),
    ],
)
def test_an_error_carries_the_code_to_answer_with(error: ProtocolError, refusal: Refusal) -> None:
    assert str(error) == "no"
    assert error.refusal is refusal
