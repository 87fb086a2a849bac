"""Where a wrapped server's space is kept: a folder as any other with a space.yaml, among the user's own state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mew.gateway.address_file import whereabouts
from mew.protocol.envelope import is_participant_id

__all__ = ["running_wraps", "user_state_folder", "wrap_file"]

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


def running_wraps(environ: Mapping[str, str]) -> list[str]:
    """The names of the servers that are wrapped at this moment, in order."""
    try:
        found = sorted((user_state_folder(environ) / _WRAPS).glob(f"*/{_FILE}"))
    except (OSError, ValueError):
        return []
    return [file.parent.name for file in found if whereabouts(file) is not None]


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
