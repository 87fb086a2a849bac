"""`mew conform participant`: try every requirement of the specification on a participant that connects to the kit."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from mew.conform.ledger import Side
from mew.conform.participant.checking import ParticipantCheck, participant_checks
from mew.conform.participant.house import SPACE, House, child, open_house
from mew.conform.participant.prompts import BadPrompts, Prompts, example, read_prompts
from mew.conform.participant.relay import CannotListen
from mew.conform.participant.running import try_participant
from mew.conform.report import verdicts
from mew.conform.verdicts import Result

from .conform_results import Junit, Only, requirements_about, tell_results
from .progress import progress
from .telling import told
from .where import Failed

__all__ = ["participant", "prompts"]

_CONFIG: Final = Path("conform-participant.toml")
_LOOK_S: Final = 0.2


@told("mew conform participant")
def participant(
    listen: Annotated[
        str, typer.Option(help="Where the participant is to connect, host:port; port 0 is a free one.")
    ] = "127.0.0.1:0",
    command: Annotated[
        str | None,
        typer.Option(
            help="Start the participant so, with MEW_URL, MEW_SPACE and MEW_TOKEN in its environment."
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
    json: Annotated[bool, typer.Option("--json", help="The results with all evidence, as JSON.")] = False,
) -> None:
    """Try every requirement about participants on one that connects here. Exit code 1: a MUST does not hold.

    Example: mew conform participant --command "python agent.py" --only 3.9
    """
    host, port = _address(listen)
    said = _prompts(config)
    requirements = requirements_about(Side.PARTICIPANT, only)
    ids = {one.id for one in requirements}
    chosen = [check for check in participant_checks() if ids.intersection(check.requirements)]
    try:
        results, is_lost = asyncio.run(_try(host, port, said, command, wait_s, chosen))
    except CannotListen as error:
        raise Failed(str(error)) from error
    if is_lost:
        typer.echo(
            "mew conform participant: it left, did not come back, and was not tried to the end", err=True
        )
    tell_results(
        Side.PARTICIPANT, command or "the participant", verdicts(requirements, results), junit, as_json=json
    )
    if is_lost:
        raise typer.Exit(1)


def prompts() -> None:
    """Print a conform-participant.toml to start from: everything that can make a participant do something.

    Example: mew conform prompts > conform-participant.toml
    """
    typer.echo(example(), nl=False)


def _address(listen: str) -> tuple[str, int]:
    host, mark, port = listen.rpartition(":")
    if not mark or not port.isdecimal() or int(port) > 65_535:
        raise Failed(f"--listen {listen}: expected host:port, like 127.0.0.1:0")
    return host.strip("[]") or "127.0.0.1", int(port)


def _prompts(config: Path | None) -> Prompts:
    if config is None and not _CONFIG.exists():
        return Prompts()
    try:
        return read_prompts(config or _CONFIG)
    except BadPrompts as error:
        raise Failed(f"{error}; 'mew conform prompts' prints one to start from") from error


async def _try(
    host: str,
    port: int,
    said: Prompts,
    command: str | None,
    wait_s: float,
    chosen: Sequence[ParticipantCheck],
) -> tuple[list[Result], bool]:
    """What the checks came to, and whether the participant was lost on the way."""
    async with open_house(said, host, port) as house:
        async with _invited(house) if command is None else _started(house, command):
            await _come(house, wait_s)
            done = 0
            with progress("trying") as tell:

                def begun(_: ParticipantCheck) -> None:
                    nonlocal done
                    tell(done, len(chosen))
                    done += 1

                results = await try_participant(house.company, chosen, begun)
        return results, house.company.lost


async def _come(house: House, wait_s: float) -> None:
    """Return when the participant is there.

    Raises:
        Failed: it does not come.
    """
    subject, loop = house.company.subject, asyncio.get_running_loop()
    deadline_s = loop.time() + wait_s
    while await subject.wait(lambda: subject.present or None, _LOOK_S) is None:
        if house.ended is not None:
            raise Failed(f"the command ended with {house.ended} before it connected to {house.url}")
        if loop.time() > deadline_s:
            refused = f"; {len(subject.arrivals)} attempts were refused" if subject.arrivals else ""
            raise Failed(f"no participant came to {house.url} within {wait_s:g} s{refused}")


@asynccontextmanager
async def _invited(house: House) -> AsyncIterator[None]:
    """Say where it is to connect; its token is in a file that only its owner can read."""
    with TemporaryDirectory(prefix="mew-conform-") as folder:
        file = Path(folder, "participant.token")
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as token:
            token.write(house.token)
        typer.echo(
            f"connect the participant to {house.url}, space {SPACE}, with the token in {file}", err=True
        )
        yield


@asynccontextmanager
async def _started(house: House, command: str) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(child(command, house))
        except (OSError, ValueError) as error:
            raise Failed(f"--command {command}: {error}") from error
        yield
