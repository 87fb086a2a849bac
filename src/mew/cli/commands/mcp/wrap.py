"""`mew wrap`: an approval layer in front of one MCP server, in one line."""

import logging
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mew.cli.browser import browser_command, open_in_browser
from mew.cli.errors import CommandError
from mew.cli.event_loop import fast_loop
from mew.protocol.visible import visible

from .host_options import Expire, HostKind, HttpAddress, Wait, read_address

if TYPE_CHECKING:
    from mew.mcp_bridge.server.settings import Command, Endpoint
    from mew.mcp_bridge.wrap.settings import RunningWrap, WrapSettings

__all__ = ["wrap"]

_LINE_CHARS_MAX: Final = 2_000
_DIED: Final = 1
_WRONG: Final = 2


def wrap(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND…",
            help="The command that starts the server, after --, or the URL of a server.",
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="PATTERN", help="Tools to call without asking, like 'read_*'. Repeatable."
        ),
    ] = None,
    allow_resource: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-resource",
            metavar="PATTERN",
            help="Resources to read without asking, by URI, like 'file:///data/**'. Repeatable.",
        ),
    ] = None,
    allow_prompt: Annotated[
        list[str] | None,
        typer.Option("--allow-prompt", metavar="PATTERN", help="Prompts to get without asking. Repeatable."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option("--deny", metavar="PATTERN", help="Tools that are never called. Repeatable."),
    ] = None,
    hide: Annotated[
        list[str] | None,
        typer.Option("--hide", metavar="PATTERN", help="Tools that hosts do not see. Repeatable."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="File with rules (hide, deny, ask, allow, limits); read again when it changes.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help="HTTP header for a server at a URL; ${VARIABLE} is replaced from the environment. Repeatable.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the server. Default: derived from its command.")
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", "-p", min=0, max=65_535, help="Port of the gateway; 0 for any free port."),
    ] = 0,
    http: HttpAddress = None,
    wait: Wait = 50.0,
    expire: Expire = 3_600.0,
    host: HostKind = None,
    *,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep no journal: everything is lost when it stops.")
    ] = False,
    unconfined: Annotated[
        bool,
        typer.Option("--unconfined", help="Let the server read the state of mew, including your tokens."),
    ] = False,
    keep_token: Annotated[
        bool,
        typer.Option(
            "--keep-token",
            help="Keep the token that approves in a file: every program of yours can then approve.",
        ),
    ] = False,
    scan: Annotated[
        bool,
        typer.Option("--scan", help="Print a policy made from what the server's tools say, and stop."),
    ] = False,
    in_place: Annotated[bool, typer.Option("--in-place", hidden=True)] = False,  # for 'mew mcp uninstall'
) -> None:
    """Put an approval layer in front of an MCP server: calls you did not allow wait for your approval.

    Example: mew wrap --allow 'read_*' -- npx -y @modelcontextprotocol/server-filesystem /data
    """
    # Here, so that other commands start without them.
    from mew.gateway.logs import LogFormat, LogLevel, set_up
    from mew.mcp_bridge.policy.policy import PolicySettings
    from mew.mcp_bridge.wrap.server_name import command_digest, name_of, participant_name
    from mew.mcp_bridge.wrap.settings import WrapSettings

    set_up(LogFormat.TEXT, LogLevel.WARNING)
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it says with a traceback what hosts are told
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it names what may be secret
    words = command or []
    if not words:
        raise CommandError(
            "what is to be wrapped? give the command after --, as in: mew wrap -- mcp-server-time"
        )
    if name is not None and participant_name(name) != name:
        raise CommandError(f"--name: {name!r} will not do; {participant_name(name)!r} would")
    address = None if http is None else read_address(http)
    called, server = name or name_of(words), _server(words, header or [], unconfined=unconfined)
    if scan:
        _scan(called, server)
        return
    _run(
        WrapSettings(
            name=called,
            command=None if name else command_digest(words),
            policy=PolicySettings(
                hide=_rules("--hide", hide),
                deny=_rules("--deny", deny),
                allow=(
                    *_rules("--allow", allow),
                    *_rules("--allow-resource", allow_resource, "resources/read"),
                    *_rules("--allow-prompt", allow_prompt, "prompts/get"),
                ),
            ),
            policy_file=policy,
            port=port,
            ephemeral=ephemeral,
            keep_token=keep_token,
            http=address,
            server=server,
            wait_s=wait,
            open_s=expire,
            host=host,
        )
    )


def _run(wrapping: "WrapSettings") -> None:
    from mew.client.errors import MewError
    from mew.client.participant.participant import run_program
    from mew.gateway.config.value import ConfigError
    from mew.mcp_bridge.server.errors import ServerUnavailable
    from mew.mcp_bridge.wrap.state_folder import StateFolderError
    from mew.mcp_bridge.wrap.wrap import wrap as run

    def pass_on(line: str) -> None:
        typer.echo(f"{wrapping.name} | {line}", err=True)

    try:
        run_program(
            lambda: run(wrapping, os.environ, lambda where: _say(where, wrapping), pass_on, _open_page),
            loop_factory=fast_loop(),
        )
    except ServerUnavailable as error:
        _tell(f"{wrapping.name}: {error}")
        raise typer.Exit(_DIED if error.worked else _WRONG) from None
    except (StateFolderError, ConfigError, MewError, OSError, ValueError) as error:
        raise CommandError(str(error)) from error


