"""Hidden policies to measure the autopilot with: tools, who approves what, and calls that imitate approved ones.

The policies are written in terms of the arguments' meaning, not of the learner's views. All randomness comes from one
seed, so a run can be repeated.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

__all__ = ["WORDS", "SimulatedCall", "SimulatedTool", "name", "pick", "prose", "simulate"]

_NOISE: Final = 0.01
_ATTACKS: Final = 0.02
WORDS: Final = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "report",
    "invoice",
    "parser",
    "client",
    "server",
    "index",
    "main",
    "utils",
    "model",
    "view",
    "table",
    "cache",
    "token",
    "queue",
    "worker",
    "config",
    "reader",
    "writer",
    "login",
    "search",
    "export",
    "import",
    "summary",
    "notes",
    "plan",
    "budget",
    "team",
    "weekly",
    "status",
    "release",
]


@dataclass(frozen=True)
class SimulatedCall:
    """A call, what the hidden policy says of it, and what a reviewer who sometimes errs decides."""

    tool: str
    arguments: dict[str, Any]
    is_allowed: bool
    decision: bool
    is_attack: bool = False


@dataclass(frozen=True)
class SimulatedTool:
    """`propose` makes a call; `allows` is the policy (the second argument: after the drift); `imitate` an attack."""

    name: str
    propose: Callable[[Random], dict[str, Any]]
    allows: Callable[[dict[str, Any], bool], bool]
    imitate: Callable[[Random], dict[str, Any]]
    weight: float = 1.0


def simulate(
    tools: Sequence[SimulatedTool], seed: str, count: int, *, noise: float = _NOISE, drift: bool = True
) -> Iterator[SimulatedCall]:
    """A stream of calls of these tools; attacks begin after the first third, the policy drifts at two thirds."""
    random = Random(seed)
    for number in range(count):
        tool = random.choices(tools, [one.weight for one in tools])[0]
        has_drifted = drift and number > count * 2 // 3
        if number > count // 3 and random.random() < _ATTACKS:
            yield SimulatedCall(
                tool.name, tool.imitate(random), is_allowed=False, decision=False, is_attack=True
            )
            continue
        arguments = tool.propose(random)
        is_allowed = tool.allows(arguments, has_drifted)
        decision = is_allowed if random.random() >= noise else not is_allowed
        yield SimulatedCall(tool.name, arguments, is_allowed, decision)


def pick(random: Random, *weighted: tuple[float, Any]) -> Any:
    return random.choices([value for _, value in weighted], [weight for weight, _ in weighted])[0]


def name(random: Random) -> str:
    return "_".join(random.sample(WORDS, random.choice((1, 1, 2))))


def prose(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(6, 40))).capitalize() + "."
