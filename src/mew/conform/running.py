"""Runs checks one after the other against a gateway: none can hang, crash or spoil the others."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from .cast import Cast
from .checking import Check, CheckOn, PlaceT
from .handshake import Refused
from .stage import Lessons, Stage
from .verdicts import NotOffered, Outcome, Result, Violation

__all__ = ["judged", "run_checks"]

_PATIENCES: Final = 15  # a check may wait so many times as long as one answer may take
_IN_VAIN_MAX: Final = 5


async def run_checks(
    cast: Cast,
    chosen: Iterable[Check],
    progress: Callable[[Check], None] = lambda check: None,
    results: list[Result] | None = None,
) -> list[Result]:
    """What each came to; in `results`, where given, as soon as it is known.

    Where nobody is let in the first ones show that, and the others fail without being played.
    """
    results = [] if results is None else results
    lessons, in_vain = Lessons(), 0
    for check in chosen:
        progress(check)
        if in_vain == _IN_VAIN_MAX:
            why = f"not played: in {in_vain} checks one after the other nobody was welcomed"
            results.append(Result(check.name, check.requirements, Outcome.FAIL, why))
            continue
        stage = Stage(cast, lessons)
        results.append(await judged(check, stage))
        if any(actor.welcome for actor in stage.actors):
            in_vain = 0
        elif results[-1].outcome is Outcome.FAIL:
            in_vain += 1
    return results


async def judged(check: CheckOn[PlaceT], stage: PlaceT) -> Result:
    """Play it on a stage that was not entered yet; whatever happens on it becomes a result."""
    began = time.monotonic()
    limit_s = stage.cast.patience_s * _PATIENCES
    outcome, why = Outcome.PASS, ""
    try:
        async with asyncio.timeout(limit_s), stage:
            await check.play(stage)
    except NotOffered as error:
        outcome, why = Outcome.NOT_OFFERED, str(error)
    except Violation as error:
        outcome, why = Outcome.FAIL, str(error)
    except Refused as error:
        outcome, why = Outcome.FAIL, f"the gateway refused a connection it had to accept: {error}"
    except TimeoutError:
        outcome, why = Outcome.FAIL, f"not done within {limit_s:g} s: something hangs"
    except Exception as error:  # an envelope without what every envelope of its kind has
        outcome, why = Outcome.FAIL, f"what came back cannot be understood: {type(error).__name__}: {error}"
    evidence = stage.transcript.lines if outcome is Outcome.FAIL else ()
    return Result(check.name, check.requirements, outcome, why, tuple(evidence), time.monotonic() - began)
