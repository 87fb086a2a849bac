"""`mew conform participant`: try every requirement of the specification on a participant that connects to the kit."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from mew.cli.errors import CommandError
from mew.cli.render.progress import counting
from mew.conform.ledger import Side
from mew.conform.outcome import CheckResult
from mew.conform.participant.prompts import BadPrompts, Prompts, example, read_prompts
from mew.conform.participant.runner import ParticipantCheck, participant_checks, run_participant_checks
from mew.conform.participant.test_gateway import (
    SPACE,
    CannotListen,
    TestGateway,
    child_process,
    open_test_gateway,
)
from mew.conform.report import requirement_verdicts

from .report import Junit, Shown, tell_results
from .selection import Only, chosen

__all__ = ["participant", "prompts"]

_CONFIG: Final = Path("conform-participant.toml")
_LOOK_S: Final = 0.2
INTERRUPTED: Final = 130


@dataclass(slots=True)
class _Run:
    """What was tried so far, and why no more, if it was broken off."""

    checks: Sequence[ParticipantCheck]
    results: list[CheckResult] = field(default_factory=list)
    broken_off: str = ""


def participant(
    listen: Annotated[
        str, typer.Option(help="Where the participant is to connect, host:port; port 0 is a free one.")
    ] = "127.0.0.1:0",
    command: Annotated[
        str | None,
        typer.Option(
            help="Start the participant so, with MEW_GATEWAY, MEW_SPACE and MEW_TOKEN_FILE in its environment, "
            "and MEW_URL and MEW_TOKEN."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help=f"What makes it do things; {_CONFIG} if that is there."),
    ] = None,
    wait_s: Annotated[float, typer.Option("--wait", help="How many seconds to wait for it to come.")] = 60.0,
    only: Only = None,
    junit: Junit = None,
    *,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results with all evidence as JSON.")
    ] = False,
) -> None:
    """Try every requirement about participants on one that connects here. Exit code 1: a MUST does not hold.

    Example: mew conform participant --command "python agent.py" --only 3.9
    """
    host, port = _address(listen)
    said = _prompts(config)
    requirements = chosen(Side.PARTICIPANT, only)
    ids = {one.id for one in requirements}
    checks = [check for check in participant_checks() if ids.intersection(check.requirements)]
    run = _Run(checks)
    try:
        asyncio.run(_try(host, port, said, command, wait_s, run))
    except CannotListen as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        run.broken_off = f"interrupted after {len(run.results)} of {len(checks)} checks"
    if run.broken_off:
        typer.echo(f"mew conform participant: {run.broken_off}", err=True)
    name = command or "the participant"
    tell_results(
        Side.PARTICIPANT, name, requirement_verdicts(requirements, run.results), Shown(only, junit, json)
    )
    if run.broken_off:
        raise typer.Exit(1 if len(run.results) == len(checks) else INTERRUPTED)


def prompts() -> None:
    """Print a conform-participant.toml to start from: everything that can make a participant do something.

    Example: mew conform prompts > conform-participant.toml
    """
    typer.echo(example(), nl=False)


def _address(listen: str) -> tuple[str, int]:
    host, mark, port = listen.rpartition(":")
    if not mark or not port.isdecimal() or int(port) > 65_535:
        raise CommandError(f"--listen {listen}: expected host:port, like 127.0.0.1:0")
    return host.strip("[]") or "127.0.0.1", int(port)


def _prompts(config: Path | None) -> Prompts:
    if config is None and not _CONFIG.exists():
        return Prompts()
    try:
        return read_prompts(config or _CONFIG)
    except BadPrompts as error:
        raise CommandError(f"{error}; 'mew conform prompts' prints one to start from") from error


async def _try(
    host: str,
    port: int,
    said: Prompts,
    command: str | None,
    wait_s: float,
    run: _Run,
) -> None:
    async with open_test_gateway(said, host, port) as test_gateway:
        async with _invited(test_gateway) if command is None else _started(test_gateway, command):
            await _come(test_gateway, wait_s)
            with counting(len(run.checks)) as begins:
                run.results[:] = await run_participant_checks(
                    test_gateway.test_run, run.checks, begins, run.results
                )
        if test_gateway.test_run.lost:
            run.broken_off = "it left, did not come back, and was not tried to the end"
        elif test_gateway.test_run.broken_since:
            run.broken_off = (
                f"it answers nothing since {test_gateway.test_run.broken_since}, and was not tried to the end"
            )


async def _come(test_gateway: TestGateway, wait_s: float) -> None:
    """Return when the participant is there.

    Raises:
        CommandError: it does not come.
    """
    subject, loop = test_gateway.test_run.subject, asyncio.get_running_loop()
    deadline_s = loop.time() + wait_s
    while await subject.wait(lambda: subject.present or None, _LOOK_S) is None:
        if test_gateway.ended is not None:
            raise CommandError(
                f"the command ended with {test_gateway.ended} before it connected to {test_gateway.url}"
            )
        if loop.time() > deadline_s:
            refused = f"; {len(subject.arrivals)} attempts were refused" if subject.arrivals else ""
            raise CommandError(f"no participant came to {test_gateway.url} within {wait_s:g} s{refused}")


@asynccontextmanager
async def _invited(test_gateway: TestGateway) -> AsyncIterator[None]:
    """Say where it is to connect; its token is in a file that only its owner can read."""
    where = f"{test_gateway.url}, space {SPACE}, with the token in {test_gateway.token_file}"
    typer.echo(f"connect the participant to {where}", err=True)
    yield


@asynccontextmanager
async def _started(test_gateway: TestGateway, command: str) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(child_process(command, test_gateway))
        except (OSError, ValueError) as error:
            raise CommandError(f"--command {command}: {error}") from error
        yield
