"""What a space.yaml and the state folder beside it tell a command: the gateway, the space, whose token."""

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from mew.cli.errors import CommandError
from mew.gateway.address_file import read_address
from mew.gateway.auth.sealed import SealedToken, read_sealed, sealed_path
from mew.gateway.auth.tokens import token_path, token_variable
from mew.gateway.config.loader import load_config
from mew.gateway.config.settings import Config, state_dir
from mew.gateway.config.value import ConfigError
from mew.mcp_bridge.wrap.state_folder import running_wraps, wrap_file
from mew.protocol.envelope import ParticipantId, is_participant_id

__all__ = [
    "NO_SPACE_FILE",
    "SpaceFile",
    "StatePaths",
    "find_space_file",
    "nearest_path",
    "nearest_space_file",
    "read_space_file",
    "require_space_file",
    "signal_reload",
    "state_paths",
    "wrapped_space_file",
]

NO_SPACE_FILE: Final = "there is no space.yaml here or in a folder above"
_ADDRESS_BYTES_MAX: Final = 16_384
_NAMES: Final = ("space.yaml", ".mew/space.yaml")


@dataclass(frozen=True, slots=True)
class SpaceFile:
    """One space.yaml, parsed."""

    config: Config
    environ: Mapping[str, str] = field(repr=False)

    @property
    def path(self) -> Path:
        return self.config.file

    def url(self) -> str:
        """Return the URL at which its gateway runs, or would run.

        Raises:
            CommandError: the port is not known.
        """
        if (running := read_address(self.path)) is not None:
            return running
        server = self.config.server
        if server.port == 0:
            raise CommandError(
                f"{self.path}: the gateway takes any free port and is not running; start it, or use --gateway"
            )
        return server.local_url(self.config.tls)

    def space(self, named: str | None) -> str:
        """Return the id of the space that is named, or of the only one.

        Raises:
            CommandError: none is named and there are several, or there is none of that name.
        """
        spaces = self.config.spaces
        if named is None and len(spaces) > 1:
            raise CommandError(
                f"{self.path} has several spaces; choose one with --space: {', '.join(spaces)}"
            )
        if named is not None and named not in spaces:
            raise CommandError(f"{self.path} has no space {named!r}; it has {', '.join(spaces)}")
        return next(iter(spaces)) if named is None else named

    def members(self, space: str) -> str:
        """Return the participants of a space, for a sentence."""
        return ", ".join(self.config.spaces[space].participants) or "the file names no participants"

    def person(self, space: str) -> str | None:
        """Return who sits at a terminal here, if the file says so.

        Raises:
            CommandError: `default_participant` is not text.
        """
        participants = self.config.spaces[space].participants
        alone = next(iter(participants)) if len(participants) == 1 else None
        return self._named(space, "default_participant") or alone

    def reviewer(self, space: str) -> str | None:
        """Return who approves at a terminal here, if the file says so.

        Raises:
            CommandError: as `person`.
        """
        return self._named(space, "reviewer") or self.person(space)

    def _named(self, space: str, key: str) -> str | None:
        node = self.config.spaces[space].launch.get(key)
        try:
            return None if node is None else node.string()
        except ConfigError as error:
            raise CommandError(str(error)) from error

    def token(self, space: str, who: str) -> str | Path | SealedToken | None:
        """Return a participant's token: its file if there is one, sealed or not, else what the gateway would accept.

        Raises:
            CommandError: the file of a sealed token is invalid.
        """
        if is_participant_id(who):
            path = token_path(self.config, space, who)
            if path.is_file():
                return path
            try:
                sealed = read_sealed(sealed_path(path))
            except ConfigError as error:
                raise CommandError(str(error)) from error
            if sealed is not None:
                return sealed
        member = self.config.spaces[space].participants.get(ParticipantId(who))
        if member is None:
            return None
        variable = self.environ.get(token_variable(who), "").strip()
        return variable or next(iter(member.tokens), None)

    def why_no_token(self, space: str, who: str) -> str:
        if ParticipantId(who) not in self.config.spaces[space].participants:
            return f"{self.path}: space {space!r} has no participant {who!r}; it has {self.members(space)}"
        if self._is_wrapped():
            return (
                f"{who} approves on the page that 'mew wrap' opens in your browser; to approve at a terminal, choose a"
                " passphrase with 'mew token seal --wrapped' and start the host again"
            )
        path = token_path(self.config, space, who)
        return f"{path}: there is no token yet; start the gateway once to make it, or use --token-file"

    def _is_wrapped(self) -> bool:
        try:
            return self.path == wrap_file(self.path.parent.name, self.environ)
        except ValueError:
            return False


