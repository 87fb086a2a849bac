"""`mew bridge`: an MCP server becomes a participant of a space."""

import logging
import os
from dataclasses import replace
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

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
    find_login,
)
from mew.protocol.visible import visible

if TYPE_CHECKING:
    from mew.client.client import Client
    from mew.mcp_bridge.server.bridge import Bridge
    from mew.mcp_bridge.server.settings import ServerSettings

__all__ = ["bridge"]

_LINE_CHARS_MAX: Final = 2_000
_FINGERPRINTS: Final = Path(".mew", "bridge")
_DIED: Final = 1
_WRONG: Final = 2


class RestartPolicy(StrEnum):
    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NEVER = "never"


def bridge(
    server: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URL | -- COMMAND…",
            help="URL of the server, or after -- the command that starts it.",
            show_default=False,
        ),
    ] = None,
    who: AsOption = None,
    gateway: GatewayOption = None,
    space: SpaceOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    config: SpaceFileOption = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="Environment variable for the server; without a value, it is passed on. Others are not. Repeatable.",
        ),
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help="The folder to start the server in.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help="HTTP header for a server at a URL; ${VARIABLE} is replaced from the environment. Repeatable.",
        ),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            "--ask",
            metavar="NAME",
            help="Who answers the server's questions. Default: whoever it works for. Repeatable.",
        ),
    ] = None,
    root: Annotated[
        list[str] | None,
        typer.Option(
            "--root",
            metavar="PATH",
            help="A folder or URI offered to the server as a root. Repeatable.",
        ),
    ] = None,
    restart: Annotated[
        RestartPolicy, typer.Option("--restart", help="When to restart the server.")
    ] = RestartPolicy.ALWAYS,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, max=86_400, help="Request timeout of the server, in seconds."),
    ] = 300.0,
    *,
    modern: Annotated[
        bool,
        typer.Option("--modern", help="Prefer MCP 2026-07-28 if the server also speaks an older version."),
    ] = False,
    unconfined: Annotated[
        bool,
        typer.Option("--unconfined", help="Let the server read the state of mew, including your tokens."),
    ] = False,
) -> None:
    """Make an MCP server a participant of a space, with its tools, resources and prompts.

    Example: mew bridge --as files -- npx -y @modelcontextprotocol/server-filesystem /data
    """
    # Here, so that other commands start without them.
    from mew.mcp_bridge.server.settings import Command, ServerSettings
    from mew.mcp_bridge.wrap.server_name import name_of

    from .server_options import UNPROTECTED, confine, read_root, read_server

    words = server or []
    settings = ServerSettings(
        server=read_server(words, env=env or (), cwd=cwd, headers=header or (), environ=os.environ),
        restart=restart.value,
        ask=ask or (),
        roots=[read_root(written) for written in root or ()],
        modern=modern,
        request_timeout_s=timeout,
    )
    flags = LoginOptions(
        gateway=gateway, space=space, who=who, token=token, token_file=token_file, config=config
    )
    login = find_login(flags)
    name = login.who or name_of(words)
    started = settings.server
    if not unconfined:
        started = confine(started, token=login.token, environ=os.environ, here=Path.cwd())
    if isinstance(started, Command) and not started.hidden:
        _tell(f"warning: {UNPROTECTED}")
    _run(login, name, replace(settings, server=started))


def _run(login: Login, name: str, settings: "ServerSettings") -> None:
    from mew.client.errors import ConnectError, Disconnected
    from mew.client.participant.participant import run_program
    from mew.gateway.logs import LogFormat, LogLevel, set_up
    from mew.mcp_bridge.server.errors import ServerUnavailable

    set_up(LogFormat.TEXT, LogLevel.INFO)
    # The SDK says with a traceback what is told in a sentence here; the other names what may be secret.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    kept = replace(settings, fingerprints=_FINGERPRINTS / f"{name}.json")
    try:
        run_program(lambda: _serve(login, name, kept), loop_factory=fast_loop())
    except ServerUnavailable as error:
        _tell(f"{name}: {error}")
        raise typer.Exit(_DIED if error.worked else _WRONG) from None
    except Disconnected as error:
        _tell(f"{name}: {error}")
        raise typer.Exit(_DIED) from None
    except (ConnectError, OSError, ValueError) as error:
        raise CommandError(str(error)) from error


async def _serve(login: Login, name: str, settings: "ServerSettings") -> None:
    from mew.client.client import connect
    from mew.mcp_bridge.server.bridge import Bridge

    def pass_on(line: str) -> None:
        typer.echo(f"{name} | {line}", err=True)

    async with (
        Bridge(settings, tell=pass_on) as served,
        connect(
            login.url, space=login.space, token=login.token, participant=login.who, first_within_s=inf
        ) as client,
    ):
        if login.who is not None and client.id != login.who:
            raise CommandError(f"the token is that of {client.id!r}, and not of {login.who!r} as --as says")
        _greet(served, client)
        await served.serve(client)


def _greet(served: "Bridge", client: "Client") -> None:
    terms = served.terms
    what = "the server"
    if terms is not None:
        said = [terms.server.get("title") or terms.server.get("name"), terms.server.get("version")]
        shown = " ".join(visible(text) for text in said if isinstance(text, str))
        what = f"{shown or what} (MCP {terms.version})"
    _tell(f"{what} is {client.id} in space {client.space}")


def _tell(line: str) -> None:
    typer.echo(f"mew bridge: {visible(line, _LINE_CHARS_MAX)}", err=True)
