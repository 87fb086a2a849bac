"""How fast somebody may send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.room.rate_limit import ByteBudget, ByteBudgets, RateLimiter, RateLimiters

rates = st.floats(0.01, 10_000)
bursts = st.integers(1, 50)
waits = st.lists(st.floats(0, 5) | st.just(0.0), min_size=1, max_size=60)
counts = st.integers(1, 10)


def test_the_burst_may_be_taken_at_once_and_then_one_by_one() -> None:
    limiter = RateLimiter(per_second=2, burst=3)
    assert [limiter.take(100.0) for _ in range(4)] == [1, 1, 1, 0]
    assert limiter.wait_s == 0.5
    assert (limiter.take(100.25), limiter.wait_s) == (0, 0.25)
    assert (limiter.take(100.5), limiter.wait_s) == (1, 0.5)


def test_of_several_as_many_are_taken_as_there_are() -> None:
    limiter = RateLimiter(per_second=2, burst=5)
    assert [limiter.take(100.0, 3), limiter.take(100.0, 3), limiter.take(100.0, 3)] == [3, 2, 0]
    assert limiter.take(101.0, 3) == 2


def test_who_waits_long_gets_no_more_than_the_burst() -> None:
    limiter = RateLimiter(per_second=2, burst=3)
    limiter.take(0.0)
    assert limiter.take(1e9, 5) == 3


@pytest.mark.parametrize("start_s", [-1e6, -1.0, 0.0, 1e9])
def test_any_clock_will_do(start_s: float) -> None:
    limiter = RateLimiter(per_second=1, burst=2)
    assert [limiter.take(start_s) for _ in range(3)] == [1, 1, 0]


def test_what_was_not_needed_is_put_back_up_to_the_burst() -> None:
    limiter = RateLimiter(per_second=1, burst=2)
    limiter.take(0.0, 2)
    limiter.put_back()
    assert [limiter.take(0.0), limiter.take(0.0)] == [1, 0]
    limiter.put_back(100)
    assert limiter.take(0.0, 100) == 2


@given(rates, bursts, st.lists(st.tuples(st.floats(0, 5) | st.just(0.0), counts), min_size=1, max_size=60))
def test_no_window_sees_more_than_burst_and_rate_allow(
    rate: float, burst: int, asked: list[tuple[float, int]]
) -> None:
    limiter = RateLimiter(rate, burst)
    now_s, taken_at = 0.0, list[float]()
    for wait_s, count in asked:
        now_s += wait_s
        taken_at += [now_s] * limiter.take(now_s, count)
    for first, start_s in enumerate(taken_at):
        for last in range(first, len(taken_at)):
            assert last - first + 1 <= burst + rate * (taken_at[last] - start_s) + 1e-6


@given(rates, bursts, waits)
def test_who_waits_as_long_as_told_gets_one(rate: float, burst: int, waits: list[float]) -> None:
    limiter = RateLimiter(rate, burst)
    now_s = 0.0
    for wait_s in waits:
        now_s += wait_s
        if not limiter.take(now_s):
            assert 0 < limiter.wait_s <= 1 / rate
            now_s += limiter.wait_s * (1 + 1e-6) + 1e-6
            assert limiter.take(now_s)


@given(rates, bursts, waits)
def test_asking_in_vain_costs_nothing(rate: float, burst: int, waits: list[float]) -> None:
    patient, impatient = RateLimiter(rate, burst), RateLimiter(rate, burst)
    now_s = 0.0
    assert patient.take(now_s, burst) == impatient.take(now_s, burst) == burst
    for wait_s in waits:
        now_s += min(wait_s, 1) * 0.9 / rate / len(waits)
        assert not impatient.take(now_s)
    now_s += 1.001 / rate
    assert patient.take(now_s) == impatient.take(now_s) == 1


def test_everyone_has_a_limiter_of_their_own() -> None:
    limiters = RateLimiters()
    ann = limiters.of("ann", per_second=1, burst=1)
    assert limiters.of("ann", per_second=1, burst=1) is ann
    assert limiters.of("bob", per_second=1, burst=1) is not ann
    assert limiters.of("ann", per_second=2, burst=1) is not ann


def test_who_was_idle_longest_is_forgotten_first() -> None:
    limiters = RateLimiters()
    first, second = (limiters.of(who, per_second=1, burst=1) for who in ("first", "second"))
    for n in range(RateLimiters.LIMITERS_MAX - 2):
        limiters.of(n, per_second=1, burst=1)
    assert limiters.of("first", per_second=1, burst=1) is first
    limiters.of("one more", per_second=1, burst=1)
    assert limiters.of("first", per_second=1, burst=1) is first
    assert limiters.of("second", per_second=1, burst=1) is not second


def test_a_budget_goes_into_debt_and_tells_when_that_is_paid() -> None:
    budget = ByteBudget(per_second=100, burst=1000, now_s=5.0)
    budget.left -= 1000
    assert budget.debt_s(5.0) == 0
    budget.left -= 50
    assert budget.debt_s(5.0) == 0.5
    assert budget.debt_s(5.25) == 0.25
    assert budget.debt_s(5.5) == 0
    assert budget.debt_s(1e9) == 0
    assert budget.left == 1000


def test_budgets_are_a_participants_own_and_there_are_only_so_many() -> None:
    budgets = ByteBudgets(per_second=100, burst=1000)
    budgets.of("ann", 0.0).left -= 700
    assert budgets.of("ann", 0.0).left == 300
    for number in range(ByteBudgets.BUDGETS_MAX - 1):
        budgets.of(f"p{number}", 0.0)
    assert budgets.of("ann", 0.0).left == 300
    for number in range(ByteBudgets.BUDGETS_MAX):
        budgets.of(f"p{number}", 0.0)
    assert budgets.of("ann", 0.0).left == 1000
