"""An MCP server as a participant of a space: `run_bridge`, or `Bridge` where the server is to answer first."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.client.participant.memory import NoMemory
from mew.client.participant.runtime import Behaviour, ParticipantRuntime
from mew.mcp_bridge.server.transport.stdio import Tell
from mew.mcp_bridge.server.transport.transport import TransportFactory, open_transport

from .handshake import HandshakeResult
from .inflight import InflightRequests, current_request
from .lifecycle import ServerLifecycle
from .link import ServerLink
from .notifications import NotificationQueue, ServerNotifications
from .server_requests import ServerRequests
from .settings import Endpoint, ServerSettings
from .subscriptions import NotificationInterests, ServerSubscriptions
from .tool_fingerprints import ToolFingerprints
from .translator import Translator

__all__ = ["Bridge", "run_bridge"]

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5  # between two looks at all tools
_SURVEY_S: Final = 60.0
_LISTS: Final = ("tools", "resources", "prompts")


async def run_bridge(client: Client, settings: ServerSettings, *, tell: Tell | None = None) -> None:
    """Serve a server in the space of a connected client, until shut down, cancelled, or the server is gone for good.

    `tell` takes what the server writes to its standard error; without it, that goes to the log.

    Raises:
        ServerUnavailable: it never answered, or failed and is not to be started again; a sentence that says why.
        Disconnected: the connection to the space ended for good.
    """
    async with Bridge(settings, tell=tell) as bridge:
        await bridge.serve(client)


class Bridge:
    """One server; an async context, inside which it runs and has answered. `serve` makes it a participant."""

    def __init__(
        self, settings: ServerSettings, *, tell: Tell | None = None, opening: TransportFactory | None = None
    ) -> None:
        """`opening` reaches the server in another way than the settings say."""
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()
        self._inflight = InflightRequests()
        self._relay = NotificationQueue()
        self._progress = NotificationQueue()
        self._fingerprints = ToolFingerprints(settings.fingerprints)
        interests = NotificationInterests()
        self._server_requests = ServerRequests(
            self._inflight, names=settings.ask, roots=settings.roots, timeout_s=settings.ask_timeout_s
        )
        self._notifications = ServerNotifications(
            self._inflight, interests, self._relay, self._progress, self._server_requests
        )
        self._lifecycle = ServerLifecycle(
            opening or partial(open_transport, settings.server, tell or _to_log),
            self._notifications,
            _ours(settings),
            restart=settings.restart,
            start_timeout_s=settings.start_timeout_s,
            delay_s=settings.restart_delay_s,
            modern=settings.modern,
            verb="called" if isinstance(settings.server, Endpoint) else "started",
            up=self._up,
        )
        self._subscriptions = ServerSubscriptions(interests, self._lifecycle, self._spawn)
        self._translator = Translator(
            self._lifecycle,
            self._inflight,
            interests,
            self._subscriptions,
            self._progress,
            self._server_requests,
            self._fingerprints,
            timeout_s=settings.request_timeout_s,
        )
        self._notifications.acknowledged = self._subscriptions.acknowledged
        self._notifications.tools_changed = self._look
        self._looking: asyncio.Task[None] | None = None
        self._has_looked = True

    async def __aenter__(self) -> Self:
        """
        Raises:
            ServerUnavailable: the server does not answer.
            OSError, ValueError: the tools as first seen cannot be read.
        """
        await asyncio.to_thread(self._fingerprints.load)
        await self._tasks.__aenter__()
        try:
            await self._lifecycle.start(self._tasks)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    @property
    def terms(self) -> HandshakeResult | None:
        """What the server said of itself; None while it is down."""
        return None if self._lifecycle.link is None else self._lifecycle.link.terms

    async def tools(self) -> list[dict[str, Any]]:
        """The tools of the server, as it lists them.

        Raises:
            RpcError: it does not.
        """
        current_request.set(None)
        return await self._translator.survey()

    async def serve(self, client: Client) -> None:
        """As `run_bridge`."""
        behaviour = Behaviour(start=[self._start], stop=[self._lifecycle.halt], status=[self._status])
        serving = ParticipantRuntime(client, self._translator, behaviour, NoMemory())
        self._server_requests.client = self._notifications.client = client
        beside = [
            self._spawn(work) for work in (self._relay.run(), self._progress.run(), self._watch(serving))
        ]
        try:
            await serving.run()
        finally:
            self._server_requests.client = self._notifications.client = None
            for task in beside:
                task.cancel()
        if self._lifecycle.over is not None and (gone := await self._lifecycle.gone()) is not None:
            raise gone

    async def _start(self) -> None:
        await self._lifecycle.start(self._tasks)

    async def _status(self) -> dict[str, Any]:
        link = self._lifecycle.link
        return {"server": "up" if link is not None else "down", "server_restarts": self._lifecycle.restarts}

    async def _watch(self, serving: ParticipantRuntime) -> None:
        await self._lifecycle.gone()
        serving.stop()

    def _up(self, link: ServerLink) -> None:
        """The server lives, for the first time or again; of the one before, nothing is sure."""
        self._subscriptions.restart(link, partial(self._missed, link))
        if self._notifications.client is not None:
            self._missed(link)
        else:
            self._look()

    def _missed(self, link: ServerLink) -> None:
        for what in _LISTS:
            if link.terms.has(what):
                self._notifications.changed(what)

    def _look(self) -> None:
        """At the tools, once for all that changes at a time."""
        self._has_looked = False
        if self._looking is None or self._looking.done():
            self._looking = self._spawn(self._survey())

    async def _survey(self) -> None:
        current_request.set(None)
        while not self._has_looked:
            self._has_looked = True
            link = self._lifecycle.link
            if link is not None and link.terms.has("tools"):
                with suppress(RpcError, TimeoutError):
                    async with asyncio.timeout(_SURVEY_S):
                        await self._translator.survey()
            await asyncio.sleep(_LOOK_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _end(self) -> None:
        try:
            await self._lifecycle.halt()
        finally:
            for task in tuple(self._running):
                task.cancel()
            # Nothing of ours fails the group: what failed inside the block goes on as it is.
            await self._tasks.__aexit__(None, None, None)


def _ours(settings: ServerSettings) -> dict[str, Any]:
    """What the server may ask of us: whether there is somebody to answer it, the space knows."""
    ours: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
    return ours | ({"roots": {}} if settings.roots else {})


def _to_log(line: str) -> None:
    _log.info("the server says: %s", line)
