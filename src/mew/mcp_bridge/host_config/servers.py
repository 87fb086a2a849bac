"""PURE. A server of ours in the text of a host's configuration: put in, taken out, or put around one that is there."""

from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from mew.mcp_bridge.wrap.server_name import name_of, participant_name

from . import jsonc, toml_text
from .hosts import HostConfigFile

__all__ = ["HostConfigError", "installed", "ours", "uninstalled", "wrapped"]

_IN_PLACE: Final = "--in-place"
"""Marks a `mew wrap` that stands where another server stood."""
_END: Final = "--"
_KINDS: Final = ("mcp", "wrap")
_AT_A_URL: Final = ("http://", "https://")
_URLS: Final = ("url", "httpUrl", "serverUrl")
_OF_A_URL: Final = ("headers", "http_headers", "type")
_HEADER: Final = "HEADER_"
"""Begins the variables that hold the headers of a wrapped server at a URL: the host fills in its own there."""


class HostConfigError(Exception):
    """It cannot be done with this file; the sentence says why, and what to do."""


def installed(text: str, place: HostConfigFile, name: str, command: Sequence[str]) -> str:
    """With a server of this name that is started by this command, in place of one of ours.

    Raises:
        Unfit: there is one of this name that is not ours.
        NotJson: the text cannot be edited.
    """
    path = (*place.path, name)
    there = _member(text, place, path)
    if there is not None and not _is_ours(there):
        raise HostConfigError(
            f"there is a server {name!r} already; choose another --name, or wrap it with --wrap-existing {name}"
        )
    return _with(text, place, path, {**dict(place.fields), "command": command[0], "args": list(command[1:])})


def wrapped(text: str, place: HostConfigFile, name: str, command: Sequence[str]) -> str:
    """With the server of this name started by `command`, a `mew wrap`, followed by what starts it now.

    Raises:
        Unfit: there is none, it is wrapped already, or nothing is started for it.
        NotJson: the text cannot be edited.
    """
    path = (*place.path, name)
    there = _member(text, place, path)
    if not isinstance(there, dict):
        known = ", ".join(_servers(text, place)) or "none"
        raise HostConfigError(f"there is no server {name!r} to be wrapped; there is {known}")
    if _is_ours(there):
        raise HostConfigError(f"{name!r} is ours already")
    url = next((there[key] for key in _URLS if isinstance(there.get(key), str)), None)
    if url is not None:
        return _wrapped_url(text, place, path, there, url, command)
    program, arguments = there.get("command"), there.get("args", [])
    if not isinstance(program, str) or not _are_texts(arguments):
        raise HostConfigError(f"{name!r} has neither a command that starts it nor a URL")
    called = participant_name(name)
    naming = [] if name_of([program, *arguments]) == called else ["--name", called]
    args = [*command[1:], *naming, _IN_PLACE, _END, program, *arguments]
    text = _with(text, place, (*path, "command"), command[0])
    return _with(text, place, (*path, "args"), args)


def uninstalled(text: str, place: HostConfigFile, name: str) -> str:
    """Without our server of this name; what it stood in place of is put back.

    Raises:
        Unfit: there is none, or it is not ours.
        NotJson: the text cannot be edited.
    """
    path = (*place.path, name)
    there = _member(text, place, path)
    if there is None:
        raise HostConfigError(
            f"there is no server {name!r}; ours are {', '.join(ours(text, place)) or 'not there'}"
        )
    if not _is_ours(there):
        raise HostConfigError(f"{name!r} is not ours to be taken out")
    before, after = _cut(there["args"])
    if _IN_PLACE not in before or not after:
        return _without(text, place, path)
    if after[0].startswith(_AT_A_URL):
        return _with(text, place, path, _remote_entry(place, there, before, after[0]))
    text = _with(text, place, (*path, "command"), after[0])
    args = (*path, "args")
    return _with(text, place, args, after[1:]) if after[1:] else _without(text, place, args)


def ours(text: str, place: HostConfigFile) -> list[str]:
    """The names of the servers that start `mew`.

    Raises:
        NotJson: the text cannot be read.
    """
    return [name for name, entry in _servers(text, place).items() if _is_ours(entry)]


def _wrapped_url(
    text: str,
    place: HostConfigFile,
    path: tuple[str, ...],
    there: dict[str, Any],
    url: str,
    command: Sequence[str],
) -> str:
    """A server that runs elsewhere; the values of its headers stay out of the arguments, which others can see."""
    headers = there.get("headers") or there.get("http_headers") or {}
    if there.get("type") == "sse":
        raise HostConfigError(
            f"{path[-1]!r} speaks HTTP+SSE, which is superseded; use its Streamable HTTP address, or have it bridged:"
            f" --name {participant_name(path[-1])} -- npx -y mcp-remote {url}"
        )
    variables = {_variable(name): str(value) for name, value in headers.items()}
    options = [word for name in headers for word in ("--header", f"{name}: ${{{_variable(name)}}}")]
    kept = {key: value for key, value in there.items() if key not in (*_URLS, *_OF_A_URL)}
    args = [*command[1:], "--name", participant_name(path[-1]), *options, _IN_PLACE, _END, url]
    entry = {**dict(place.fields), **kept, "command": command[0], "args": args}
    return _with(text, place, path, {**entry, **({"env": variables} if variables else {})})


def _remote_entry(
    place: HostConfigFile, there: dict[str, Any], before: list[str], url: str
) -> dict[str, Any]:
    """As it was before it was wrapped."""
    names = [before[at + 1].partition(":")[0] for at, word in enumerate(before[:-1]) if word == "--header"]
    env = there.get("env") or {}
    headers = {name: env[_variable(name)] for name in names if _variable(name) in env}
    fixed = {name for name, _ in place.fields}
    kept = {key: value for key, value in there.items() if key not in {"command", "args", "env", *fixed}}
    typed = {"type": "http"} if "type" in fixed else {}
    return {**typed, place.url: url, **({"headers": headers} if headers else {}), **kept}


def _variable(header: str) -> str:
    return _HEADER + header.upper().replace("-", "_")


def _member(text: str, place: HostConfigFile, path: Sequence[str]) -> Any:
    return toml_text.toml_member(text, path) if _is_toml(place) else jsonc.member(text, path)


def _with(text: str, place: HostConfigFile, path: Sequence[str], value: Any) -> str:
    return toml_text.toml_with(text, path, value) if _is_toml(place) else jsonc.with_member(text, path, value)


def _without(text: str, place: HostConfigFile, path: Sequence[str]) -> str:
    return toml_text.toml_without(text, path) if _is_toml(place) else jsonc.without_member(text, path)


def _is_toml(place: HostConfigFile) -> bool:
    return place.file.suffix == ".toml"


def _servers(text: str, place: HostConfigFile) -> dict[str, Any]:
    found = _member(text, place, place.path)
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
