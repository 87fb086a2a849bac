"""Registers checks of participants and runs them; what one of them forbade holds to the end of the run."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from mew.conform.outcome import CheckOutcome, CheckResult, NotOffered, Violation
from mew.conform.runner import CheckOn, Registry, run_check

from .context import ParticipantContext
from .probe import probe_participant
from .test_run import TestRun

__all__ = ["ParticipantCheck", "check", "participant_checks", "run_participant_checks"]


ParticipantCheck = CheckOn[ParticipantContext]

_registry: Registry[ParticipantContext] = Registry()
check = _registry.check


def participant_checks() -> tuple[ParticipantCheck, ...]:
    """All there are, in the order in which they are played: those that end the participant late, audits last."""
    from mew.conform import participant_checks as _modules  # they register themselves

    assert _modules is not None
    return tuple(_registry.checks)


async def run_participant_checks(
    test_run: TestRun,
    chosen: Iterable[ParticipantCheck],
    progress: Callable[[ParticipantCheck], None] = lambda check: None,
    results: list[CheckResult] | None = None,
) -> list[CheckResult]:
    """What each came to; in `results`, where given, as soon as it is known. The participant is connected by then."""
    test_run.traits = await probe_participant(test_run)
    results, stages = [] if results is None else results, []
    for check in chosen:
        progress(check)
        ctx = ParticipantContext(test_run)
        results.append(await run_check(check, ctx))
        stages.append(ctx)
        await _mend(test_run, check)
    return [_in_the_end(result, ctx) for result, ctx in zip(results, stages, strict=True)]


async def _mend(test_run: TestRun, check: ParticipantCheck) -> None:
    """What a participant did wrong in one check is not held against it in the others: it is to answer as before."""
    if test_run.lost or test_run.dismissed or test_run.broken_since or await _answers(test_run):
        return
    with suppress(NotOffered):
        await test_run.begin_anew()
        if await _answers(test_run):
            return
    test_run.broken_since = check.name


async def _answers(test_run: TestRun) -> bool:
    """Whether it still answers what it answered at first; who answered nothing then is not asked."""
    if not test_run.subject.present:
        return True  # it may come back by itself
    async with ParticipantContext(test_run) as ctx:
        try:
            await ctx.ponged()
        except (Violation, NotOffered):
            return not test_run.subject.present
    return True


def _in_the_end(result: CheckResult, ctx: ParticipantContext) -> CheckResult:
    """As it was, unless the participant has done since then what it must never."""
    if result.outcome is not CheckOutcome.PASS:
        return result
    try:
        ctx.keep()
    except Violation as error:
        return replace(
            result, outcome=CheckOutcome.FAIL, why=str(error), evidence=ctx.transcript.evidence(str(error))
        )
    return result
