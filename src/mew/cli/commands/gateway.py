"""`mew gateway`: serve the spaces of a space.yaml."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from mew.cli.event_loop import fast_loop
from mew.gateway.config.value import ConfigError
from mew.gateway.logs import LogFormat, LogLevel, set_up

__all__ = ["gateway"]

_logger = logging.getLogger(__name__)

_Ready: TypeAlias = Callable[[str], None]


def gateway(
    config: Annotated[Path, typer.Option("--config", "-c", help="The space.yaml.")] = Path("space.yaml"),
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65_535, help="Port to listen on; 0 for any free port."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to listen on; 0.0.0.0 for all.")
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option(help="Log lines for people or for programs.")
    ] = LogFormat.TEXT,
    log_level: Annotated[LogLevel, typer.Option(help="The lowest level that is logged.")] = LogLevel.INFO,
    trace: Annotated[
        Path | None, typer.Option(help="Write a JSON line for each envelope received, refused and delivered.")
    ] = None,
    redis: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="MEW_REDIS",
            show_envvar=False,
            help="Serve the spaces together with other nodes, over this Redis or Valkey; also MEW_REDIS.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1, max=256, help="Processes that serve the port together, one per core; needs --redis."
        ),
    ] = 1,
    *,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep no journal: everything is lost when it stops.")
    ] = False,
) -> None:
    """Serve the spaces of a space.yaml until stopped; SIGHUP reloads the file.

    Examples:
      mew gateway
      mew gateway --config space.yaml --port 8080
      mew gateway --config space.yaml --redis redis://localhost:6379
      mew gateway --workers 4 --redis redis://localhost:6379
    """
    # Here, so that other commands start without them.
    from mew.gateway.address_file import published_address
    from mew.gateway.config.loader import load_config
    from mew.gateway.server import serve
    from mew.gateway.systemd import notify
    from mew.journal.redis.address import RedisAddress

    set_up(log_format, log_level)
    try:
        _allow_many_connections()
        read = load_config(config, os.environ)
        try:
            shared = read.redis if redis is None else RedisAddress.parse(redis)
        except ValueError as error:
            raise ConfigError(f"--redis: {error}") from None

        def ready(url: str) -> None:
            stack.enter_context(published_address(read.file, url))
            line = f"mew gateway listens on {url}, spaces: {', '.join(read.spaces)}"
            if log_format is LogFormat.JSON:
                _logger.info(line)
            else:
                typer.echo(line, err=True)
            stack.callback(notify, "STOPPING=1")
            notify("READY=1")

        def run(ready: _Ready, reserved_port: int | None = None) -> None:
            serving = serve(
                read,
                os.environ,
                trace=trace,
                ready=ready,
                host=host,
                port=reserved_port or port,
                ephemeral=ephemeral,
                redis=shared,
                reuse_port=reserved_port is not None,
            )
            with asyncio.Runner(loop_factory=fast_loop()) as runner:
                runner.run(serving)

        with ExitStack() as stack:
            if workers == 1:
                run(ready)
            elif shared is None:
                raise ConfigError(
                    "--workers: they share their spaces over Redis; give its address with --redis"
                )
            elif trace is not None:
                raise ConfigError("--trace: several --workers cannot write one file; use one worker")
            else:
                server = read.server
                _run_workers(workers, run, ready, host or server.host, server.port if port is None else port)
    except ConfigError as error:
        _say(error)
        raise typer.Exit(2) from None


def _run_workers(count: int, run: Callable[[_Ready, int], None], ready: _Ready, host: str, port: int) -> None:
    from mew.gateway.workers import GatewayWorkers, reserve_port

    def serve(ready: _Ready) -> None:
        try:
            run(ready, reserved.getsockname()[1])
        except ConfigError as error:
            _say(error)
            raise

    with reserve_port(host, port) as reserved:
        code = GatewayWorkers(serve, count, ready).run()
    if code:
        raise typer.Exit(code)


def _say(error: ConfigError) -> None:
    typer.echo(f"mew gateway: {error}", err=True)


def _allow_many_connections() -> None:
    """As many as the system allows; what is set for a shell is often 1,024."""
    if sys.platform == "win32":
        return
    import resource  # not to be had on Windows

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
