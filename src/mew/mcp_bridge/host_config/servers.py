"""PURE. A server of ours in the text of a host's configuration: put in, taken out, or put around one that is there."""

from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from mew.mcp_bridge.wrap.server_name import name_of, participant_name

from .hosts import HostConfigFile
from .jsonc import member, with_member, without_member

__all__ = ["HostConfigError", "installed", "ours", "uninstalled", "wrapped"]

_IN_PLACE: Final = "--in-place"
"""Marks a `mew wrap` that stands where another server stood."""
_END: Final = "--"
_KINDS: Final = ("mcp", "wrap")


class HostConfigError(Exception):
    """It cannot be done with this file; the sentence says why, and what to do."""


def installed(text: str, place: HostConfigFile, name: str, command: Sequence[str]) -> str:
    """With a server of this name that is started by this command, in place of one of ours.

    Raises:
        Unfit: there is one of this name that is not ours.
        NotJson: the text cannot be edited.
    """
    path = (*place.path, name)
    there = member(text, path)
    if there is not None and not _is_ours(there):
        raise HostConfigError(
            f"there is a server {name!r} already; choose another --name, or wrap it with --wrap-existing {name}"
        )
    entry: dict[str, Any] = {"type": "stdio"} if place.is_typed else {}
    return with_member(text, path, {**entry, "command": command[0], "args": list(command[1:])})


def wrapped(text: str, place: HostConfigFile, name: str, command: Sequence[str]) -> str:
    """With the server of this name started by `command`, a `mew wrap`, followed by what starts it now.

    Raises:
        Unfit: there is none, it is wrapped already, or nothing is started for it.
        NotJson: the text cannot be edited.
    """
    path = (*place.path, name)
    there = member(text, path)
    if not isinstance(there, dict):
        known = ", ".join(_servers(text, place)) or "none"
        raise HostConfigError(f"there is no server {name!r} to be wrapped; there is {known}")
    if _is_ours(there):
        raise HostConfigError(f"{name!r} is ours already")
    program, arguments = there.get("command"), there.get("args", [])
    if not isinstance(program, str) or not _are_texts(arguments):
        raise HostConfigError(f"{name!r} is not started by a command: only such servers can be wrapped here")
    called = participant_name(name)
    naming = [] if name_of([program, *arguments]) == called else ["--name", called]
    args = [*command[1:], *naming, _IN_PLACE, _END, program, *arguments]
    return with_member(with_member(text, (*path, "command"), command[0]), (*path, "args"), args)


def uninstalled(text: str, place: HostConfigFile, name: str) -> str:
    """Without our server of this name; what it stood in place of is put back.

    Raises:
        Unfit: there is none, or it is not ours.
        NotJson: the text cannot be edited.
    """
    path = (*place.path, name)
    there = member(text, path)
    if there is None:
        raise HostConfigError(
            f"there is no server {name!r}; ours are {', '.join(ours(text, place)) or 'not there'}"
        )
    if not _is_ours(there):
        raise HostConfigError(f"{name!r} is not ours to be taken out")
    before, after = _cut(there["args"])
    if _IN_PLACE not in before or not after:
        return without_member(text, path)
    text = with_member(text, (*path, "command"), after[0])
    return (
        with_member(text, (*path, "args"), after[1:]) if after[1:] else without_member(text, (*path, "args"))
    )


def ours(text: str, place: HostConfigFile) -> list[str]:
    """The names of the servers that start `mew`.

    Raises:
        NotJson: the text cannot be read.
    """
    return [name for name, entry in _servers(text, place).items() if _is_ours(entry)]


def _servers(text: str, place: HostConfigFile) -> dict[str, Any]:
    found = member(text, place.path)
    return found if isinstance(found, dict) else {}


def _is_ours(entry: object) -> bool:
    match entry:
        case {"command": str(program), "args": [str(kind), *rest]}:
            name = PureWindowsPath(program).stem if "\\" in program else PurePosixPath(program).stem
            return name == "mew" and kind in _KINDS and _are_texts(rest)
        case _:
            return False


def _are_texts(arguments: object) -> bool:
    return isinstance(arguments, list) and all(isinstance(one, str) for one in arguments)


def _cut(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after the first `--`."""
    end = arguments.index(_END) if _END in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]
