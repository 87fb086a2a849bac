"""`mew`: the command line. Each command is loaded when it runs, so that every one of them starts at once."""

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from .errors import ExitCode, end, is_unexpected, report_usage, reported, show_cause
from .registry import COMMANDS, Listed

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

__all__ = ["app", "hint", "main"]

_SPACE_FILES: Final = ("space.yaml", ".mew/space.yaml")
_EXAMPLES: Final = re.compile(r"\n\n *(?=Examples?\b)")
_WIDTH_MAX: Final = 100
_EPILOG: Final = (
    "'mew COMMAND --help' shows examples. Exit codes: 0, done; 1, the answer is no; 2, could not be tried;"
    " 70, a bug in mew; 130, interrupted."
)


class _Commands(TyperGroup):
    """List the commands without loading them, and load the one that runs."""

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
            self.commands[args[0]] = _load(args[0], COMMANDS[args[0]])
        else:
            for name in COMMANDS:  # for "did you mean"
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Group the commands by topic, which Typer does with Rich only: too slow to start with."""
        column = max(map(len, COMMANDS)) + 2
        for panel in dict.fromkeys(listed.panel for listed in COMMANDS.values()):
            with formatter.section(panel):
                rows = [
                    (name.ljust(column - 2), one.does) for name, one in COMMANDS.items() if one.panel == panel
                ]
                formatter.write_dl(rows)

    def invoke(self, ctx: "Context") -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # or Typer would exit with 1
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except Exception as error:
            if not ctx.params.get("debug"):
                raise
            show_cause(error)
            if is_unexpected(error):
                raise typer.Exit(ExitCode.INTERNAL) from error
            raise

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  # as in Typer
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002
        **extra: Any,
    ) -> Any:
        """Report a mistake on the command line in one sentence, like every other error."""
        words = [*sys.argv[1:]] if args is None else [*args]
        if not standalone_mode:
            return super().main(words, prog_name or "mew", standalone_mode=False, **extra)
        try:
            code = super().main(words, prog_name or "mew", standalone_mode=False, **extra) or ExitCode.OK
        except Exception as error:
            code = report_usage(error, words)
            if code is None:
                raise
        if code == ExitCode.INTERRUPTED and sys.stderr.isatty():
            typer.echo(err=True)  # or the shell's prompt would stand beside the ^C
        sys.exit(code)


def _load(name: str, listed: Listed) -> "Command":
    module, _, attribute = listed.where.partition(":")
    command = getattr(import_module(f".commands.{module}", __package__), attribute)
    if isinstance(command, typer.Typer):
        return _prepare(get_group(command))
    alone = typer.Typer(add_completion=False)
    alone.command(name)(command)
    return _prepare(get_command(alone))


def _prepare(command: "Command") -> "Command":
    """Have a command, and those below it, show plain help with its examples, and report its errors in a sentence."""
    for one in getattr(command, "commands", {}).values():
        _prepare(one)
    command.rich_markup_mode = None  # type: ignore[attr-defined]  # Rich takes longer to import than Typer
    command.help = _EXAMPLES.sub("\n\n\b\n", command.help or "")  # \b: lines as they are
    run = command.invoke

    def invoke(context: "Context") -> Any:
        with reported(context.command_path):
            return run(context)

    command.invoke = invoke  # type: ignore[method-assign, assignment]
    return command


app = typer.Typer(
    name="mew",
    cls=_Commands,
    help="A workspace where people, AI agents and MCP servers work in one visible stream (MEW Protocol v0.4).",
    epilog=_EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": _WIDTH_MAX},
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="MEW_DEBUG", help="Show a traceback if something goes wrong."),
    ] = False,
) -> None:
    if os.environ.get("NO_COLOR"):
        context.color = False
    if show_version:
        from importlib.metadata import version  # slow to import

        typer.echo(f"mew {version('mew-protocol')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        typer.echo(f"\n{hint()}")


def hint(here: Path | None = None) -> str:
    """Say what to do next, from what is in this folder and above."""
    folder = here or Path.cwd()
    found = next(
        (one / name for one in (folder, *folder.parents) for name in _SPACE_FILES if (one / name).is_file()),
        None,
    )
    if found is None:
        return "There is no space.yaml here. Run 'mew init' to write one, then 'mew up' to start it."
    from mew.gateway.address_file import read_address

    shown = os.path.relpath(found, folder) if found.is_relative_to(folder) else found
    running = read_address(found)
    if running is None:
        return f"The space in {shown} is not running. Start it with 'mew up'."
    return (
        f"The space in {shown} is running at {running}. 'mew proposals' shows what waits for your decision,"
        " 'mew tail' what happens."
    )


def main() -> None:
    """Run the command line and end the process with one of the codes of `ExitCode`."""
    try:
        app()
    except BaseException as error:
        end(error)
