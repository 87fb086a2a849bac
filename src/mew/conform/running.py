"""Runs checks one after the other against a gateway: none can hang, crash or spoil the others."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from .cast import Cast
from .checking import Check, CheckOn, PlaceT
from .handshake import Refused, Unreachable
from .stage import Lessons, Stage
from .verdicts import NotOffered, Outcome, Result, Violation

__all__ = ["judged", "run_checks"]

_PATIENCES: Final = 15  # a check may wait so many times as long as one answer may take
_IN_VAIN_MAX: Final = 5
_WELCOMED: Final = "welcome.sent"


async def run_checks(
    cast: Cast,
    chosen: Iterable[Check],
    progress: Callable[[Check], None] = lambda check: None,
    results: list[Result] | None = None,
) -> list[Result]:
    """What each came to; in `results`, where given, as soon as it is known.

    If nobody is let in, the first ones show that, and the others are blocked. What fails because a requirement that
    it needs does not hold is blocked too: the root cause is reported once.
    """
    results = [] if results is None else results
    lessons, in_vain = Lessons(), 0
    for check in chosen:
        progress(check)
        if in_vain == _IN_VAIN_MAX:
            why = f"not played: in {in_vain} checks one after the other nobody was welcomed"
            results.append(Result(check.name, check.requirements, Outcome.BLOCKED, why, blocked_by=_WELCOMED))
            continue
        stage = Stage(cast, lessons)
        results.append(await judged(check, stage))
        if any(actor.welcome for actor in stage.actors):
            in_vain = 0
        elif results[-1].outcome in (Outcome.FAIL, Outcome.BLOCKED):
            in_vain += 1
    _find_root_causes(results)
    return results


def _find_root_causes(results: list[Result]) -> None:
    """Turn failures into what is blocked, where a requirement that the check needs does not hold.

    A gateway that cannot be reached any more fails the first check that finds it so.
    """
    first = next((place for place, one in enumerate(results) if one.outcome is Outcome.BLOCKED), None)
    if first is not None and not any(one.outcome is Outcome.FAIL for one in results):
        results[first] = replace(results[first], outcome=Outcome.FAIL, blocked_by="")
    failed = {one for result in results if result.outcome is Outcome.FAIL for one in result.requirements}
    for place, result in enumerate(results):
        causes = [one for one in result.needs if one in failed and one not in result.requirements]
        if result.outcome is Outcome.FAIL and causes:
            results[place] = replace(result, outcome=Outcome.BLOCKED, evidence=(), blocked_by=causes[0])


async def judged(check: CheckOn[PlaceT], stage: PlaceT) -> Result:
    """Play it on a stage that was not entered yet; whatever happens on it becomes a result."""
    began = time.monotonic()
    limit_s = stage.cast.patience_s * _PATIENCES
    outcome, why, blocked_by = Outcome.PASS, "", ""
    try:
        async with asyncio.timeout(limit_s), stage:
            await check.play(stage)
    except NotOffered as error:
        outcome, why = Outcome.NOT_OFFERED, str(error)
    except Unreachable as error:
        outcome, why, blocked_by = Outcome.BLOCKED, str(error), _WELCOMED
    except Violation as error:
        outcome, why = Outcome.FAIL, str(error)
    except Refused as error:
        outcome, why = Outcome.FAIL, f"the gateway refused a connection it had to accept: {error}"
    except TimeoutError:
        outcome, why = Outcome.FAIL, f"not done within {limit_s:g} s: something hangs"
    except Exception as error:  # an envelope without what every envelope of its kind has
        outcome, why = Outcome.FAIL, f"what came back cannot be understood: {type(error).__name__}: {error}"
    why = stage.transcript.redacted(why)
    evidence = stage.transcript.evidence(why) if outcome is Outcome.FAIL else ()
    took_s = time.monotonic() - began
    needs = (*check.needs, *sorted(stage.needs))
    return Result(check.name, check.requirements, outcome, why, evidence, took_s, needs, blocked_by)
