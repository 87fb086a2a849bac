"""Values that a shell completes, for `autocompletion=`: names and ids of what there is here.

Answers come from a gateway on this machine or from files, within 300 ms or not at all. They are only read: nobody
joins the space, and no envelope is sent.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import wraps
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from .locate.login import Login
    from .locate.space_file import SpaceFile

__all__ = [
    "configured_participants",
    "kinds",
    "logs",
    "participants",
    "programs",
    "proposals",
    "reject_reasons",
    "spaces",
    "templates",
    "tool_arguments",
    "tools",
    "wrapped_servers",
]

_ANSWER_S: Final = 0.3
_BYTES_MAX: Final = 8 << 20
_DESCRIPTION_CHARS_MAX: Final = 70
_OPTIONS: Final = ("gateway", "space", "who", "token", "token_file", "config", "wrapped")
# Other participants choose names and descriptions, and zsh evaluates what it is offered: what a shell could take for
# anything but itself is not passed on.
_SAFE_VALUE: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_@%+=,./() -]+")

_Values = Iterable[str | tuple[str, str]]


def _completes(
    find: Callable[[typer.Context], _Values],
) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    """Offer what fits the beginning that was typed and is safe in a shell; offer nothing if something fails."""

    @wraps(find)
    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        with suppress(Exception):
            for one in find(ctx):
                value, says = (one, "") if isinstance(one, str) else one
                if value.startswith(incomplete) and _SAFE_VALUE.fullmatch(value):
                    found.append((value, _UNSAFE.sub(" ", says)[:_DESCRIPTION_CHARS_MAX].strip()))
        return found

    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str}
    del complete.__wrapped__  # Typer looks at the signature
    return complete


@_completes
def participants(context: typer.Context) -> Iterator[str | tuple[str, str]]:
    """The participants that the gateway knows, or that the file names."""
    listed = _ask_gateway(context, "participants")
    for one in listed:
        yield str(one.get("id")), "connected" if one.get("connected") else "away"
    if not listed:
        yield from _configured(context)


@_completes
def configured_participants(context: typer.Context) -> Iterator[str]:
    yield from _configured(context)


@_completes
def spaces(context: typer.Context) -> Iterator[str]:
    file = _space_file(context)
    yield from () if file is None else file.config.spaces


@_completes
def proposals(context: typer.Context) -> Iterator[tuple[str, str]]:
    """The open proposals, newest first."""
    for one in reversed(_ask_gateway(context, "proposals", status="open")):
        params = one.get("params")
        tool = params.get("name") if isinstance(params, dict) else None
        yield str(one.get("id")), f"{one.get('proposer')} {tool or one.get('method') or ''}"


@_completes
def tools(context: typer.Context) -> Iterator[tuple[str, str]]:
    """The tools that a participant listed last, or that a bridge here has seen."""
    for one in _listed_tools(context):
        yield str(one.get("name")), _text(one.get("description"))
    file = _space_file(context)
    if file is not None:
        with suppress(OSError, ValueError, KeyError):
            path = file.config.state_dir / "bridge" / Path(f"{context.params.get('participant')}.json").name
            yield from ((name, "") for name in json.loads(path.read_bytes())["tools"])


@_completes
def tool_arguments(context: typer.Context) -> Iterator[tuple[str, str]]:
    """`key=` for each argument of the tool that is not given yet."""
    tool = next((one for one in _listed_tools(context) if one.get("name") == context.params.get("tool")), {})
    given = {str(pair).partition("=")[0].rstrip(":") for pair in context.params.get("pairs") or ()}
    for name, about in tool["inputSchema"]["properties"].items():
        if name not in given:
            yield f"{name}=", _text(about.get("description") if isinstance(about, dict) else None)


@_completes
def programs(context: typer.Context) -> Iterator[tuple[str, str]]:
    """The programs of the `mew up` that runs here."""
    from mew.supervise.control import ask

    async def status(folder: Path) -> Any:
        async with asyncio.timeout(_ANSWER_S):
            return await ask(folder, {"ask": "status"})

    file = _space_file(context)
    if file is not None:
        for one in asyncio.run(status(file.config.state_dir))["programs"]:
            yield one["name"], one["phase"]


@_completes
def logs(context: typer.Context) -> Iterator[str]:
    """The programs that have a log."""
    from mew.supervise.prepare import logs_folder

    file = _space_file(context)
    if file is not None:
        yield from (path.stem for path in sorted(logs_folder(file.config.state_dir).glob("*.log")))


@_completes
def templates(context: typer.Context) -> Iterator[tuple[str, str]]:
    from .commands.init.templates import TEMPLATES

    yield from ((name, template.does) for name, template in TEMPLATES.items())


@_completes
def kinds(context: typer.Context) -> Iterator[str]:
    from mew.protocol.kinds import PAYLOADS

    yield from sorted(PAYLOADS)


@_completes
def wrapped_servers(context: typer.Context) -> Iterator[str]:
    from mew.mcp_bridge.wrap.state_folder import running_wraps

    yield from running_wraps(os.environ)


@_completes
def reject_reasons(context: typer.Context) -> Iterator[tuple[str, str]]:
    yield "disagree", "I do not want this"
    yield "inappropriate", "not here, or not now"
    yield "unsafe", "it could do harm"
    yield "busy", "I have no time for it"
    yield "incapable", "I cannot do it"
    yield "policy", "it breaks a rule"
    yield "invalid", "it makes no sense as it is"


def _configured(context: typer.Context) -> Iterator[str]:
    file = _space_file(context)
    for space in () if file is None else file.config.spaces.values():
        if context.params.get("space") in (None, space.id):
            yield from space.participants


def _listed_tools(context: typer.Context) -> list[dict[str, Any]]:
    """Return what the participant told somebody last: asking it again would be visible to the whole space."""
    query = {"kind": "mcp/response", "participant": str(context.params.get("participant"))}
    for envelope in _ask_gateway(context, "envelopes", **query, order="desc", limit="100"):
        match envelope:
            case {"payload": {"result": {"tools": list(tools)}}}:
                return [one for one in tools if isinstance(one, dict)]
    return []


def _ask_gateway(context: typer.Context, what: str, **query: str) -> list[dict[str, Any]]:
    """GET `/spaces/{space}/{what}` of a gateway on this machine; return the list of that name in its response."""
    from urllib.parse import quote, urlencode, urlsplit

    from mew.gateway.config.server_sections import is_loopback

    from .errors import CommandError

    try:
        login = _login(context)
    except (CommandError, ValueError):  # nobody says where, or as whom
        return []
    if login.space is None or not is_loopback(urlsplit(login.url).hostname or ""):
        return []
    path = f"/spaces/{quote(login.space, safe='')}/{what}" + (f"?{urlencode(query)}" if query else "")
    found: list[Any] = []

    def get() -> None:
        with suppress(Exception):
            found.append(_get(login, path))

    thread = Thread(target=get, daemon=True)  # the process does not wait for it
    thread.start()
    thread.join(_ANSWER_S)
    listed = found[0].get(what) if found and isinstance(found[0], Mapping) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _get(login: "Login", path: str) -> Any:
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    from .locate.login import read_token

    url = urlsplit(login.url)
    kind = HTTPSConnection if url.scheme in ("https", "wss") else HTTPConnection
    with closing(kind(url.hostname or "", url.port, timeout=_ANSWER_S)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {read_token(login)}"})
        answer = connection.getresponse()
        body = answer.read(_BYTES_MAX)
    return json.loads(body) if answer.status == 200 else None


def _login(context: typer.Context) -> "Login":
    """Return where the command itself would connect, and as whom."""
    from .locate.login import LoginOptions, find_person_login

    given = {name: value for name in _OPTIONS if (value := context.params.get(name)) is not None}
    for name in {"config", "token_file"} & given.keys():
        given[name] = Path(given[name])
    return find_person_login(LoginOptions(**given), unseal=_ask_nobody)


def _ask_nobody(sealed: object, who: str) -> str:
    raise ValueError(f"the token of {who} is sealed, and a shell cannot ask for the passphrase")


def _space_file(context: typer.Context) -> "SpaceFile | None":
    from .locate.space_file import find_space_file

    config, wrapped = context.params.get("config"), context.params.get("wrapped")
    return find_space_file(None if config is None else Path(config), wrapped)


def _text(value: Any) -> str:
    return value.split("\n")[0] if isinstance(value, str) else ""
