"""`mew conform`: try every requirement of the specification on a gateway, from outside."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mew.conform.cast import BadCast, Cast, read_cast
from mew.conform.checking import Check, all_checks
from mew.conform.example import write_example
from mew.conform.ledger import Side
from mew.conform.report import verdicts
from mew.conform.running import run_checks
from mew.conform.verdicts import Result

from .conform_participant import participant, prompts
from .conform_results import Junit, Only, requirements_about, tell_results
from .progress import progress
from .telling import told
from .where import Failed

__all__ = ["conform"]


class _GatewayUnlessNamed(TyperGroup):
    """`mew conform ws://…` is `mew conform gateway ws://…`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["gateway", *args]
        return super().parse_args(ctx, args)


conform = typer.Typer(
    name="conform",
    cls=_GatewayUnlessNamed,
    help="Try the specification on a gateway or a participant.",
    no_args_is_help=True,
)
conform.command("participant")(participant)
conform.command("prompts")(prompts)


@conform.command("gateway")
@told("mew conform")
def gateway(
    url: Annotated[str | None, typer.Argument(help="Where the gateway is, like ws://127.0.0.1:8080.")] = None,
    config: Annotated[Path, typer.Option("--config", "-c", help="Tokens and where the HTTP API is.")] = Path(
        "conform.toml"
    ),
    only: Only = None,
    junit: Junit = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="The results with all evidence, as JSON.")] = False,
) -> None:
    """Try every requirement about gateways, and say section by section what holds. Exit code 1: a MUST does not.

    Example: mew conform ws://127.0.0.1:8080 --config conform.toml --only 3.6
    """
    cast = _cast(config, url)
    requirements = requirements_about(Side.GATEWAY, only)
    ids = {one.id for one in requirements}
    chosen = [check for check in all_checks() if ids.intersection(check.requirements)]
    found = verdicts(requirements, _run(cast, chosen))
    tell_results(Side.GATEWAY, cast.url, found, junit, as_json=json)


@conform.command("example")
@told("mew conform")
def example(
    folder: Annotated[Path, typer.Argument(help="Where to put the files.")] = Path(),
    url: Annotated[str, typer.Option(help="Where the gateway will be.")] = "ws://127.0.0.1:8080",
) -> None:
    """Write a space.yaml with every role the kit plays, and the conform.toml that goes with it.

    Example: mew conform example trial
    """
    try:
        space, kit = write_example(folder, url)
    except OSError as error:
        raise Failed(str(error)) from error
    typer.echo(f"mew gateway --config {space}       # in one terminal")
    typer.echo(f"mew conform {url} --config {kit}  # in another")


def _cast(config: Path, url: str | None) -> Cast:
    try:
        return read_cast(config, os.environ, url)
    except BadCast as error:
        raise Failed(f"{error}; 'mew conform example' writes one to start from") from error


def _run(cast: Cast, chosen: Sequence[Check]) -> list[Result]:
    done = 0
    with progress("trying") as tell:

        def begun(check: Check) -> None:
            nonlocal done
            tell(done, len(chosen))
            done += 1

        return asyncio.run(run_checks(cast, chosen, begun))
