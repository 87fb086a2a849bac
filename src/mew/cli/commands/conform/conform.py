"""`mew conform`: try every requirement of the specification on a gateway, from outside."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from mew.cli.errors import CommandError
from mew.cli.render.progress import counting
from mew.conform.example import write_example
from mew.conform.ledger import Side
from mew.conform.outcome import CheckResult
from mew.conform.report import requirement_verdicts
from mew.conform.roles import KitConfig, KitConfigError, read_config
from mew.conform.runner import Check, all_checks, check_reachable, run_checks

from .participant import participant, prompts
from .report import Junit, Shown, tell_results
from .selection import Only, chosen

__all__ = ["conform"]

INTERRUPTED: Final = 130


class _GatewayUnlessNamed(TyperGroup):
    """`mew conform ws://…` is `mew conform gateway ws://…`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["gateway", *args]
        return super().parse_args(ctx, args)


conform = typer.Typer(
    name="conform",
    cls=_GatewayUnlessNamed,
    subcommand_metavar="URL | COMMAND [ARGS]...",
    help="Check a gateway (mew conform URL) or a participant against the specification.\n\n"
    "Example: mew conform ws://127.0.0.1:8080 --config conform.toml",
    no_args_is_help=True,
)
conform.command("participant")(participant)
conform.command("prompts")(prompts)


@conform.command("gateway")
def gateway(
    url: Annotated[
        str | None, typer.Argument(help="URL of the gateway, such as ws://127.0.0.1:8080.")
    ] = None,
    config: Annotated[
        Path, typer.Option("--config", "-c", help="The roles of the kit: tokens, and the space.")
    ] = Path("conform.toml"),
    only: Only = None,
    junit: Junit = None,
    *,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results with all evidence as JSON.")
    ] = False,
) -> None:
    """Try every requirement about gateways, and say section by section what holds.

    Exit code 1: a MUST does not hold. 2: it could not be tried, as nobody was let in or the config is wrong.

    Example: mew conform ws://127.0.0.1:8080 --config conform.toml --only 3.6
    """
    kit = _read_config(config, url)
    requirements = chosen(Side.GATEWAY, only)
    ids = {one.id for one in requirements}
    checks = [check for check in all_checks() if ids.intersection(check.requirements)]
    results: list[CheckResult] = []
    try:
        _run(kit, checks, results)
    except KeyboardInterrupt:
        typer.echo(f"mew conform: interrupted after {len(results)} of {len(checks)} checks", err=True)
    tell_results(Side.GATEWAY, kit.url, requirement_verdicts(requirements, results), Shown(only, junit, json))
    if len(results) < len(checks):
        raise typer.Exit(INTERRUPTED)


@conform.command("example")
def example(
    folder: Annotated[Path, typer.Argument(help="Folder for the files.")] = Path(),
    url: Annotated[str, typer.Option(help="URL of the gateway.")] = "ws://127.0.0.1:8080",
) -> None:
    """Write a space.yaml with every role the kit plays, and the conform.toml that goes with it.

    Example: mew conform example trial
    """
    try:
        space, kit = write_example(folder, url)
    except OSError as error:
        raise CommandError(str(error)) from error
    typer.echo(f"mew gateway --config {space}       # in one terminal")
    typer.echo(f"mew conform {url} --config {kit}  # in another")


def _read_config(config: Path, url: str | None) -> KitConfig:
    try:
        return read_config(config, os.environ, url)
    except KitConfigError as error:
        hint = "; 'mew conform example' writes one to start from" if error.missing else ""
        raise CommandError(f"{error}{hint}") from error


def _run(config: KitConfig, checks: Sequence[Check], results: list[CheckResult]) -> None:
    """Play them, each result as soon as it is known.

    Raises:
        CommandError: there is no gateway to try, or not with these tokens.
    """
    if not checks:
        return  # nobody can see from outside what was asked for
    with counting(len(checks)) as begins:
        try:
            asyncio.run(_try(config, checks, begins, results))
        except KitConfigError as error:
            raise CommandError(str(error)) from error


async def _try(
    config: KitConfig, checks: Sequence[Check], begins: Callable[[Check], None], results: list[CheckResult]
) -> None:
    await run_checks(await check_reachable(config), checks, begins, results)