class StatePaths(NamedTuple):
    """A space.yaml, and the folder that holds its state."""

    file: Path
    state_dir: Path


def signal_reload(file: Path) -> bool:
    """Have the gateway of this file read it and its tokens again; whether one runs on this machine."""
    if read_address(file) is None or not hasattr(signal, "SIGHUP"):
        return False
    with suppress(OSError, ValueError, KeyError, TypeError):
        written = json.loads((state_dir(file) / "gateway.json").read_bytes()[:_ADDRESS_BYTES_MAX])
        os.kill(int(written["pid"]), signal.SIGHUP)
        return True
    return False


def find_space_file(config: Path | None, wrapped: str | None = None) -> SpaceFile | None:
    """Read the space.yaml that is named, or the nearest; None if none is named and there is none.

    Raises:
        CommandError: the one that is named does not exist, or it is invalid.
    """
    if config is not None or wrapped is not None:
        return read_space_file(config, wrapped, os.environ)
    return nearest_space_file(Path.cwd(), os.environ)


def require_space_file(config: Path | None) -> SpaceFile:
    """Read the space.yaml that is named, or the nearest.

    Raises:
        CommandError: there is none, or it is invalid.
    """
    found = find_space_file(config)
    if found is None:
        raise CommandError(f"{NO_SPACE_FILE}; run 'mew init' to write one, or name it with --config")
    return found


def state_paths(config: Path | None) -> StatePaths:
    """Find the space.yaml without reading it: what runs can be asked and stopped even if the file is now invalid.

    Raises:
        CommandError: there is none.
    """
    file = nearest_path(Path.cwd()) if config is None else config
    if file is None:
        raise CommandError(f"{NO_SPACE_FILE}; run 'mew init' to write one, or name it with --config")
    if not file.exists():
        raise CommandError(f"{file}: no such file")
    return StatePaths(file.absolute(), state_dir(file.absolute()))


def read_space_file(config: Path | None, wrapped: str | None, environ: Mapping[str, str]) -> SpaceFile:
    """Read the file of `--config` or `--wrapped`, one of which is given.

    Raises:
        CommandError: there is none, or it is invalid.
    """
    if wrapped is None:
        assert config is not None, "neither --config nor --wrapped"
        return _read(config, environ)
    try:
        file = wrap_file(wrapped, environ)
    except ValueError as error:
        raise CommandError(f"--wrapped: {error}") from None
    if read_address(file) is None:
        running = running_wraps(environ)
        there = f"running now: {', '.join(running)}" if running else "no server is wrapped now"
        raise CommandError(f"--wrapped: no wrapped server {wrapped!r} is running; {there}")
    return _read(file, environ)


def nearest_space_file(here: Path, environ: Mapping[str, str]) -> SpaceFile | None:
    """Read the first space.yaml from here upwards; one of another user is skipped, because it may be a trap."""
    file = nearest_path(here)
    return None if file is None else _read(file, environ)


def nearest_path(here: Path) -> Path | None:
    """Return the path of the nearest space.yaml, valid or not."""
    paths = (folder / name for folder in (here, *here.parents) for name in _NAMES)
    return next((path for path in paths if _is_ours(path)), None)


def wrapped_space_file(environ: Mapping[str, str]) -> SpaceFile | None:
    """Read the space.yaml of the one server that is wrapped now.

    Raises:
        CommandError: there are several.
    """
    running = running_wraps(environ)
    if len(running) > 1:
        raise CommandError(
            f"several servers are wrapped now; choose one with --wrapped: {', '.join(running)}"
        )
    return _read(wrap_file(running[0], environ), environ) if running else None


def _read(file: Path, environ: Mapping[str, str]) -> SpaceFile:
    try:
        return SpaceFile(load_config(file, environ), environ)
    except ConfigError as error:
        raise CommandError(str(error)) from error


def _is_ours(file: Path) -> bool:
    try:
        found = file.stat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return os.geteuid() == 0 or found.st_uid in (0, os.geteuid())
