"""Runs checks of a participant one after the other; what one of them forbade holds to the end of the run."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from mew.conform.running import judged
from mew.conform.verdicts import Outcome, Result, Violation

from .acquaintance import get_acquainted
from .checking import ParticipantCheck
from .company import Company
from .stage import ParticipantStage

__all__ = ["try_participant"]


async def try_participant(
    company: Company,
    chosen: Iterable[ParticipantCheck],
    progress: Callable[[ParticipantCheck], None] = lambda check: None,
) -> list[Result]:
    """What each came to; the participant is connected when this begins."""
    company.traits = await get_acquainted(company)
    results, stages = [], []
    for check in chosen:
        progress(check)
        stage = ParticipantStage(company)
        results.append(await judged(check, stage))
        stages.append(stage)
    return [_in_the_end(result, stage) for result, stage in zip(results, stages, strict=True)]


def _in_the_end(result: Result, stage: ParticipantStage) -> Result:
    """As it was, unless the participant has done since then what it must never."""
    if result.outcome is not Outcome.PASS:
        return result
    try:
        stage.keep()
    except Violation as error:
        return replace(result, outcome=Outcome.FAIL, why=str(error), evidence=tuple(stage.transcript.lines))
    return result
