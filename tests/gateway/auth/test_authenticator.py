"""Whose token it is, and how failed attempts are slowed down."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.auth.authenticator import Identity, StaticTokens, Throttle, TokenSource
from mew.gateway.auth.tokens import TokenTable, hash_token
from mew.protocol.envelope import ParticipantId

ANN = Identity(ParticipantId("ann"), None, TokenSource.CONFIGURED)


def static(token: str, participant: str, space: str = "s") -> StaticTokens:
    return StaticTokens({space: TokenTable({hash_token(token): ParticipantId(participant)})})


def test_a_configured_token_says_who_one_is_in_its_space_only() -> None:
    tokens = static("t", "ann")
    assert tokens.identify(hash_token("t"), "s") == ANN
    assert tokens.identify(hash_token("T"), "s") is None
    assert tokens.identify(hash_token("t"), "other") is None


def delays(throttle: Throttle, address: str, attempts: int) -> list[float]:
    return [throttle.failed(address, float(second)) for second in range(attempts)]


def test_five_failures_are_free_and_then_the_wait_doubles_up_to_eight_seconds() -> None:
    assert delays(Throttle(), "192.0.2.1", 12) == [0, 0, 0, 0, 0, 0.25, 0.5, 1, 2, 4, 8, 8]


def test_failures_are_forgotten_after_a_minute_without_one() -> None:
    throttle = Throttle()
    delays(throttle, "192.0.2.1", 8)  # the last at 7 s
    assert throttle.failed("192.0.2.1", 66.9) == 2
    assert throttle.failed("192.0.2.1", 126.9) == 0


def test_delayed_answers_are_bounded_for_each_address_and_for_all() -> None:
    throttle = Throttle()
    with ExitStack() as waiting:
        for _ in range(Throttle.WAITING_MAX):
            assert not throttle.is_full("192.0.2.1")
            waiting.enter_context(throttle.waiting("192.0.2.1"))
        assert throttle.is_full("::ffff:192.0.2.1")
        assert not throttle.is_full("192.0.2.2")
        for number in range(Throttle.WAITING_MAX_ALL - Throttle.WAITING_MAX):
            waiting.enter_context(throttle.waiting(f"10.0.{number >> 8}.{number & 255}"))
        assert throttle.is_full("192.0.2.2")
    assert not throttle.is_full("192.0.2.1")


def test_other_addresses_do_not_wait() -> None:
    throttle = Throttle()
    delays(throttle, "192.0.2.1", 8)
    assert throttle.failed("192.0.2.2", 8.0) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::2%eth0"),
    ],
    ids=["one /64", "IPv4 in IPv6", "with a zone"],
)
def test_addresses_of_one_host_count_together(one: str, other: str) -> None:
    throttle = Throttle()
    delays(throttle, one, 8)
    assert throttle.failed(other, 8.0) == 2
    assert throttle.failed("2001:db8:0:2::1", 8.0) == 0


def test_the_memory_of_a_throttle_is_bounded_and_loses_the_oldest_first() -> None:
    throttle = Throttle()
    delays(throttle, "192.0.2.1", 8)
    delays(throttle, "192.0.2.2", 8)
    throttle.failed("192.0.2.1", 8.0)  # now the second is the oldest
    for number in range(Throttle.ADDRESSES_MAX - 1):
        throttle.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 9.0)
    assert throttle.failed("192.0.2.1", 9.0) == 4
    assert throttle.failed("192.0.2.2", 9.0) == 0


@given(st.lists(st.tuples(st.text(max_size=20), st.floats(0, 1e9)), max_size=30))
def test_no_address_and_no_clock_upset_a_throttle(attempts: list[tuple[str, float]]) -> None:
    throttle = Throttle()
    for address, now in attempts:
        assert 0 <= throttle.failed(address, now) <= Throttle.MOST_S
