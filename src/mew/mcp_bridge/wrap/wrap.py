"""Gateway, space, bridge and host side around one MCP server, in this process."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Final

from mew.client.client import Client, connect
from mew.gateway.address_file import published_address
from mew.gateway.auth.tokens import token_path, token_variable
from mew.gateway.config.loader import load_config
from mew.gateway.config.settings import Config, state_dir
from mew.gateway.server import Gateway
from mew.mcp_bridge.host import HostSettings, serve_http, serve_stdio
from mew.mcp_bridge.host.offers.tool_trust import ToolTrust
from mew.mcp_bridge.host.transport.http import secret_in
from mew.mcp_bridge.policy.policy import CallPolicy, PolicySettings
from mew.mcp_bridge.policy.policy_file import follow_policy, read_policy
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.settings import ServerSettings

from .reviewer import call_reviewer, lay_seal, private_tokens
from .server_name import HOST, YOU
from .settings import RunningWrap, WrapSettings
from .space_file import space_text
from .state_folder import StateFolderError, taken_place

__all__ = ["wrap"]

_RECALL: Final = 1_000  # so that what was proposed before a restart is known


async def wrap(
    wrapping: WrapSettings,
    environ: Mapping[str, str],
    ready: Callable[[RunningWrap], None],
    tell: Callable[[str], None],
    open_page: Callable[[RunningWrap, str], Awaitable[None]],
) -> None:
    """Serve a host through a space of its own, until it goes, or this is cancelled; then end all of it, in order.

    `ready` is told where it is, `tell` what the server writes to its standard error, and `open_page` the reviewer's
    token when a call waits and the reviewer is not there.

    Raises:
        NoPlace: the space cannot be kept.
        ConfigError: the gateway cannot start: the port is taken, the journal cannot be written.
        ServerUnavailable: the server never answered, or is gone for good.
        OSError, ValueError: hosts cannot be served there, or the secret for them is none.
        Disconnected: the connection to the space ended, say because somebody removed the server.
    """
    async with AsyncExitStack() as stack:
        file = await stack.enter_async_context(taken_place(wrapping.name, wrapping.command, environ))
        policy = CallPolicy(_rules(wrapping), host=HOST, server=wrapping.name, clock=monotonic)
        config, space = _config(file, wrapping, policy), file.parent.name
        kept = () if wrapping.keep_token else (YOU, HOST, wrapping.name)
        tokens = private_tokens(config, space, *kept)
        lay_seal(config, space, environ)
        variables = {token_variable(who): token for who, token in tokens.items()}
        gateway = await stack.enter_async_context(
            Gateway(config, variables, port=wrapping.port, ephemeral=wrapping.ephemeral)
        )
        stack.enter_context(published_address(file, gateway.url))

        def member(who: str) -> Client:
            token = tokens.get(who) or token_path(config, space, who)
            return connect(gateway.url, space=space, token=token, recall=_RECALL)

        async def bridged() -> None:
            settings = ServerSettings(server=wrapping.server, fingerprints=_fingerprints(config, wrapping))
            # It joins when its server has answered: who is there is asked at once for what it offers.
            async with Bridge(settings, tell=tell) as bridge, member(wrapping.name) as server:
                await bridge.serve(server)

        where = RunningWrap(space, gateway.url, file)
        host = await stack.enter_async_context(member(HOST))
        trust = await _trust(config, wrapping, policy)
        policy.on_change(lambda: trust.use(policy.tool_patterns))
        running = [bridged(), _served(host, wrapping, where, trust, policy, ready)]
        if wrapping.policy_file is not None:

            def use(rules: PolicySettings) -> None:
                policy.use(wrapping.policy.and_also(rules))
                _config(file, wrapping, policy)
                gateway.reload()

            running.append(follow_policy(wrapping.policy_file, use))
        if not wrapping.keep_token:
            running.append(call_reviewer(host, lambda: open_page(where, tokens[YOU])))
        await _until_one_ends(*running)


def _fingerprints(config: Config, wrapping: WrapSettings) -> Path | None:
    return None if wrapping.ephemeral else config.state_dir / "bridge" / f"{wrapping.name}.json"


def _rules(wrapping: WrapSettings) -> PolicySettings:
    file = wrapping.policy_file
    return wrapping.policy if file is None else wrapping.policy.and_also(read_policy(file))


async def _trust(config: Config, wrapping: WrapSettings, policy: CallPolicy) -> ToolTrust:
    path = None if wrapping.ephemeral else config.state_dir / "bridge" / f"{wrapping.name}.allowed.json"
    trust = ToolTrust(policy.tool_patterns, path)
    await asyncio.to_thread(trust.load)
    return trust


async def _served(
    host: Client,
    wrapping: WrapSettings,
    where: RunningWrap,
    trust: ToolTrust,
    policy: CallPolicy,
    ready: Callable[[RunningWrap], None],
) -> None:
    settings = HostSettings(
        only=wrapping.name,
        wait_s=wrapping.wait_s,
        open_s=wrapping.open_s,
        host=wrapping.host,
        trust=trust,
        policy=policy,
        approver=f"the user, who sees it on the page or with 'mew proposals --wrapped {where.name}'",
    )
    if wrapping.http is None:
        ready(where)
        await serve_stdio(host, settings)
        return
    address, port = wrapping.http
    file = state_dir(where.file) / "mcp" / f"{HOST}.secret"
    await serve_http(
        host,
        settings,
        host=address,
        port=port,
        secret=secret_in(file),
        ready=lambda url: ready(replace(where, hosts=url, secret=file)),
    )


async def _until_one_ends(*running: Coroutine[Any, Any, None]) -> None:
    """Run all; when one has ended, however it did, end the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in running]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


def _config(file: Path, wrapping: WrapSettings, policy: CallPolicy) -> Config:
    text = space_text(
        file.parent.name,
        wrapping.name,
        policy,
        ephemeral=wrapping.ephemeral,
        keep_token=wrapping.keep_token,
    )
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StateFolderError(f"{file}: the space cannot be kept here: {error.strerror}") from error
    return load_config(file, {})
