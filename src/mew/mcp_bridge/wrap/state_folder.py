"""Where a wrapped server's space is kept: a folder as any other with a space.yaml, among the user's own state."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from mew.gateway.address_file import read_address
from mew.protocol.envelope import is_participant_id

from .server_name import YOU

__all__ = ["StateFolderError", "running_wraps", "taken_place", "user_state_folder", "wrap_file", "wrap_seal"]

_FILE: Final = "space.yaml"
_WRAPS: Final = "wrap"


def wrap_file(name: str, environ: Mapping[str, str]) -> Path:
    """The space.yaml of the server that is wrapped under this name, there or not.

    Raises:
        ValueError: no server can have this name, or the system does not say where this user's home is.
    """
    if not is_participant_id(name):
        raise ValueError(f"{name!r} is no name of a wrapped server")
    return user_state_folder(environ) / _WRAPS / name / _FILE


def wrap_seal(environ: Mapping[str, str]) -> Path:
    """The sealed token of whoever approves in the spaces of wrapped servers, there or not.

    Raises:
        ValueError: the system does not say where this user's home is.
    """
    return user_state_folder(environ) / f"{YOU}.sealed"


def running_wraps(environ: Mapping[str, str]) -> list[str]:
    """The names of the servers that are wrapped at this moment, in order."""
    try:
        found = sorted((user_state_folder(environ) / _WRAPS).glob(f"*/{_FILE}"))
    except (OSError, ValueError):
        return []
    return [file.parent.name for file in found if read_address(file) is not None]


def user_state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for what this user's wrapped servers leave; it may not be there yet.

    Raises:
        ValueError: the system does not say where this user's home is.
    """
    for name, below in (("XDG_STATE_HOME", "mew"), ("LOCALAPPDATA", "mew/state")):
        if (said := environ.get(name)) and Path(said).is_absolute():
            return Path(said, below)
    try:
        home = Path(environ.get("HOME") or Path.home())
    except RuntimeError as error:
        raise ValueError("where is your home? set HOME or XDG_STATE_HOME") from error
    return home / ".local" / "state" / "mew"


_LOCK: Final = ".lock"
_COMMAND: Final = ".command"
_RUNS_MAX: Final = 64
_COMING_OR_GOING_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.05


class StateFolderError(Exception):
    """The space of a wrapped server cannot be kept; the sentence says why."""


@asynccontextmanager
async def taken_place(name: str, command: str | None, environ: Mapping[str, str]) -> AsyncIterator[Path]:
    """The space.yaml, there or not, of a space that is ours inside this block: `NAME`, or else `NAME-2`, `NAME-3`.

    `command` is the digest of the command whose space it is: another one has another space, so that what was proposed
    to one server is never carried out by another. None: whatever was wrapped under this name.

    Raises:
        NoPlace: the folder cannot be written, or too many run already.
    """
    for number in range(1, _RUNS_MAX + 1):
        file = wrap_file(name if number == 1 else f"{name}-{number}", environ)
        try:
            held = await _taken(file, command)
        except OSError as error:
            raise StateFolderError(
                f"{file.parent}: the space cannot be kept here: {error.strerror}"
            ) from error
        if held is not None:
            break
    else:
        raise StateFolderError(f"{name!r} is wrapped {_RUNS_MAX} times already; choose another --name")
    try:
        yield file
    finally:
        os.close(held)


async def _taken(file: Path, command: str | None) -> int | None:
    """The lock on a folder; None where another has it, or it is for another command."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_for(file.parent, command):
        return None
    held = os.open(file.with_name(_LOCK), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if await _locked(held, file) and _is_for(file.parent, command):
            if command is not None:
                file.with_name(_COMMAND).write_text(command, encoding="ascii")
            return held
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    return None


def _is_for(folder: Path, command: str | None) -> bool:
    with suppress(FileNotFoundError):
        return command is None or (folder / _COMMAND).read_text(encoding="ascii", errors="replace") == command
    return True


async def _locked(held: int, file: Path) -> bool:
    """Where one is just coming or going, wait for it: a host that is started again finds its space again."""
    deadline_s = asyncio.get_running_loop().time() + _COMING_OR_GOING_S
    while not _lock(held):
        if read_address(file) is not None or asyncio.get_running_loop().time() > deadline_s:
            return False
        await asyncio.sleep(_LOOK_AGAIN_S)
    return True


def _lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # not to be had elsewhere

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # not to be had on Windows

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
