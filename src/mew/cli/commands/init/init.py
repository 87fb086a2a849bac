"""`mew init`: write a space.yaml to begin with."""

import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from mew.cli import completion
from mew.cli.errors import CommandError
from mew.protocol.visible import visible

from .host_import import Imported, NoServers, imported
from .new_files import put_down, put_secrets
from .templates import TEMPLATES, rendered, space_id

__all__ = ["init"]

_PORT: Final = 8080
_FIRST: Final = "files"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder; created if it does not exist.")
    ] = Path(),
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            "-t",
            metavar="NAME",
            help=f"One of {', '.join(TEMPLATES)}.",
            autocompletion=completion.templates,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Import the MCP servers of a host's configuration file, such as mcp.json.",
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", "-s", metavar="NAME", help="Name of the space. Default: the name of the folder."
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", "-p", min=0, max=65_535, help="Port of its gateway; 0 for any free port."),
    ] = _PORT,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask questions.")] = False,
) -> None:
    """Write a commented space.yaml and the files it needs.

    Examples:
      mew init demo --template files --yes && cd demo && mew up
      mew init --from ~/.cursor/mcp.json
    """
    asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if source is not None and template is not None:
        raise CommandError("--from and --template: give one of them")
    if template is not None and template not in TEMPLATES:
        raise CommandError(f"no template {template!r}; there is {', '.join(TEMPLATES)}")
    suggested = space_id(folder.resolve().name) if space is None else _checked(space)
    if asks:
        if source is None and template is None:
            template = _chosen()
        if space is None:
            suggested = _checked(typer.prompt("Name of the space", default=suggested))
    if source is None:
        _put(folder, rendered(template or _FIRST, space=suggested, port=port))
    else:
        found = _imported(source, suggested, port)
        _put(folder, {Path("space.yaml"): found.text}, found)


def _imported(source: Path, space: str, port: int) -> Imported:
    try:
        return imported(source.read_text(encoding="utf-8"), source=source.name, space=space, port=port)
    except NoServers as error:
        raise CommandError(f"{source}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{source}: {getattr(error, 'strerror', None) or 'is no text'}") from error


def _chosen() -> str:
    names = list(TEMPLATES)
    for number, name in enumerate(names, 1):
        line = f"  {number}  {name:10} {TEMPLATES[name].does}"
        typer.echo(textwrap.fill(line, shutil.get_terminal_size().columns, subsequent_indent=" " * 16))
    while True:
        said = typer.prompt("Template", default="1").strip()
        if said in names:
            return str(said)
        if said.isdecimal() and 1 <= int(said) <= len(names):
            return names[int(said) - 1]
        typer.echo(f"expected a number from 1 to {len(names)}, or a name")


def _checked(space: str) -> str:
    if space_id(space) != space:
        raise CommandError(f"{visible(space)!r} is no name of a space; {space_id(space)!r} would be")
    return space


def _put(folder: Path, files: Mapping[Path, str], found: Imported | None = None) -> None:
    made, kept = put_down(folder, files)
    for path in made:
        typer.echo(f"wrote {folder / path}")
    for path in kept:
        typer.echo(f"kept  {folder / path}, which was there")
    if found is not None:
        if found.secrets:
            secrets = put_secrets(folder, found.secrets)
            typer.echo(f"wrote {secrets}: the values of variables, for your eyes only")
        for note in found.notes:
            typer.echo(f"note: {visible(note)}")
    there = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    typer.echo(f"\nStart it:  {there}mew up")
