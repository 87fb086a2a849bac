"""The life of a server across restarts: start it, notice its end, start it again with exponential backoff."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final, Literal

from mew.client.errors import RpcError
from mew.mcp_bridge.server.transport.transport import ServerExit, ServerTransport, TransportFactory

from .errors import ServerUnavailable, failure
from .inflight import current_request
from .link import HandshakeFailed, LinkLost, NotificationHandler, ServerLink, open_link
from .settings import Restart

__all__ = ["ServerLifecycle"]

_log = logging.getLogger(__name__)

_DELAY_S_MAX: Final = 60.0
_HEALTHY_S: Final = 60.0
"""One that lived so long is started again without much ado."""
_PATIENCE_S: Final = 5.0
"""How long a request waits for a server that is being started."""
_STOP_S: Final = 8.0


class ServerLifecycle:
    """One server across its restarts. `up` is called after each successful start, and must not block."""

    def __init__(
        self,
        opening: TransportFactory,
        handler: NotificationHandler,
        ours: dict[str, Any],
        *,
        restart: Restart = "always",
        start_timeout_s: float = 60.0,
        delay_s: float = 0.5,
        modern: bool = False,
        verb: Literal["started", "called"] = "started",
        up: Callable[[ServerLink], None] = lambda _: None,
    ) -> None:
        self._opening = opening
        self._handler = handler
        self._ours = ours
        self._restart = restart
        self._start_timeout_s = start_timeout_s
        self._delay_s = delay_s
        self._verb = verb
        self._up = up
        self._modern = modern
        self._link: ServerLink | None = None
        self._ending = ServerExit("was never started")
        self._worked = False
        self._due_s = 0.0
        self._lives: asyncio.Task[None] | None = None
        self._turned = asyncio.Event()
        self.over: ServerUnavailable | None = None
        """Why the server is not started any more."""
        self.restarts = 0

    @property
    def link(self) -> ServerLink | None:
        """To the server, if it is up."""
        return self._link

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Return when the server has answered; at once where it has already.

        Raises:
            ServerUnavailable: it has not.
        """
        if self._lives is None or self._lives.done():
            self._worked, self.over = False, None
            self._lives = tasks.create_task(self._live_on())
        while self._link is None:
            if self.over is not None:
                raise self.over
            await self._turn()

    async def halt(self) -> None:
        """End the server, and start it no more."""
        if self._lives is not None and not self._lives.done():
            self._lives.cancel()
            await asyncio.wait((self._lives,), timeout=_STOP_S)
        self._link, self._lives = None, None

    async def gone(self) -> ServerUnavailable | None:
        """Return when the server has ended and is not started again; None: it ended well."""
        while self.over is None:
            await self._turn()
        return None if self._ending.exit_code == 0 and self._worked else self.over

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """As `ServerLink.request`, in whatever life the server is.

        Raises:
            RpcError: the server's own error, or `data.mew.why` says why there is none.
        """
        link = await self.reached()
        try:
            return await link.request(method, params)
        except LinkLost as lost:
            if not lost.unheard:
                raise await self._died(link, method) from None
        link = await self.reached()
        try:
            return await link.request(method, params)
        except LinkLost:
            raise await self._died(link, method) from None

    async def reached(self) -> ServerLink:
        """The link, now or as soon as the server is up, if that is soon.

        Raises:
            RpcError: it is not.
        """
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + _PATIENCE_S
        while self._link is None or self._link.ended.is_set():
            if self.over is not None or self._lives is None or max(self._due_s, now_s()) >= until_s:
                raise self.absence()
            try:
                async with asyncio.timeout_at(until_s):
                    await self._turn()
            except TimeoutError:
                raise self.absence() from None
        return self._link

    async def _died(self, link: ServerLink, method: str) -> RpcError:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self._link is link and self.over is None:
                    await self._turn()
        except TimeoutError:
            pass
        words = f"the server {self._ending.words} while it worked on {method}"
        if self._may_return(self._ending):
            return failure("server_died", f"{words}; it is being {self._verb} again", coming_back=True)
        return failure("server_died", f"{words}, and is not {self._verb} again", coming_back=False)

    def absence(self) -> RpcError:
        """Why there is no link now."""
        if self.over is not None:
            return failure("server_gone", f"the server {self._ending.words}, and is not {self._verb} again")
        if not self._worked:
            return failure("server_starting", "the server has not started yet; ask again later")
        wait_s = max(0.0, self._due_s - asyncio.get_running_loop().time())
        return failure(
            "server_restarting",
            f"the server {self._ending.words}, and is being {self._verb} again; ask again later",
            retry_after_s=round(wait_s, 1),
        )

    # Its lives.

    async def _live_on(self) -> None:
        loop, delay_s = asyncio.get_running_loop(), self._delay_s
        current_request.set(None)
        while True:
            began_s = loop.time()
            self._ending = await self._live()
            self._link = None
            if not self._worked or not self._may_return(self._ending):
                self.over = ServerUnavailable(self._sentence(), worked=self._worked)
                self._told_turn()
                return
            if loop.time() - began_s > _HEALTHY_S:
                delay_s = self._delay_s
            _log.warning("the server %s; it is %s again in %g s", self._ending.words, self._verb, delay_s)
            self._due_s = loop.time() + delay_s
            self._told_turn()
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, _DELAY_S_MAX)
            self.restarts += 1

    async def _live(self) -> ServerExit:
        """One life, to its end or to where it failed to begin."""
        ending: ServerExit | None = None
        try:
            async with AsyncExitStack() as stack:
                wire = await stack.enter_async_context(self._opening())
                try:
                    async with asyncio.timeout(self._start_timeout_s):
                        opened = open_link(wire, self._handler, self._ours, modern=self._modern)
                        link = await stack.enter_async_context(opened)
                except TimeoutError:
                    return _ending(wire, f"did not answer within {self._start_timeout_s:g} s")
                except HandshakeFailed as unfit:
                    return _ending(wire, unfit.words)
                self._begin(link)
                await link.over()
                self._link, ending = None, _ending(wire, link.words)
                self._ending = ending
                self._told_turn()
                return ending
        except Exception as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from error  # it fails as it is ended, and that is no end of its own
            return ending or _failed(error)

    def _begin(self, link: ServerLink) -> None:
        self._worked, self._link = True, link
        self._told_turn()
        self._up(link)

    def _may_return(self, ending: ServerExit) -> bool:
        return self._restart == "always" or (self._restart == "on-failure" and ending.exit_code != 0)

    def _sentence(self) -> str:
        words = f"the server {self._ending.words}"
        if not self._worked and self._ending.exit_code is not None:
            words += " before it answered"
        if self._ending.last_words:
            words += f"; the last it said: {self._ending.last_words[-1]}"
        return words

    async def _turn(self) -> None:
        await self._turned.wait()

    def _told_turn(self) -> None:
        """Wake all who wait for something to happen."""
        self._turned.set()
        self._turned = asyncio.Event()


def _ending(wire: ServerTransport, words: str | None) -> ServerExit:
    ending = wire.ending()
    return ending if words is None else ending._replace(words=words)


def _failed(error: Exception) -> ServerExit:
    match error:
        case ExceptionGroup():
            return _failed(error.exceptions[0])
        case FileNotFoundError():
            return ServerExit(f"cannot be started: there is no {error.filename}")
        case OSError():
            return ServerExit(f"cannot be started: {error.strerror or error}")
    _log.debug("a life of the server failed", exc_info=error)
    return ServerExit(f"failed: {type(error).__name__}")
