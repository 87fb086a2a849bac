"""Sees who has joined: asks the gateway over HTTP, as a participant may."""

from collections.abc import Mapping
from typing import Any, Final

import aiohttp

__all__ = ["Watch"]

_ANSWER_S: Final = 2.0


class Watch:
    """Of one gateway; `tokens` has one for each space, of anybody in it. An async context."""

    def __init__(self, url: str, tokens: Mapping[str, str]) -> None:
        self._url = url
        self._tokens = tokens
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Watch":
        # Never by a proxy: it is on this machine.
        timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
        self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def is_ready(self) -> bool:
        """Whether the gateway answers, and serves its spaces."""
        return await self._get("/ready", None) is not None

    async def present(self, space: str) -> frozenset[str] | None:
        """Who is connected to a space; None where the gateway does not say."""
        said = await self._get(f"/spaces/{space}/participants", self._tokens[space])
        listed = said.get("participants") if isinstance(said, dict) else None
        if not isinstance(listed, list):
            return None
        return frozenset(one["id"] for one in listed if one.get("connected"))

    async def _get(self, path: str, token: str | None) -> Any:
        assert self._session is not None, "used outside of its context"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            async with self._session.get(self._url + path, headers=headers, allow_redirects=False) as answer:
                return await answer.json(content_type=None) if answer.status == 200 else None
        except (TimeoutError, aiohttp.ClientError, ValueError, OSError):
            return None
