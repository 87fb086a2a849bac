"""Requests in flight to a server: who sent each, its deadline, and how to cancel it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from http import HTTPStatus
from itertools import count
from typing import Any, Final

from mew.client.mcp.call import Call

__all__ = ["InflightRequest", "InflightRequests", "current_request"]

_TIMES_MAX: Final = 24
"""How many times its timeout a request may take, whatever signs of life there are."""
_QUESTIONS_MAX: Final = 256  # about one request


class InflightRequest:
    """One request on its way to the server and back; of a participant, or with no `call` our own."""

    def __init__(self, call: Call | None = None, *, timeout_s: float | None = None) -> None:
        self.call = call
        self.token: str | int | None = None
        """With which its caller wants to be told how far it is."""
        self.status: int | None = None
        """Of HTTP, where that is how it went."""
        self.unreachable: str | None = None
        self.session_lost = False
        self._timeout_s = timeout_s
        self._scope: asyncio.Timeout | None = None
        self._questions = 0
        self._asked = 0
        self._last_s: float | None = None

    @property
    def failure(self) -> str | None:
        """Why there is no answer of the server's own, in words that follow `the server`; None: there may be one."""
        if self.unreachable is not None:
            return f"could not be reached: {self.unreachable}"
        if self.status is not None and self.status >= HTTPStatus.BAD_REQUEST:
            with suppress(ValueError):  # a status that nobody knows
                return f"answered with HTTP {self.status} {HTTPStatus(self.status).phrase}"
            return f"answered with HTTP {self.status}"
        return None

    @property
    def has_asked_too_much(self) -> bool:
        return self._asked >= _QUESTIONS_MAX

    @contextmanager
    def within(self, scope: asyncio.Timeout) -> Iterator[None]:
        self._scope = scope
        if self._timeout_s is not None:
            self._last_s = asyncio.get_running_loop().time() + _TIMES_MAX * self._timeout_s
        try:
            yield
        finally:
            self._scope = None

    def stop(self) -> None:
        """Its caller does not want it any more."""
        if self.call is not None and not self.call.cancelled:
            self.call.cancelled = True
            self._reschedule(asyncio.get_running_loop().time())

    def moved(self) -> None:
        """There was a sign of life: the time it may take begins again, but not for ever."""
        is_cancelled = self.call is not None and self.call.cancelled
        if (
            self._timeout_s is not None
            and self._last_s is not None
            and not self._questions
            and not is_cancelled
        ):
            self._reschedule(min(asyncio.get_running_loop().time() + self._timeout_s, self._last_s))

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The server waits for somebody, and not we for the server: the clock stands still."""
        self._questions += 1
        self._asked += 1
        if not (self.call and self.call.cancelled):
            self._reschedule(None)
        try:
            yield
        finally:
            self._questions -= 1
            self.moved()

    def _reschedule(self, when_s: float | None) -> None:
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(when_s)


current_request: ContextVar[InflightRequest | None] = ContextVar("current_request", default=None)
"""The one that this is about. Over HTTP the SDK carries it from a request to all that comes with its answer."""


class InflightRequests:
    """All that are under way, found by who asked and under which id, or by the token of their progress."""

    def __init__(self) -> None:
        self._tokens = (f"mew-{number}" for number in count(1))
        self._by_token: dict[str, InflightRequest] = {}

    @contextmanager
    def under_way(self, one: InflightRequest) -> Iterator[str]:
        """Yields the token that the server is to tell its progress with."""
        token = next(self._tokens)
        self._by_token[token] = one
        before = current_request.set(one)
        try:
            yield token
        finally:
            current_request.reset(before)
            del self._by_token[token]

    def of_token(self, token: Any) -> InflightRequest | None:
        return self._by_token.get(token) if isinstance(token, str) else None

    def cancel(self, sender: str, request_id: Any) -> None:
        """Those that somebody asked for under this id, of JSON-RPC or of the envelope."""
        if not isinstance(request_id, str | int) or isinstance(request_id, bool):
            return
        for call, one in self._calls():
            if call.sender == sender and request_id in (call.id, call.envelope.id):
                one.stop()

    def concerned(self) -> tuple[InflightRequest, ...]:
        """Whom this is about: the one of the context, or where that is not known, all."""
        one = current_request.get()
        if one is not None and one.call is not None:
            return (one,)
        return tuple(one for _, one in self._calls())

    def _calls(self) -> list[tuple[Call, InflightRequest]]:
        return [(one.call, one) for one in self._by_token.values() if one.call is not None]
