"""`mew token`: whose tokens there are beside a space.yaml and where; show, replace or seal one."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.table import Column
from rich.text import Text

from mew.cli import completion
from mew.cli.errors import CommandError
from mew.cli.files import new_file
from mew.cli.locate.login import SpaceFileOption, SpaceOption
from mew.cli.locate.space_file import SpaceFile, require_space_file, signal_reload
from mew.cli.passphrase import new_passphrase, unsealed
from mew.cli.render.table import console, name, put, table
from mew.cli.render.text import note, say, say_json
from mew.gateway.auth.sealed import SealedToken, read_sealed, seal, sealed_path, write_sealed
from mew.gateway.auth.tokens import token_path, token_variable
from mew.gateway.config.value import ConfigError
from mew.mcp_bridge.wrap.server_name import YOU
from mew.mcp_bridge.wrap.state_folder import wrap_seal
from mew.protocol.envelope import ParticipantId
from mew.protocol.visible import named

__all__ = ["token"]

token = typer.Typer(
    help=(
        "List the tokens beside the space.yaml, show one, make a new one, or seal one.\n\n"
        "Examples:\n  mew token\n  mew token show agent"
    ),
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Whose = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Whose token.", autocompletion=completion.configured_participants),
]
_BYTES: Final = 32
_BYTES_MAX: Final = 16_384


class StoredToken(NamedTuple):
    """A token of somebody's, and where it is: a file, the space.yaml, or the environment."""

    space: str
    who: str
    where: str
    file: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"space": self.space, "participant": self.who, "where": self.where}


@token.callback(invoke_without_command=True)
def token_list(
    context: typer.Context,
    config: SpaceFileOption = None,
    space: SpaceOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    found = list(_stored_tokens(config, space))
    if as_json:
        say_json([one.as_dict() for one in found])
        return
    out = console()
    rows = table(
        out, Column("who", no_wrap=True), Column("space", no_wrap=True), Column("token", overflow="fold")
    )
    for one in found:
        rows.add_row(name(one.who), Text(named(one.space)), Text(one.where))
    put(out, rows)


@token.command("show")
def token_show(
    whose: Whose, config: SpaceFileOption = None, space: SpaceOption = None, *, as_json: AsJson = False
) -> None:
    """Print the token of a participant.

    Example: MEW_TOKEN=$(mew token show agent) python agent.py
    """
    folder = require_space_file(config)
    where = folder.space(space)
    held = folder.token(where, whose)
    if held is None:
        raise CommandError(folder.why_no_token(where, whose))
    if isinstance(held, SealedToken):
        held = unsealed(held, whose)
    text = _read(held) if isinstance(held, Path) else held
    if as_json:
        say_json({"participant": whose, "token": text})
    else:
        typer.echo(text)


@token.command("new")
def token_new(
    whose: Whose, config: SpaceFileOption = None, space: SpaceOption = None, *, as_json: AsJson = False
) -> None:
    """Replace the token of a participant, and tell the gateway if it runs here.

    Example: mew token new agent
    """
    folder = require_space_file(config)
    where = folder.space(space)
    member = next((one for one in folder.config.spaces[where].participants.values() if one.id == whose), None)
    if member is None:
        raise CommandError(folder.why_no_token(where, whose))
    path = token_path(folder.config, where, whose)
    _prepare(path)
    with new_file(path, force=True) as file:
        file.write(f"{secrets.token_urlsafe(_BYTES)}\n".encode())
    sealed_path(path).unlink(missing_ok=True)
    told = signal_reload(folder.path)
    _remark([one.where for one in _of(folder, where, whose) if one.file is None], told=told)
    if as_json:
        say_json({"participant": whose, "file": str(path), "gateway_told": told})
    else:
        say(f"{named(whose)} has a new token in {path}")


@token.command("seal")
def token_seal(
    whose: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Whose token.")] = None,
    config: SpaceFileOption = None,
    space: SpaceOption = None,
    *,
    wrapped: Annotated[
        bool, typer.Option("--wrapped", help="Yours, in the spaces of all servers that 'mew wrap' wraps.")
    ] = False,
) -> None:
    """Put a person's token behind a passphrase: no file holds it then, and commands ask for it at the terminal.

    Changing it takes the passphrase before. What was wrapped before a first one has to be started again.

    Examples:
      mew token seal you
      mew token seal --wrapped
    """
    if wrapped is (whose is not None):
        raise CommandError("name one participant, or use --wrapped for the servers that 'mew wrap' wraps")
    if whose is None:
        path = wrap_seal(os.environ)
        _seal(path, YOU)
        say(f"{YOU} approves with this passphrase in every space that 'mew wrap' makes from now on")
        return
    folder = require_space_file(config)
    where = folder.space(space)
    member = folder.config.spaces[where].participants.get(ParticipantId(whose))
    if member is None:
        raise CommandError(folder.why_no_token(where, whose))
    if member.launch.keys() & {"command", "mcp_server"}:
        raise CommandError(
            f"{whose} is a program that 'mew up' starts: nobody could type a passphrase for it"
        )
    path = token_path(folder.config, where, whose)
    _seal(sealed_path(path), whose)
    path.unlink(missing_ok=True)
    told = signal_reload(folder.path)
    _remark([one.where for one in _of(folder, where, whose) if one.file is None], told=told)
    say(f"{named(whose)} has a sealed token: commands ask for the passphrase")


def _seal(path: Path, whose: str) -> None:
    try:
        before = read_sealed(path)
        if before is not None:
            unsealed(before, whose)
        write_sealed(path, seal(new_passphrase(whose)))
    except ConfigError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _remark(others: list[str], *, told: bool) -> None:
    if others:
        note(f"still valid beside it: the token in {' and that in '.join(others)}")
    if told:
        note("the gateway has been told; who is connected with the old one stays until they connect again")
    else:
        note("no gateway runs here now; one elsewhere takes it after SIGHUP or a restart")


def _stored_tokens(config: Path | None, space: str | None) -> Iterator[StoredToken]:
    folder = require_space_file(config)
    for one in (
        folder.config.spaces.values() if space is None else [folder.config.spaces[folder.space(space)]]
    ):
        for who in one.participants:
            found = _of(folder, one.id, who)
            yield from found or [StoredToken(one.id, who, "none yet: the gateway makes it when it starts")]


def _of(folder: SpaceFile, space: str, who: str) -> list[StoredToken]:
    member = folder.config.spaces[space].participants[ParticipantId(who)]
    path = token_path(folder.config, space, who)
    found = [StoredToken(space, who, str(one), one) for one in (path, sealed_path(path)) if one.is_file()]
    if member.tokens:
        found.append(StoredToken(space, who, str(folder.path)))
    if folder.environ.get(token_variable(who), "").strip():
        found.append(StoredToken(space, who, f"${token_variable(who)}"))
    return found


def _read(file: Path) -> str:
    try:
        return file.read_bytes()[:_BYTES_MAX].decode("ascii").strip()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandError(f"{file}: expected a token of printable ASCII, is not one") from None


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{path.parent}: {error.strerror}") from error
