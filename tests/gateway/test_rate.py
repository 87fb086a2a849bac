"""How fast somebody may send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.rate import Bucket, Buckets

rates = st.floats(0.01, 10_000)
bursts = st.integers(1, 50)
waits = st.lists(st.floats(0, 5) | st.just(0.0), min_size=1, max_size=60)


def test_a_full_bucket_gives_its_burst_at_once_and_then_one_by_one() -> None:
    bucket = Bucket(per_second=2, burst=3)
    assert [bucket.take(100.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.take(100.25) == 0.25
    assert bucket.take(100.5) == 0
    assert bucket.take(100.5) == 0.5


def test_who_waits_long_gets_no_more_than_the_burst() -> None:
    bucket = Bucket(per_second=2, burst=3)
    bucket.take(0.0)
    assert [bucket.take(1e9) == 0 for _ in range(5)] == [True, True, True, False, False]


@pytest.mark.parametrize("start_s", [-1e6, -1.0, 0.0, 1e9])
def test_any_clock_will_do(start_s: float) -> None:
    bucket = Bucket(per_second=1, burst=2)
    assert [bucket.take(start_s) == 0 for _ in range(3)] == [True, True, False]


@given(rates, bursts, waits)
def test_no_window_sees_more_than_burst_and_rate_allow(rate: float, burst: int, waits: list[float]) -> None:
    bucket = Bucket(rate, burst)
    now_s, taken_at = 0.0, []
    for wait_s in waits:
        now_s += wait_s
        if bucket.take(now_s) == 0:
            taken_at.append(now_s)
    for first, start_s in enumerate(taken_at):
        for last in range(first, len(taken_at)):
            assert last - first + 1 <= burst + rate * (taken_at[last] - start_s) + 1e-6


@given(rates, bursts, waits)
def test_who_waits_as_long_as_told_gets_one(rate: float, burst: int, waits: list[float]) -> None:
    bucket = Bucket(rate, burst)
    now_s = 0.0
    for wait_s in waits:
        now_s += wait_s
        told_s = bucket.take(now_s)
        assert told_s <= 1 / rate
        if told_s:
            now_s += told_s * (1 + 1e-6) + 1e-6
            assert bucket.take(now_s) == 0


@given(rates, bursts, waits)
def test_asking_in_vain_costs_nothing(rate: float, burst: int, waits: list[float]) -> None:
    patient, impatient = Bucket(rate, burst), Bucket(rate, burst)
    now_s = 0.0
    for _ in range(burst):
        assert patient.take(now_s) == impatient.take(now_s) == 0
    for wait_s in waits:
        now_s += min(wait_s, 1) * 0.9 / rate / len(waits)
        assert impatient.take(now_s) > 0
    now_s += 1.001 / rate
    assert patient.take(now_s) == impatient.take(now_s) == 0


def test_everyone_has_a_bucket_of_their_own() -> None:
    buckets = Buckets()
    ann = buckets.of("ann", per_second=1, burst=1)
    assert buckets.of("ann", per_second=1, burst=1) is ann
    assert buckets.of("bob", per_second=1, burst=1) is not ann
    assert buckets.of("ann", per_second=2, burst=1) is not ann


def test_who_was_idle_longest_is_forgotten_first() -> None:
    buckets = Buckets()
    first, second = (buckets.of(who, per_second=1, burst=1) for who in ("first", "second"))
    for n in range(Buckets.BUCKETS_MAX - 2):
        buckets.of(n, per_second=1, burst=1)
    assert buckets.of("first", per_second=1, burst=1) is first
    buckets.of("one more", per_second=1, burst=1)
    assert buckets.of("first", per_second=1, burst=1) is first
    assert buckets.of("second", per_second=1, burst=1) is not second
