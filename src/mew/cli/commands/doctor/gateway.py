"""What `mew doctor` checks of the gateway: whether it is there, well, takes the token, and what time it has."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from mew.cli.errors import CommandError
from mew.cli.http import Answer, ask_gateway
from mew.cli.locate.login import Login
from mew.cli.locate.space_file import SpaceFile
from mew.client.errors import ConnectError
from mew.gateway.address_file import read_address
from mew.protocol.visible import visible

from .findings import Finding, Level

__all__ = ["gateway_findings"]

_CONNECT_S: Final = 3.0
_CLOCK_WARNING_S: Final = 5.0
_CLOCK_PROBLEM_S: Final = 60.0
_DEFAULT_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_OTHER: Final = "stop it, or choose another port with 'server.port'"
_START: Final = "start it: mew gateway, or mew up"


async def gateway_findings(folder: SpaceFile | None, login: Login | None) -> list[Finding]:
    """What it says, where it is known where it should be."""
    url = login.url if login is not None else _url(folder)
    if url is None:
        return [
            Finding(Level.WARNING, "gateway", "nothing says where it is", "give --gateway or a space.yaml")
        ]
    named = Login(url, None, "") if login is None else login
    runs = folder is not None and read_address(folder.path) is not None
    if not await _listens(url):
        level = Level.PROBLEM if runs or folder is None else Level.WARNING
        said = f"nothing listens at {url}"
        return [Finding(level, "gateway", f"{said}; its port is free", _START)]
    try:
        asked_s = time.time()
        health = await ask_gateway(named, "/health", with_token=False)
        if not _is_gateway(health):
            return [Finding(Level.PROBLEM, "gateway", f"what listens at {url} is no gateway", _OTHER)]
        return [_health(url, health), *_clock(health, asked_s), *await _more(named, login)]
    except ConnectError as error:
        return [Finding(Level.PROBLEM, "gateway", f"what listens at {url} is no gateway: {error}", _OTHER)]


def _url(folder: SpaceFile | None) -> str | None:
    if folder is None:
        return None
    with suppress(CommandError):
        return folder.url()
    return None


def _is_gateway(answer: Answer) -> bool:
    return answer.status == 200 and isinstance(answer.body, dict) and "status" in answer.body


def _health(url: str, answer: Answer) -> Finding:
    said = answer.body.get("version")
    version = visible(said, 40) if isinstance(said, str) else "of an unknown version"
    return Finding(Level.OK, "gateway", f"runs at {url}, {version}")


def _clock(answer: Answer, asked_s: float) -> Iterator[Finding]:
    try:
        theirs = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
    except (TypeError, ValueError):
        return
    behind_s = asked_s - theirs
    apart_s = abs(behind_s) if abs(behind_s) > 1 else 0.0  # it tells whole seconds
    says = f"{apart_s:.0f} s apart" if apart_s else "the gateway has the same time"
    if apart_s > _CLOCK_PROBLEM_S:
        yield Finding(
            Level.PROBLEM, "clock", says, "set the clock of this machine, or of the gateway's, by NTP"
        )
    elif apart_s > _CLOCK_WARNING_S:
        yield Finding(
            Level.WARNING, "clock", says, "set the clock of this machine, or of the gateway's, by NTP"
        )
    else:
        yield Finding(Level.OK, "clock", says)


async def _more(named: Login, login: Login | None) -> list[Finding]:
    ready = await ask_gateway(named, "/ready", with_token=False)
    found = []
    if ready.status == 200:
        found.append(Finding(Level.OK, "spaces", "all are served"))
        found += _warnings(ready)
    else:
        said = visible(str(ready.body), 400)
        found.append(Finding(Level.PROBLEM, "spaces", f"not all are served: {said}", "see the gateway's log"))
    if login is not None:
        found.append(_token(login, await ask_gateway(login, "/spaces")))
    return found


def _warnings(ready: Answer) -> Iterator[Finding]:
    """What the gateway warns of, the room for its journal for example."""
    told = ready.body.get("warnings") if isinstance(ready.body, dict) else None
    for one in told if isinstance(told, list) else ():
        yield Finding(Level.WARNING, "gateway", visible(str(one), 400), "see the gateway's log")


def _token(login: Login, answer: Answer) -> Finding:
    whose = f"that of {login.who!r}" if login.who else "yours"
    if answer.status == 200 and isinstance(answer.body, dict):
        spaces = [str(one.get("id")) for one in answer.body.get("spaces", ()) if isinstance(one, dict)]
        if login.space is None or login.space in spaces:
            return Finding(Level.OK, "token", f"{whose} opens {visible(', '.join(spaces), 200)}")
        return Finding(Level.PROBLEM, "token", f"{whose} does not open the space {login.space!r}")
    mend = "the gateway reads tokens when it starts and after SIGHUP; 'mew token' lists those there are"
    return Finding(Level.PROBLEM, "token", f"the gateway does not take {whose} (HTTP {answer.status})", mend)


async def _listens(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
    return True
