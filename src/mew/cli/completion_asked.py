"""What a gateway on this machine and a `mew up` tell while somebody types: within 300 ms, or nothing.

It is only read: nobody joins, nothing is sent, and no envelope comes of it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from mew.gateway.config.server_sections import is_loopback
from mew.supervise.control import ask

from .locate.gateway import Door

__all__ = ["ask_here", "running_programs"]

_PATIENCE_S: Final = 0.3
_BYTES_MAX: Final = 8 << 20
_TLS: Final = ("https", "wss")


def ask_here(door: Door, what: str, **query: str) -> list[dict[str, Any]]:
    """GET `/spaces/{space}/{what}` of a gateway on this machine: the list of that name in its answer."""
    if door.space is None or not is_loopback(urlsplit(door.url).hostname or ""):
        return []
    path = f"/spaces/{quote(door.space, safe='')}/{what}" + (f"?{urlencode(query)}" if query else "")
    answer = _in_time(lambda: _get(door, path))
    listed = answer.get(what) if isinstance(answer, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def running_programs(state_dir: Path) -> Mapping[str, str]:
    """The programs of the `mew up` that runs there, and how each is doing."""

    async def asked() -> Any:
        async with asyncio.timeout(_PATIENCE_S):
            return await ask(state_dir, {"ask": "status"})

    answer = _in_time(lambda: asyncio.run(asked()))
    return {} if answer is None else {one["name"]: one["phase"] for one in answer["programs"]}


def _in_time(look: Callable[[], Any]) -> Any:
    """What it returns; None if that takes too long, or it fails."""
    found: list[Any] = []

    def run() -> None:
        with suppress(Exception):
            found.append(look())

    looking = Thread(target=run, daemon=True)  # the process does not wait for it at its end
    looking.start()
    looking.join(_PATIENCE_S)
    return found[0] if found else None


def _get(door: Door, path: str) -> Any:
    where = urlsplit(door.url)
    kind = HTTPSConnection if where.scheme in _TLS else HTTPConnection
    token = door.token.read_text("utf-8") if isinstance(door.token, Path) else door.token
    with closing(kind(where.hostname or "", where.port, timeout=_PATIENCE_S)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token.strip()}"})
        answer = connection.getresponse()
        body = answer.read(_BYTES_MAX)
    return json.loads(body) if answer.status == 200 else None
