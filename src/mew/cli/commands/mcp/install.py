"""`mew mcp install` and `uninstall`: our servers in the configuration of an MCP host."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mew.cli.edited_file import Consent, change_file
from mew.cli.errors import CommandError
from mew.cli.locate.login import (
    AsOption,
    GatewayOption,
    Login,
    LoginOptions,
    SpaceFileOption,
    SpaceOption,
    TokenFileOption,
    find_login,
)
from mew.mcp_bridge.host_config.hosts import (
    HostConfigFile,
    HostEnvironment,
    InstallScope,
    KnownHost,
    config_file_of,
)
from mew.mcp_bridge.host_config.jsonc import InvalidJson
from mew.mcp_bridge.host_config.servers import HostConfigError, installed, ours, uninstalled, wrapped
from mew.mcp_bridge.wrap.server_name import name_of, participant_name

if TYPE_CHECKING:
    from mew.cli.locate.space_file import SpaceFile

__all__ = ["install", "uninstall"]

_NAME: Final = "mew"

HostName = Annotated[KnownHost, typer.Argument(metavar="HOST", help=f"{', '.join(KnownHost)}.")]
ForYouHere = Annotated[bool, typer.Option("--local", help="For you in this folder only (claude-code).")]
ForUser = Annotated[
    bool,
    typer.Option("--user", help="For you in every folder (always so in claude-desktop, zed and windsurf)."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write the file without asking.")]
PrintOnly = Annotated[bool, typer.Option("--print", help="Show the change, and write nothing.")]


def install(
    host: HostName,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND…", help="A server to wrap, instead of a space.", show_default=False
        ),
    ] = None,
    wrap_existing: Annotated[
        str | None,
        typer.Option("--wrap-existing", metavar="NAME", help="Wrap a server that the host already has."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="PATTERN", help="Tools of a wrapped server to call without asking."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="FILE", help="Rules for a wrapped server, as 'mew wrap' takes them."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the server in the host.")] = None,
    gateway: GatewayOption = None,
    space: SpaceOption = None,
    who: AsOption = None,
    token_file: TokenFileOption = None,
    config: SpaceFileOption = None,
    *,
    user: ForUser = False,
    local: ForYouHere = False,
    yes: Yes = False,
    print_only: PrintOnly = False,
) -> None:
    """Add 'mew mcp' (a space) or 'mew wrap' (a server) to the configuration of an MCP host, after confirmation.

    Example: mew mcp install claude-code --allow 'read_*' -- npx -y @modelcontextprotocol/server-filesystem .
    """
    scope, place = _place(host, user=user, local=local)
    is_shared = scope is InstallScope.PROJECT
    flags = LoginOptions(gateway=gateway, space=space, who=who, token_file=token_file, config=config)
    _check(flags, name, allow or policy, command, wrap_existing)
    mew = _mew(is_shared=is_shared)
    wrapping = [mew, "wrap", *(word for pattern in allow or () for word in ("--allow", pattern))]
    if policy is not None:
        wrapping += ["--policy", _path(policy, is_shared=is_shared)]
    if wrap_existing is not None:
        edit = partial(wrapped, place=place, name=wrap_existing, command=wrapping)
    elif command:
        naming = ["--name", participant_name(name)] if name else []
        started = [*wrapping, *naming, "--", *(command if is_shared else map(_from_anywhere, command))]
        edit = partial(installed, place=place, name=name or name_of(command), command=started)
    else:
        edit = partial(
            installed,
            place=place,
            name=name or _NAME,
            command=[mew, "mcp", *_options(flags, is_shared=is_shared)],
        )
    _change(host, place, edit, _consent(yes=yes, print_only=print_only))
    if command or wrap_existing is not None:
        called = participant_name(wrap_existing or name or name_of(command or []))
        typer.echo(
            "calls that need your approval open a page in your browser; in a terminal:"
            f" mew proposals --wrapped {called}",
            err=True,
        )
    else:
        typer.echo(
            "calls that need approval appear on the page ('mew page') and in 'mew proposals'", err=True
        )


def uninstall(
    host: HostName,
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the server; required if there are several.", show_default=False),
    ] = None,
    *,
    user: ForUser = False,
    local: ForYouHere = False,
    yes: Yes = False,
    print_only: PrintOnly = False,
) -> None:
    """Remove our server from the configuration of an MCP host; a wrapped server is restored.

    Example: mew mcp uninstall claude-code filesystem
    """
    _, place = _place(host, user=user, local=local)

    def edit(text: str) -> str:
        return uninstalled(text, place, name or _only(ours(text, place)))

    _change(host, place, edit, _consent(yes=yes, print_only=print_only))


def _check(
    flags: LoginOptions,
    name: str | None,
    allow: Sequence[str] | Path | None,
    command: Sequence[str] | None,
    wrap_existing: str | None,
) -> None:
    if command and wrap_existing:
        raise CommandError("a command and --wrap-existing: give one of them")
    if name is not None and wrap_existing:
        raise CommandError("--name: a server that is wrapped where it is keeps its name")
    if allow and not (command or wrap_existing):
        raise CommandError(
            "--allow is for a server that is wrapped (so is --policy); in a space the capabilities say what is allowed"
        )
    if (command or wrap_existing) and flags != LoginOptions():
        raise CommandError(
            "a server that is wrapped has a space of its own: leave out which gateway, space and token"
        )


def _options(flags: LoginOptions, *, is_shared: bool) -> list[str]:
    """How 'mew mcp' finds its space, wherever the host starts it, without a secret in it."""
    login = find_login(flags)
    at_url = flags.gateway or (flags.config is None and os.environ.get("MEW_GATEWAY", "").strip())
    space = [] if login.space is None else ["--space", login.space]
    if not at_url:
        folder = _folder(flags)
        _note_power(folder, login)
        where = ["--config", _path(folder.path, is_shared=is_shared)]
        if flags.token_file is None and login.who is not None:
            return [*where, *space, "--as", login.who]
    else:
        where = ["--gateway", login.url]
    if not isinstance(login.token, Path):
        raise CommandError(
            "a token is not written into the file of a host; put it into a file, and give --token-file"
        )
    return [*where, *space, "--token-file", _path(login.token, is_shared=is_shared)]


def _folder(flags: LoginOptions) -> "SpaceFile":
    from mew.cli.locate.space_file import find_space_file

    found = find_space_file(flags.config)
    assert found is not None, "a space that was reached through no space.yaml"
    return found


def _note_power(folder: "SpaceFile", login: Login) -> None:
    """Who installs an approval layer should know where nothing would have to be approved."""
    from mew.protocol.capability import Capability, CapabilitySet
    from mew.protocol.envelope import ParticipantId

    if login.who is None or login.space is None:
        return
    held = folder.config.spaces[login.space].capabilities_of(ParticipantId(login.who))
    if CapabilitySet(held).covers(Capability.parse("mcp/request:tools/call")):
        typer.echo(
            f"mew mcp install: {login.who!r} may call every tool there, so no call will wait for you",
            err=True,
        )


def _path(path: Path, *, is_shared: bool) -> str:
    """In full; in a file for everyone who works in this folder, as seen from there.

    Raises:
        CommandError: it is outside the folder, so that others have no such path.
    """
    if not is_shared:
        return os.path.abspath(path)
    try:
        return Path(os.path.abspath(path)).relative_to(Path.cwd()).as_posix()
    except ValueError:
        raise CommandError(
            f"{path} is outside this folder, and the file is for everyone who works here; install it with --user"
        ) from None


def _mew(*, is_shared: bool) -> str:
    """The program by its whole path, since hosts often have a PATH of their own; a shared file has no such path."""
    if is_shared:
        return "mew"
    beside = Path(sys.executable).with_name("mew.exe" if sys.platform == "win32" else "mew")
    found = str(beside) if beside.exists() else shutil.which("mew")
    if found is None:
        raise CommandError("the program 'mew' is not to be found; install it so that it is in the PATH")
    return os.path.abspath(found)


def _from_anywhere(word: str) -> str:
    """A path that is written as one from here, in full: a host may start the server in quite another folder."""
    first = word.replace("\\", "/").split("/")[0]
    is_program = "/" in word and os.access(word, os.X_OK) and Path(word).is_file()
    return os.path.abspath(word) if first in (".", "..") or is_program else word


def _only(names: Sequence[str]) -> str:
    if not names:
        raise HostConfigError("no server of ours is there")
    if len(names) > 1:
        raise HostConfigError(f"several servers of ours are there; say which: {', '.join(names)}")
    return names[0]


def _consent(*, yes: bool, print_only: bool) -> Consent:
    if yes and print_only:
        raise CommandError("--yes and --print: give one of them")
    return Consent.GIVEN if yes else Consent.REFUSED if print_only else Consent.ASKED


def _place(host: KnownHost, *, user: bool, local: bool) -> tuple[InstallScope, HostConfigFile]:
    if user and local:
        raise CommandError("--user and --local: give one of them")
    home = HostEnvironment(platform=sys.platform, home=Path.home(), folder=Path.cwd(), environ=os.environ)
    has_project = config_file_of(host, InstallScope.PROJECT, home) is not None
    by_default = InstallScope.PROJECT if has_project else InstallScope.USER
    scope = InstallScope.USER if user else InstallScope.LOCAL if local else by_default
    found = config_file_of(host, scope, home)
    if found is None:
        raise CommandError(f"--{scope}: {host} has nothing of that kind")
    return scope, found


def _change(host: KnownHost, place: HostConfigFile, edit: Callable[[str], str], consent: Consent) -> None:
    file = place.file

    def edited(text: str) -> str:
        try:
            return edit(text)
        except InvalidJson as error:
            with suppress(HostConfigError):
                typer.echo(edit(""), nl=False)  # as it would be in a file of its own
            raise CommandError(f"{file}: {error}; put it in by hand, or correct the file first") from error
        except HostConfigError as error:
            raise CommandError(f"{file}: {error}") from error

    if change_file(file, edited, consent):
        typer.echo(f"{file} is written; start {host} anew, or its servers", err=True)
    elif consent is not Consent.REFUSED:
        typer.echo(f"{file} is as it should be", err=True)
