"""From a space.yaml to what is started: finds a port and the tokens, and checks what can be checked before."""

import errno
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mew.gateway.address_file import read_address
from mew.gateway.auth.tokens import load_tokens, token_path, token_variable
from mew.gateway.config.loader import Config, ConfigError
from mew.gateway.config.settings import ParticipantConfig

from .env_file import read_env
from .launch import LaunchPlan, plan
from .participant import LaunchContext, Token
from .presence import PresenceProbe
from .program import MARK

__all__ = ["Prepared", "logs_folder", "prepare"]

_OURS: Final = ("MEW_GATEWAY", "MEW_SPACE", "MEW_AS", "MEW_TOKEN", "MEW_TOKEN_FILE", MARK)


@dataclass(frozen=True, slots=True)
class Prepared:
    """`url` is where participants find the gateway; `environ` is what all programs are given beside their own."""

    plan: LaunchPlan
    watch: PresenceProbe
    url: str
    environ: Mapping[str, str] = field(repr=False)


def prepare(
    config: Config, environ: Mapping[str, str], *, port: int | None = None, ephemeral: bool = False
) -> Prepared:
    """Make the tokens there are none of, and choose the port.

    Raises:
        ConfigError: something in the file cannot be started, or the port is taken; one sentence.
    """
    load_tokens(config, environ)
    known = {**environ, **read_env(config.state_dir)}
    tokens = {
        (space.id, str(one.id)): _token(config, space.id, one, environ)
        for space in config.spaces.values()
        for one in space.participants.values()
    }
    chosen = _free_port(config, config.server.port if port is None else port)
    server = replace(config.server, port=chosen)
    url = server.local_url(config.tls)
    here = replace(server, public_url=None).local_url(config.tls)
    secrets = _everyones(config, environ)
    given = LaunchContext(
        python=sys.executable,
        url=url,
        port=chosen,
        logs=logs_folder(config.state_dir),
        environ=known,
        gateway_environ=secrets,
    )
    watching = {
        space: tuple(token.text for (of, _), token in tokens.items() if of == space and token.text)
        for space in config.spaces
    }
    return Prepared(
        plan(config, given, tokens, ephemeral=ephemeral),
        PresenceProbe(here, watching, None if config.tls is None else config.tls.cert),
        url,
        {name: value for name, value in environ.items() if name not in _OURS and name not in secrets}
        | {MARK: str(config.state_dir)},
    )


def logs_folder(state: Path) -> Path:
    return state / "logs"


def _everyones(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """The tokens that the environment holds, by variable: they are for the gateway, and for nobody else."""
    variables = {token_variable(who) for space in config.spaces.values() for who in space.participants}
    return {name: environ[name] for name in variables if name in environ}


def _token(config: Config, space: str, participant: ParticipantConfig, environ: Mapping[str, str]) -> Token:
    file = token_path(config, space, participant.id)
    if file.is_file():
        return Token(file.read_text(encoding="ascii").strip(), file)
    if participant.tokens:
        return Token(participant.tokens[0])
    return Token(environ.get(token_variable(participant.id), "").strip())  # empty: it is sealed, for a person


def _free_port(config: Config, wanted: int) -> int:
    """The port, if nobody has it; any that is free for 0.

    Raises:
        ConfigError: somebody has it.
    """
    running = read_address(config.file)
    if running is not None:
        raise ConfigError(
            f"a gateway for {config.file} runs already, at {running}; 'mew down' ends what 'mew up' began"
        )
    host = config.server.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ConfigError(
                    f"port {wanted} is taken by another program; choose one with --port, or 0 for any that is free"
                ) from None
            raise ConfigError(f"cannot listen on {host}:{wanted}: {error.strerror}") from None
        port: int = probe.getsockname()[1]
    return port
