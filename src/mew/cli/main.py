"""`mew`: the command line. What a command needs is loaded when it is run, so that each starts at once."""

import sys
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

if TYPE_CHECKING:
    from typer._click import Command, Context

__all__ = ["app", "main"]

_COMMANDS: Final = ("gateway", "replay", "audit", "conform")
"""Each the name of a module, and of what is in it: a function, or a Typer with commands of its own."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: "Context") -> list[str]:
        return [*_COMMANDS]

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _loaded(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        if args and args[0] not in _COMMANDS:
            for name in _COMMANDS:  # so that it knows what there is that is written like it
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _loaded(name: str) -> "Command":
    command = getattr(import_module(f".{name}", __package__), name)
    if isinstance(command, typer.Typer):
        return get_group(command)
    alone = typer.Typer(add_completion=False)
    alone.command(name)(command)
    return get_command(alone)


app = typer.Typer(
    name="mew",
    cls=_Commands,
    help="A workspace where people, AI agents and MCP servers work in one visible stream (MEW Protocol v0.4).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
    except OSError as error:  # a full disk behind a redirection, say
        typer.echo(f"mew: {error.strerror or error}", err=True)
        sys.exit(2)
