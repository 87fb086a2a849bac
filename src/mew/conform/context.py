"""Where one check plays: who is there, how they come and go, and that all is undone at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Final

import aiohttp

from .connection import ConnectOptions, ScriptedClient, UpgradeRefused, open_connection
from .drafts import Draft
from .match import is_id, is_kind, part
from .outcome import NotOffered, Transcript, Violation
from .roles import JoinMethod, KitConfig, Role

__all__ = ["CheckContext", "GatewayFindings"]


_HANDSHAKE_PATIENCES: Final = 5
_LEAVE_PATIENCES: Final = 4
_FULL: Final = (409, 423, 429, 503)  # where somebody who has just left may still be counted
_KNOCKS: Final = 20
_MARK: Final = Draft("chat", {"text": "mark"})
_KEPT: Final = "invite.capabilities-kept"
_COMPLETED: Final = frozenset({"protocol", "id", "ts", "from"})


@dataclass(slots=True)
class GatewayFindings:
    """What was found out about a gateway, and need not be tried anew by each check."""

    invite_unavailable: str = ""
    """Why nobody can be invited."""
    spares: dict[str, list[Any]] = field(default_factory=dict)
    """What each spare held when it first came."""
    dirty: set[str] = field(default_factory=set)
    """Spares that hold what an earlier check gave them, and could not take back."""


class CheckContext:
    """One check's play. An async context: at its end what it changed is undone, and everyone leaves."""

    def __init__(self, config: KitConfig, findings: GatewayFindings | None = None) -> None:
        self.config = config
        self.findings = findings or GatewayFindings()
        self.transcript = Transcript({role.token for role in config.roles.values()})
        self.borrowed: set[str] = set()
        """Roles that stand in for guests in this check."""
        self.needs: set[str] = set()
        """Requirements without which this check cannot go on, given what it did so far."""
        self.session: aiohttp.ClientSession
        self._tasks: asyncio.TaskGroup
        self._listening: list[asyncio.Task[None]] = []
        self._actors: list[ScriptedClient] = []
        self._held_first: dict[str, list[Any]] = {}
        self._cleanups: list[Callable[[], Awaitable[object]]] = []

    async def __aenter__(self) -> "CheckContext":
        timeout = aiohttp.ClientTimeout(total=self.config.timeout_s * _HANDSHAKE_PATIENCES)
        self.session = aiohttp.ClientSession(timeout=timeout)
        self._tasks = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.transcript.over = True
        try:
            await self._in_time(self._clean_up())
            await self._in_time(self._leave())
        finally:
            try:
                for task in self._listening:
                    task.cancel()
                await self._tasks.__aexit__(None, None, None)
                await self._in_time(self._leave())  # whom a listener held up
            finally:  # cancelled meanwhile, too: the time of a check may end here
                await self.session.close()
                for client in self._actors:
                    client.reconnect = None  # else it keeps all it heard until the next collection of garbage

    async def _in_time(self, ending: Awaitable[None]) -> None:
        """A gateway that hangs must not hang the kit."""
        with suppress(TimeoutError, Violation, UpgradeRefused, aiohttp.ClientError, ConnectionError):
            async with asyncio.timeout(self.config.timeout_s * _LEAVE_PATIENCES):
                await ending

    async def _leave(self) -> None:
        await asyncio.gather(*(client.leave() for client in self._actors), return_exceptions=True)

    def add_cleanup(self, act: Callable[[], Awaitable[object]]) -> None:
        """Have this done when the check is over, whatever came of it; what was asked for last is done first."""
        self._cleanups.append(act)

    async def _clean_up(self) -> None:
        if not self._cleanups:
            return
        while self._cleanups:
            with suppress(Violation, NotOffered, UpgradeRefused):  # a gateway that does otherwise
                await self._cleanups.pop()()
        with suppress(Violation):
            owner = await self.client("owner")
            others = [one for one in self._actors if one.id != owner.id and not one.is_closed]
            await self.barrier(owner, *others[:1])

    # Who is there.

    @property
    def all_clients(self) -> Sequence[ScriptedClient]:
        """Everyone who ever connected in this check, in that order."""
        return self._actors

    def unfilled_values(self, name: str, values: Sequence[Any]) -> list[Any]:
        """Those of these values of a field that the gateway has to take as they are, `...` being none.

        On a connection that joined by a frame it may fill in what is missing, as it does over HTTP (§5.3).
        """
        if self.config.join is not JoinMethod.FRAME:
            return list(values)
        if name == "correlation_id":
            return [one for one in values if not isinstance(one, str)]
        return [one for one in values if one is not ... or name not in _COMPLETED]

    def role(self, name: str) -> Role:
        """A role of the cast.

        Raises:
            NotOffered: the kit was given no token for it.
        """
        if name not in self.config.roles:
            raise NotOffered(f"the kit has no token for the role {name!r}")
        return self.config.roles[name]

    async def client(self, name: str) -> ScriptedClient:
        """Somebody in this role: as it is there already, or else it connects now and hears its welcome."""
        for client in self._actors:
            if client.name == name and client.id and not client.is_gone:
                return client
        return await self.join(self.role(name))

    async def clients(self, *names: str) -> list[ScriptedClient]:
        return [await self.client(name) for name in names]

    async def join(
        self, role: Role, *, space: str | None = None, options: ConnectOptions | None = None
    ) -> ScriptedClient:
        """Connect as this role and hear the welcome.

        Raises:
            Refused: it was not let in.
            Violation: there was no welcome.
        """
        return await self.welcomed(await self.connect_with_retry(role, space=space, options=options))

    async def connect_with_retry(
        self, role: Role, *, space: str | None = None, options: ConnectOptions | None = None
    ) -> ScriptedClient:
        """Connect, also where one that has just left must be forgotten first; what is said then is not heard yet.

        Raises:
            Refused: it was not let in.
        """
        return await self._connect_with_retry(partial(self.connect, role, space=space, options=options))

    async def connect(
        self, role: Role, *, space: str | None = None, options: ConnectOptions | None = None
    ) -> ScriptedClient:
        """Connect, and no more: what the gateway says then is for the check to hear.

        Raises:
            Refused: it was not let in.
        """
        client = await open_connection(
            self.session, self.config, role, self.transcript, space=space, options=options or ConnectOptions()
        )
        client.space = space
        client.reconnect = partial(self._return, client)
        self._actors.append(client)
        self._listening.append(self._tasks.create_task(client.read_loop()))
        return client

    async def _connect_with_retry(self, connect: Callable[[], Awaitable[ScriptedClient]]) -> ScriptedClient:
        """Where each may have one connection, one that is closed may take a moment to be forgotten."""
        for _ in range(_KNOCKS):
            try:
                return await connect()
            except UpgradeRefused as error:
                if error.status not in _FULL:
                    raise
            await asyncio.sleep(self.config.timeout_s / _KNOCKS)
        return await connect()

    async def welcomed(self, client: ScriptedClient) -> ScriptedClient:
        """Wait for the welcome, from which an actor knows who it is."""
        welcome = await client.expect(
            is_kind("system/welcome"), "a system/welcome after it connected (§3.8.1)"
        )
        who = part(welcome, "payload", "you", "id")
        if not isinstance(who, str):
            raise Violation(f"the welcome has no payload.you.id (§3.8.1): {welcome}")
        client.welcome, client.id = welcome, who
        held = part(welcome, "payload", "you", "capabilities")
        if client.name not in self.config.roles and isinstance(held, list):
            first = self._held_first.setdefault(client.name, held)
            if any(one not in held for one in first):  # what follows may fail for that alone
                self.needs.add(_KEPT)
        return client

    async def try_join(
        self, role: Role, *, space: str | None = None, options: ConnectOptions | None = None
    ) -> ScriptedClient | None:
        """Somebody who is welcomed; None: it is refused, disconnected, or left without a welcome."""
        client = None
        try:
            client = await self.connect(role, space=space, options=options)
            return await self.welcomed(client)
        except (UpgradeRefused, Violation):
            if client is not None and client.matching(is_kind("system/welcome")):
                raise
            return None

    async def reconnect(self, client: ScriptedClient) -> ScriptedClient:
        """Connect an actor again that was disconnected or has left, and hear the welcome.

        Raises:
            Refused: it was not let in.
            Violation: there was no welcome.
        """
        await client.disconnected("as it is to come back")
        while client.take(is_kind("system/welcome")):
            continue  # those of before, which said what a grant had changed

        async def connect() -> ScriptedClient:
            return await open_connection(
                self.session, self.config, client.role, self.transcript, space=client.space, again=client
            )

        await self._connect_with_retry(connect)
        self._listening.append(self._tasks.create_task(client.read_loop()))
        return await self.welcomed(client)

    async def _return(self, client: ScriptedClient) -> None:
        try:
            await self.reconnect(client)
        except UpgradeRefused as error:
            raise Violation(
                f"{client.name} was cut off with an error, and is not let in again: {error}"
            ) from error

    async def rejoin(self, client: ScriptedClient) -> ScriptedClient:
        """Leave and come back, which gives a new welcome."""
        await client.leave()
        return await self.reconnect(client)

    async def second_connection(self, client: ScriptedClient) -> ScriptedClient | None:
        """A second connection of the same participant; None where the gateway allows each only one.

        It may take the place of the first: `connect_twice` knows.
        """
        try:
            second = await self.connect(client.role, space=client.space)
        except UpgradeRefused:
            return None
        try:
            return await self.welcomed(second)
        except Violation:
            if not second.is_closed:
                raise
            return None

    async def connect_twice(self, first: ScriptedClient, observer: ScriptedClient) -> list[ScriptedClient]:
        """The connections of one participant after it tried to have a second: one or two."""
        second = await self.second_connection(first)
        if second is None:
            return [first]
        sent = await _MARK.send_by(observer)
        try:
            await first.expect(is_id(sent["id"]), f"a chat that {observer.name} sent to everyone")
        except Violation:
            if first.is_closed:
                return [second]
            await second.leave()  # it took the place of the first, which hears nothing any more
            return [await self.rejoin(first)]
        return [first, second]

    # What must have happened by now.

    async def barrier(self, sender: ScriptedClient, *receivers: ScriptedClient, mark: Draft = _MARK) -> None:
        """Return when all that the speaker said before has reached them, if it ever will: a mark comes after it.

        Who was cut off with an error comes back for that.

        Raises:
            Violation: the mark did not arrive.
        """
        try:
            await self._mark(sender, receivers, mark)
        except Violation:
            if not any(one.is_cut_off for one in (sender, *receivers)):
                raise
            await self._mark(sender, receivers, mark)

    async def _mark(self, sender: ScriptedClient, receivers: Sequence[ScriptedClient], mark: Draft) -> None:
        for one in (sender, *receivers):
            if one.is_cut_off:
                await self.reconnect(one)
        sent = await mark.send_by(sender)
        for receiver in receivers:
            what = f"a {mark.kind} that {sender.name} sent to everyone"
            await receiver.expect(is_id(sent["id"]), what, after=sender)

    async def round_trip(
        self, sender: ScriptedClient, *receivers: ScriptedClient, mark: Draft = _MARK
    ) -> None:
        """As `barrier`, after something that may be refused: the speaker has also heard what the gateway says to it.

        It may have been cut off for it, with an error or without a word, and is there again.

        Raises:
            Violation: the mark did not arrive.
        """
        try:
            await self._there_and_back(sender, receivers, mark)
        except Violation:
            if not sender.is_closed:
                raise
            await self.reconnect(sender)
            await self._there_and_back(sender, receivers, mark)

    async def _there_and_back(
        self, sender: ScriptedClient, receivers: Sequence[ScriptedClient], mark: Draft
    ) -> None:
        await self.barrier(sender, *receivers, mark=mark)
        await self.barrier(receivers[0], sender)
