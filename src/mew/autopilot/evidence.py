"""PURE. The evidence for a rule: an e-value that may be looked at after every decision, and bounds in words.

Under the hypothesis "reviewers reject at least `risk` of what this rule covers" the e-value is a supermartingale that
starts at 1, so the probability that it ever reaches 1/alpha is at most alpha (Ville's inequality).
"""

from math import exp, log, log1p
from typing import Final

__all__ = [
    "ADVERSARY",
    "BIRTHS_MAX",
    "alpha_of_birth",
    "approvals_needed",
    "bound_in_words",
    "e_value",
    "upper_bound",
]

ADVERSARY: Final = (
    "The bound speaks of proposals as they come. It does not cover a proposer who chooses calls to deceive the rule; "
    "the closed pattern, the guard, budgets and audits do."
)
_GRID: Final = ((0.0, 0.5), (0.125, 0.2), (0.25, 0.2), (0.5, 0.1))  # share of the risk level, weight
BIRTHS_MAX: Final = 100
_EARLY: Final = 0.9
_NEEDED_MAX: Final = 1000


def e_value(decisions: int, rejections: int, risk: float) -> float:
    """E(n, k) against the hypothesis that the rejection rate is at least `risk`; infinite if it overflows."""
    approvals = decisions - rejections
    total = 0.0
    for share, weight in _GRID:
        rate = share * risk
        if rate == 0.0:
            if rejections == 0:
                total += weight * exp(min(700.0, -approvals * log1p(-risk)))
            continue
        logarithm = rejections * log(rate / risk) + approvals * (log1p(-rate) - log1p(-risk))
        total += weight * exp(min(700.0, logarithm))
    return total


def alpha_of_birth(number: int, delta: float) -> float:
    """The share of `delta` that the candidate born as `number` (from 1) of its group may spend.

    A fifth is spread evenly over all births, the rest favours the first ones; all shares together are at most `delta`.
    """
    if number > BIRTHS_MAX:
        return 0.0
    return delta * ((1 - _EARLY) / BIRTHS_MAX + _EARLY / (number * (number + 1)))


def approvals_needed(decisions: int, rejections: int, risk: float, alpha: float) -> int:
    """How many more approvals without a rejection would bring the e-value to 1/alpha; 1,000 at most."""
    if alpha <= 0 or risk <= 0:
        return _NEEDED_MAX
    low, high = 0, _NEEDED_MAX
    while low < high:
        middle = (low + high) // 2
        if e_value(decisions + middle, rejections, risk) >= 1 / alpha:
            high = middle
        else:
            low = middle + 1
    return low


def upper_bound(decisions: int, rejections: int, confidence: float = 0.95) -> float:
    """The rejection rate that the evidence excludes from above: the smallest rate with an e-value of 1/(1-confidence).

    Valid at any moment, unlike a Clopper-Pearson bound that is looked at again and again.
    """
    if decisions == 0:
        return 1.0
    low, high = rejections / decisions, 1.0 - 1e-9
    wanted = 1 / (1 - confidence)
    if e_value(decisions, rejections, high) < wanted:
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if middle > 0 and e_value(decisions, rejections, middle) >= wanted:
            high = middle
        else:
            low = middle
    return high


def bound_in_words(decisions: int, rejections: int) -> str:
    """How often a reviewer may disagree, as a sentence: "you would reject fewer than 1 in 12, with 95 % confidence"."""
    counted = f"{decisions - rejections} approved, {rejections} rejected"
    bound = upper_bound(decisions, rejections)
    if bound > 0.5:
        return f"{counted}; too few decisions to say how often you would reject"
    return f"{counted}; you would reject fewer than 1 in {int(1 / bound)}, with 95 % confidence"
