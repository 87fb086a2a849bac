"""`mew`: the command line."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from . import gateway

__all__ = ["app", "main"]

app = typer.Typer(
    name="mew",
    help="A workspace where people, AI agents and MCP servers work in one visible stream (MEW Protocol v0.4).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("gateway", help="Serve the spaces of a space.yaml.")(gateway.gateway)


@app.callback(invoke_without_command=True)
def options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if show_version:
        typer.echo(f"mew {version('mew-protocol')}")
        raise typer.Exit


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
