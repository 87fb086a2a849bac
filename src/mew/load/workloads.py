"""All workloads: what each is told, and what runs it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from . import addressed, checks, fan_out, idle, injection, joins, proposals, spaces, storm, streams
from .addressed import Addressed
from .checks import Checks
from .fan_out import FanOut
from .idle import Idle
from .injection import Injection
from .joins import Joins
from .measuring import Effort, Outcome
from .proposals import Proposals
from .spaces import Spaces
from .storm import Storm
from .streams import Streams

__all__ = ["Workload", "run"]

Workload: TypeAlias = (
    FanOut | Spaces | Addressed | Checks | Proposals | Streams | Storm | Idle | Joins | Injection
)


_RUNS: Final[Mapping[type, Callable[[Any, Effort, Callable[[], None]], Awaitable[Outcome]]]] = {
    FanOut: fan_out.run,
    Spaces: spaces.run,
    Addressed: addressed.run,
    Proposals: proposals.run,
    Streams: streams.run,
    Storm: storm.run,
    Idle: idle.run,
    Joins: joins.run,
    Injection: injection.run,
}


async def run(asked: Workload, effort: Effort, tell: Callable[[], None] = lambda: None) -> list[Outcome]:
    """Do it; `tell` is called after each round.

    Raises:
        LoadFailed: there is no figure, and why.
    """
    if isinstance(asked, Checks):
        return list((await checks.run(asked, effort, tell)).values())
    return [await _RUNS[type(asked)](asked, effort, tell)]
