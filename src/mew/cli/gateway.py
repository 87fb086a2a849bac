"""`mew gateway`: serve the spaces of a space.yaml."""

import asyncio
import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from mew.gateway.config import load_config
from mew.gateway.config_node import ConfigError
from mew.gateway.logs import LogFormat, set_up
from mew.gateway.server import serve
from mew.gateway.settings import Config

__all__ = ["gateway"]


def gateway(
    config: Annotated[
        Path, typer.Option("--config", "-c", help="The file that describes the spaces.")
    ] = Path("space.yaml"),
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65_535, help="Where to listen; 0 for any free port."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    log_format: Annotated[LogFormat, typer.Option(help="Lines for people or for machines.")] = LogFormat.TEXT,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    trace: Annotated[
        Path | None, typer.Option(help="Write a JSON line for each envelope received, refused and delivered.")
    ] = None,
) -> None:
    """Serve the spaces of a space.yaml until stopped; SIGHUP reads the file again.

    Example: mew gateway --config space.yaml --port 8080
    """
    set_up(log_format, log_level)
    try:
        read = load_config(config, os.environ)
        server = dataclasses.replace(
            read.server,
            host=read.server.host if host is None else host,
            port=read.server.port if port is None else port,
        )
        _run(dataclasses.replace(read, server=server), trace)
    except ConfigError as error:
        typer.echo(f"mew gateway: {error}", err=True)
        raise typer.Exit(2) from None


def _run(config: Config, trace: Path | None) -> None:
    def ready(url: str) -> None:
        names = ", ".join(config.spaces)
        typer.echo(f"mew gateway listens on {url}, spaces: {names}", err=True)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(config, os.environ, trace=trace, ready=ready))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # not to be had on Windows

    return uvloop.new_event_loop
