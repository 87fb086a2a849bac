"""`mew mcp`: a space as an MCP server, for any MCP host."""

import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from mew.cli.errors import CommandError
from mew.cli.event_loop import fast_loop
from mew.cli.locate.login import (
    AsOption,
    GatewayOption,
    Login,
    LoginOptions,
    SpaceFileOption,
    SpaceOption,
    TokenFileOption,
    TokenOption,
    WrappedOption,
    find_login,
)

from .host_options import Expire, HostKind, HttpAddress, Wait, read_address
from .install import install, uninstall

if TYPE_CHECKING:
    from mew.mcp_bridge.host import HostSettings

__all__ = ["mcp"]

_FIRST_S: Final = 15.0
_RECALLED: Final = 1_000

mcp = typer.Typer(add_completion=False)
mcp.command()(install)
mcp.command()(uninstall)


@mcp.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    gateway: GatewayOption = None,
    space: SpaceOption = None,
    who: AsOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    config: SpaceFileOption = None,
    wrapped: WrappedOption = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="NAME", help="Serve the tools of this participant only, under their own names."
        ),
    ] = None,
    wait: Wait = 50.0,
    expire: Expire = 3_600.0,
    host: HostKind = None,
    http: HttpAddress = None,
    secret: Annotated[
        Path | None,
        typer.Option(
            "--secret",
            metavar="PATH",
            help="File with the secret that hosts need over HTTP. Default: .mew/mcp/NAME.secret.",
        ),
    ] = None,
    *,
    no_own_tools: Annotated[
        bool, typer.Option("--no-own-tools", help="Do not offer mew's own tools, such as mew_chat.")
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Over HTTP on this machine, require no secret.")
    ] = False,
) -> None:
    """Serve a space to MCP hosts: they use the tools of its participants, with approval if it is needed.

    Example: mew mcp --gateway ws://127.0.0.1:8080 --space demo --token-file host.token
    """
    if context.invoked_subcommand is not None:
        return
    # Here, so that other commands start without them.
    from mew.mcp_bridge.host import HostSettings

    flags = LoginOptions(
        gateway=gateway,
        space=space,
        who=who,
        token=token,
        token_file=token_file,
        config=config,
        wrapped=wrapped,
    )
    if http is None and (secret is not None or open_):
        raise CommandError("--secret and --open are for --http")
    if secret is not None and open_:
        raise CommandError("--secret and --open: give one of them")
    settings = HostSettings(only=only, own_tools=not no_own_tools, wait_s=wait, open_s=expire, host=host)
    if http is not None and open_:
        _check_is_here(read_address(http)[0])
    place = None if http is None else _Place(*read_address(http), (config or Path()).parent, secret, open_)
    login = find_login(flags)
    _run(lambda: _served(login, settings, place))


def _check_is_here(host: str) -> None:
    from mew.mcp_bridge.host.transport.http import is_loopback

    if not is_loopback(host):
        raise CommandError(f"--open: others could come in at {host}; it goes with 127.0.0.1 only")


class _Place(NamedTuple):
    """Where to serve over HTTP, and what it takes to come in there."""

    host: str
    port: int
    folder: Path
    secret: Path | None
    is_open: bool


async def _served(login: Login, settings: "HostSettings", place: _Place | None) -> None:
    import mew
    from mew.mcp_bridge.host import serve_http, serve_stdio

    recall = 0 if login.space is None else _RECALLED
    async with mew.connect(
        login.url, space=login.space, token=login.token, first_within_s=_FIRST_S, recall=recall
    ) as me:
        if login.who is not None and me.id != login.who:
            raise CommandError(f"the token is that of {me.id!r}, and not of {login.who!r} as --as says")
        if place is None:
            await serve_stdio(me, settings)
            return
        path = place.secret or place.folder / ".mew" / "mcp" / f"{me.id}.secret"
        known = _secret(path, is_open=place.is_open)

        def ready(url: str) -> None:
            how = "with no secret" if known is None else f"with the secret in {path}"
            typer.echo(f"mew mcp is {me.id} in {me.space}, for hosts at {url}, {how}", err=True)

        try:
            await serve_http(me, settings, host=place.host, port=place.port, secret=known, ready=ready)
        except OSError as error:
            raise CommandError(f"--http {place.host}:{place.port}: {error.strerror or error}") from error


def _secret(path: Path, *, is_open: bool) -> str | None:
    from mew.mcp_bridge.host.transport.http import secret_in

    if is_open:
        return None
    try:
        return secret_in(path)
    except ValueError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _run(serving: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Until the host has gone, or somebody ends us; both are a good end."""
    from mew import MewError
    from mew.client.participant.participant import run_program
    from mew.gateway.logs import LogFormat, LogLevel, set_up

    set_up(LogFormat.TEXT, LogLevel.WARNING)
    for noisy in ("mcp", "uvicorn"):  # they say with a traceback what hosts are told
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    try:
        run_program(serving, loop_factory=fast_loop())
    except (MewError, ValueError) as error:
        raise CommandError(str(error)) from error