def _scan(name: str, server: "Command | Endpoint") -> None:
    """Print a policy that is made from what the tools of the server say of themselves."""
    import asyncio

    from mew.client.errors import RpcError
    from mew.mcp_bridge.policy.scan import proposed_policy
    from mew.mcp_bridge.server.bridge import Bridge
    from mew.mcp_bridge.server.errors import ServerUnavailable
    from mew.mcp_bridge.server.settings import ServerSettings

    async def listed() -> list[dict[str, Any]]:
        settings = ServerSettings(server=server, restart="never")
        async with Bridge(settings, tell=lambda line: typer.echo(f"{name} | {line}", err=True)) as bridge:
            return await bridge.tools()

    try:
        tools = asyncio.run(listed())
    except (ServerUnavailable, RpcError) as error:
        raise CommandError(f"{name}: {error}") from error
    typer.echo(proposed_policy(name, tools), nl=False)


def _say(where: "RunningWrap", wrapping: "WrapSettings") -> None:
    """How to go on, where the host shows it or keeps it in its log."""
    from mew.mcp_bridge.server.settings import Command

    from .server_options import UNPROTECTED

    if isinstance(wrapping.server, Command) and not wrapping.server.hidden:
        _tell(f"warning: {UNPROTECTED}")
    _tell(f"{wrapping.name!r} is in a space of its own, at {where.gateway}")
    if where.hosts is None and sys.stdin.isatty():
        _tell("this is for an MCP host to start ('mew mcp install' has it do so); Ctrl-D ends it")
    if where.hosts is not None:
        _tell(f"hosts connect to {where.hosts} with the secret in {where.secret} as their bearer")
    _tell(f"{_without_asking(wrapping)} wait for you{_how_to_approve(wrapping)}; in another terminal:")
    _tell(f"  mew proposals --wrapped {where.name}    mew approve ID    mew reject ID")
    if not wrapping.ephemeral:
        _tell(f"what happened is kept: mew audit list --config {shlex.quote(str(where.file))}")


def _how_to_approve(wrapping: "WrapSettings") -> str:
    from mew.mcp_bridge.wrap.state_folder import wrap_seal

    if wrapping.keep_token:
        return ", and your token is in a file, with which every program of yours can approve"
    try:
        chosen = datetime.fromtimestamp(wrap_seal(os.environ).stat().st_mtime, UTC)
    except (OSError, ValueError):
        if browser_command(os.environ, "") is not None:
            return ", on a page that opens in your browser"
        return "; to approve at a terminal, run 'mew token seal --wrapped' once and start the host again"
    # Said each time: whoever did not choose it sees that somebody did.
    return f" and for the passphrase that was chosen on {chosen:%Y-%m-%d at %H:%M} UTC"


async def _open_page(where: "RunningWrap", token: str) -> None:
    """Sign the reviewer in on the page, in their browser; without one, they approve at a terminal."""
    from mew.cli.page_link import page_link
    from mew.client.errors import MewError

    if browser_command(os.environ, "") is None:
        return
    try:
        link = await page_link(where.gateway, where.name, token)
    except (MewError, CommandError) as error:
        _tell(f"the page cannot be opened: {error}")
        return
    if not await open_in_browser(os.environ, link):
        _tell("the page cannot be opened: the browser does not start")


def _without_asking(wrapping: "WrapSettings") -> str:
    if wrapping.policy_file is not None:
        return f"calls that {wrapping.policy_file} does not allow"
    rules = [str(rule).partition(":")[2] for rule in wrapping.policy.allow]
    return f"calls other than {', '.join(dict.fromkeys(rules))}" if rules else "all calls"


def _server(words: list[str], headers: list[str], *, unconfined: bool) -> "Command | Endpoint":
    """Started as the host would start it, with the environment it gave us, but without sight of our state."""
    from mew.mcp_bridge.server.settings import is_ours

    from .server_options import confine, read_server

    is_url = len(words) == 1 and words[0].startswith(("http://", "https://"))
    passed = [] if is_url else [name for name in os.environ if not is_ours(name)]
    server = read_server(words, env=passed, cwd=None, headers=headers, environ=os.environ)
    if unconfined:
        return server
    return confine(server, token=None, environ=os.environ, here=Path.cwd())


def _rules(option: str, written: list[str] | None, method: str = "tools/call") -> tuple[str, ...]:
    """The patterns as rules about calls."""
    from mew.proposals.written_rule import CallRule
    from mew.protocol.errors import InvalidCapability

    rules = tuple(f"{method}:{pattern}" for pattern in written or ())
    for rule in rules:
        try:
            CallRule(rule)
        except InvalidCapability as error:
            raise CommandError(f"{option}: {str(error).partition(' ')[2]}") from error
    return rules


def _tell(line: str) -> None:
    typer.echo(f"mew wrap: {visible(line, _LINE_CHARS_MAX)}", err=True)
