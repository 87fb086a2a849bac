"""Registers checks of participants and runs them; what one of them forbade holds to the end of the run."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from mew.conform.outcome import NotOffered, Outcome, Result, Violation
from mew.conform.runner import CheckOn, Registry, judged

from .context import ParticipantStage
from .probe import get_acquainted
from .test_run import Company

__all__ = ["ParticipantCheck", "check", "participant_checks", "try_participant"]


ParticipantCheck = CheckOn[ParticipantStage]

_registry: Registry[ParticipantStage] = Registry()
check = _registry.check


def participant_checks() -> tuple[ParticipantCheck, ...]:
    """All there are, in the order in which they are played: those that end the participant late, audits last."""
    from mew.conform import participant_checks as _modules  # they register themselves

    assert _modules is not None
    return tuple(_registry.checks)


async def try_participant(
    company: Company,
    chosen: Iterable[ParticipantCheck],
    progress: Callable[[ParticipantCheck], None] = lambda check: None,
    results: list[Result] | None = None,
) -> list[Result]:
    """What each came to; in `results`, where given, as soon as it is known. The participant is connected by then."""
    company.traits = await get_acquainted(company)
    results, stages = [] if results is None else results, []
    for check in chosen:
        progress(check)
        stage = ParticipantStage(company)
        results.append(await judged(check, stage))
        stages.append(stage)
        await _mend(company, check)
    return [_in_the_end(result, stage) for result, stage in zip(results, stages, strict=True)]


async def _mend(company: Company, check: ParticipantCheck) -> None:
    """What a participant did wrong in one check is not held against it in the others: it is to answer as before."""
    if company.lost or company.dismissed or company.broken_since or await _answers(company):
        return
    with suppress(NotOffered):
        await company.begin_anew()
        if await _answers(company):
            return
    company.broken_since = check.name


async def _answers(company: Company) -> bool:
    """Whether it still answers what it answered at first; who answered nothing then is not asked."""
    if not company.subject.present:
        return True  # it may come back by itself
    async with ParticipantStage(company) as stage:
        try:
            await stage.ponged()
        except (Violation, NotOffered):
            return not company.subject.present
    return True


def _in_the_end(result: Result, stage: ParticipantStage) -> Result:
    """As it was, unless the participant has done since then what it must never."""
    if result.outcome is not Outcome.PASS:
        return result
    try:
        stage.keep()
    except Violation as error:
        return replace(
            result, outcome=Outcome.FAIL, why=str(error), evidence=stage.transcript.evidence(str(error))
        )
    return result
