"""What a space.yaml and the folder beside it tell a command: where the gateway is, which space, whose token."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mew.gateway.address_file import read_address
from mew.gateway.auth.sealed import SealedToken, read_sealed, sealed_path
from mew.gateway.auth.tokens import token_path, token_variable
from mew.gateway.config.loader import Config, load_config
from mew.gateway.config.value import ConfigError
from mew.mcp_bridge.wrap.state_folder import running_wraps, wrap_file
from mew.protocol.envelope import ParticipantId, is_participant_id

from .journal import Failed

__all__ = ["Folder", "nearest", "nearest_file", "typed", "wrapped"]

_FILES: Final = ("space.yaml", ".mew/space.yaml")
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Folder:
    """One space.yaml, as read."""

    config: Config
    environ: Mapping[str, str] = field(repr=False)

    @property
    def file(self) -> Path:
        return self.config.file

    def url(self) -> str:
        """Where its gateway runs now, or should.

        Raises:
            Failed: that cannot be known.
        """
        if (running := read_address(self.file)) is not None:
            return running
        server = self.config.server
        if server.public_url is not None:
            return server.public_url
        if server.port == 0:
            raise Failed(
                f"{self.file}: its gateway takes any free port, and none runs; start it, or give --gateway"
            )
        host = _ANYWHERE.get(server.host, server.host)
        scheme = "http" if self.config.tls is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{server.port}"

    def space(self, named: str | None) -> str:
        """The id of the space.

        Raises:
            Failed: none is named and there are several, or there is none of that name.
        """
        spaces = self.config.spaces
        if named is None and len(spaces) > 1:
            raise Failed(f"{self.file}: there are the spaces {', '.join(spaces)}; choose one with --space")
        if named is not None and named not in spaces:
            raise Failed(f"{self.file}: no space {named!r}; there is {', '.join(spaces)}")
        return next(iter(spaces)) if named is None else named

    def members(self, space: str) -> str:
        """For a sentence."""
        return ", ".join(self.config.spaces[space].participants) or "nobody that it names"

    def person(self, space: str) -> str | None:
        """Who sits at a terminal here, if that can be known.

        Raises:
            Failed: the file says it with what is no text.
        """
        participants = self.config.spaces[space].participants
        alone = next(iter(participants)) if len(participants) == 1 else None
        return self._named(space, "default_participant") or alone

    def reviewer(self, space: str) -> str | None:
        """Who approves at a terminal here, if that can be known.

        Raises:
            Failed: as `person`.
        """
        return self._named(space, "reviewer") or self.person(space)

    def _named(self, space: str, key: str) -> str | None:
        node = self.config.spaces[space].launch.get(key)
        try:
            return None if node is None else node.string()
        except ConfigError as error:
            raise Failed(str(error)) from error

    def token(self, space: str, who: str) -> str | Path | SealedToken | None:
        """That of a participant: its file if there is one, sealed or not, else as the gateway would take it.

        Raises:
            Failed: its file holds no sealed token.
        """
        if is_participant_id(who):
            path = token_path(self.config, space, who)
            if path.is_file():
                return path
            try:
                sealed = read_sealed(sealed_path(path))
            except ConfigError as error:
                raise Failed(str(error)) from error
            if sealed is not None:
                return sealed
        member = self.config.spaces[space].participants.get(ParticipantId(who))
        if member is None:
            return None
        said = self.environ.get(token_variable(who), "").strip()
        return said or next(iter(member.tokens), None)

    def why_no_token(self, space: str, who: str) -> str:
        if ParticipantId(who) not in self.config.spaces[space].participants:
            return f"{self.file}: space {space!r} has no {who!r}; there is {self.members(space)}"
        if self._is_wrapped():
            return (
                f"{who} approves on the page that 'mew wrap' opens in your browser; to approve at a terminal, choose a"
                " passphrase with 'mew token seal --wrapped' and start the host again"
            )
        path = token_path(self.config, space, who)
        return f"{path}: no token yet; start the gateway once, which makes it, or give --token-file"

    def _is_wrapped(self) -> bool:
        try:
            return self.file == wrap_file(self.file.parent.name, self.environ)
        except ValueError:
            return False


def typed(config: Path | None, name: str | None, environ: Mapping[str, str]) -> Folder:
    """That of `--config` or `--wrapped`, one of which is given.

    Raises:
        Failed: there is none, or it is wrong.
    """
    if name is None:
        assert config is not None, "neither --config nor --wrapped"
        return _read(config, environ)
    try:
        file = wrap_file(name, environ)
    except ValueError as error:
        raise Failed(f"--wrapped: {error}") from None
    if read_address(file) is None:
        running = running_wraps(environ)
        there = f"there is {', '.join(running)}" if running else "nothing is wrapped now"
        raise Failed(f"--wrapped: no server runs wrapped as {name!r}; {there}")
    return _read(file, environ)


def nearest(here: Path, environ: Mapping[str, str]) -> Folder | None:
    """The first going upwards; one that belongs to another user is passed over, for it may be a trap."""
    file = nearest_file(here)
    return None if file is None else _read(file, environ)


def nearest_file(here: Path) -> Path | None:
    """Where that is, be it right or wrong."""
    places = (folder / name for folder in (here, *here.parents) for name in _FILES)
    return next((place for place in places if _is_ours(place)), None)


def wrapped(environ: Mapping[str, str]) -> Folder | None:
    """That of the one server that is wrapped now.

    Raises:
        Failed: there are several.
    """
    running = running_wraps(environ)
    if len(running) > 1:
        raise Failed(f"several servers are wrapped now; choose one with --wrapped: {', '.join(running)}")
    return _read(wrap_file(running[0], environ), environ) if running else None


def _read(file: Path, environ: Mapping[str, str]) -> Folder:
    try:
        return Folder(load_config(file, environ), environ)
    except ConfigError as error:
        raise Failed(str(error)) from error


def _is_ours(file: Path) -> bool:
    try:
        found = file.stat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return os.geteuid() == 0 or found.st_uid in (0, os.geteuid())
