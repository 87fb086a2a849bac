"""`mew`: the command line. What a command needs is loaded when it is run, so that each starts at once."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from .exit_codes import Exit, end, ended_by, is_unexpected, show_cause
from .help import filled, helpful, write_help
from .registry import COMMANDS, Listed

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

__all__ = ["app", "main"]

_COMPLETE: Final = "__complete"
"""What the scripts of `mew completion` call."""


class _Commands(TyperGroup):
    """Lists its commands without loading them, and loads the one that is run."""

    def list_commands(self, ctx: "Context") -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            listed = COMMANDS[cmd_name]
            self.commands[cmd_name] = TyperCommand(cmd_name, help=listed.does, rich_help_panel=listed.panel)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = _loaded(args[0], COMMANDS[args[0]])
        else:
            for name in COMMANDS:  # so that it knows what there is that is written like it
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        for name in COMMANDS:
            self.get_command(ctx, name)
        write_help(ctx, formatter)

    def invoke(self, ctx: "Context") -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # or it would be said that the answer is no
            raise typer.Exit(Exit.NOBODY_READS) from None
        except Exception as error:
            if not ctx.params.get("debug"):
                raise
            show_cause(error)
            if is_unexpected(error):
                raise typer.Exit(Exit.OUR_FAULT) from error
            raise

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  # as it is there
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002
        **extra: Any,
    ) -> Any:
        """What was typed wrongly is said in a sentence, like all else that goes wrong."""
        given = [*sys.argv[1:]] if args is None else [*args]
        if not standalone_mode:
            return super().main(given, prog_name or "mew", standalone_mode=False, **extra)
        try:
            code = super().main(given, prog_name or "mew", standalone_mode=False, **extra) or Exit.DONE
        except Exception as error:
            code = ended_by(error, given)
            if code is None:
                raise
        if code == Exit.INTERRUPTED and sys.stderr.isatty():
            typer.echo(err=True)  # or the shell would go on beside the ^C
        sys.exit(code)


def _loaded(name: str, listed: Listed) -> "Command":
    module, _, attribute = listed.where.partition(":")
    command = getattr(import_module(f".commands.{module}", __package__), attribute)
    if isinstance(command, typer.Typer):
        return helpful(get_group(command))
    alone = typer.Typer(add_completion=False)
    alone.command(name)(command)
    return helpful(get_command(alone))


app = typer.Typer(
    name="mew",
    cls=_Commands,
    help="A workspace where people, AI agents and MCP servers work in one visible stream (MEW Protocol v0.4).",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            envvar="MEW_DEBUG",
            help="Show a traceback where something goes wrong; MEW_DEBUG=1 does so, too.",
        ),
    ] = False,
) -> None:
    if os.environ.get("NO_COLOR"):
        context.color = False
    if show_version:
        from importlib.metadata import version  # takes as long as all the rest

        typer.echo(f"mew {version('mew-protocol')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        from .hint import hint

        typer.echo(context.get_help())
        typer.echo(f"\n{filled(hint())}")


def main() -> None:
    """Ends the process, with one of the codes of `Exit`."""
    if sys.argv[1:2] == [_COMPLETE]:
        from .completion_words import say_next

        say_next("".join(sys.argv[2:3]))
        return
    try:
        app()
    except BaseException as error:
        end(error)
