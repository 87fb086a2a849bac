"""Where one check plays: who is there, how they come and go, and that all is undone at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Final

import aiohttp

from .connection import Actor, Approach, Refused, open_connection
from .drafts import Say
from .match import is_id, is_kind, part
from .outcome import NotOffered, Transcript, Violation
from .roles import Cast, Join, Role

__all__ = ["Lessons", "Stage"]


_HANDSHAKE_PATIENCES: Final = 5
_LEAVE_PATIENCES: Final = 4
_FULL: Final = (409, 423, 429, 503)  # where somebody who has just left may still be counted
_KNOCKS: Final = 20
_MARK: Final = Say("chat", {"text": "mark"})
_KEPT: Final = "invite.capabilities-kept"
_COMPLETED: Final = frozenset({"protocol", "id", "ts", "from"})


@dataclass(slots=True)
class Lessons:
    """What was found out about a gateway, and need not be tried anew by each check."""

    no_guests: str = ""
    """Why nobody can be invited."""
    spares: dict[str, list[Any]] = field(default_factory=dict)
    """What each spare held when it first came."""
    soiled: set[str] = field(default_factory=set)
    """Spares that hold what an earlier check gave them, and could not take back."""


class Stage:
    """One check's play. An async context: at its end what it changed is undone, and everyone leaves."""

    def __init__(self, cast: Cast, lessons: Lessons | None = None) -> None:
        self.cast = cast
        self.lessons = lessons or Lessons()
        self.transcript = Transcript({role.token for role in cast.roles.values()})
        self.borrowed: set[str] = set()
        """Roles that stand in for guests in this check."""
        self.needs: set[str] = set()
        """Requirements without which this check cannot go on, given what it did so far."""
        self.session: aiohttp.ClientSession
        self._tasks: asyncio.TaskGroup
        self._listening: list[asyncio.Task[None]] = []
        self._actors: list[Actor] = []
        self._held_first: dict[str, list[Any]] = {}
        self._afterwards: list[Callable[[], Awaitable[object]]] = []

    async def __aenter__(self) -> "Stage":
        timeout = aiohttp.ClientTimeout(total=self.cast.patience_s * _HANDSHAKE_PATIENCES)
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
                for actor in self._actors:
                    actor.come_back = None  # else it keeps all it heard until the next collection of garbage

    async def _in_time(self, ending: Awaitable[None]) -> None:
        """A gateway that hangs must not hang the kit."""
        with suppress(TimeoutError, Violation, Refused, aiohttp.ClientError, ConnectionError):
            async with asyncio.timeout(self.cast.patience_s * _LEAVE_PATIENCES):
                await ending

    async def _leave(self) -> None:
        await asyncio.gather(*(actor.leave() for actor in self._actors), return_exceptions=True)

    def afterwards(self, act: Callable[[], Awaitable[object]]) -> None:
        """Have this done when the check is over, whatever came of it; what was asked for last is done first."""
        self._afterwards.append(act)

    async def _clean_up(self) -> None:
        if not self._afterwards:
            return
        while self._afterwards:
            with suppress(Violation, NotOffered, Refused):  # a gateway that does otherwise
                await self._afterwards.pop()()
        with suppress(Violation):
            owner = await self.enter("owner")
            others = [one for one in self._actors if one.id != owner.id and not one.is_closed]
            await self.settle(owner, *others[:1])

    # Who is there.

    @property
    def actors(self) -> Sequence[Actor]:
        """Everyone who ever connected in this check, in that order."""
        return self._actors

    def not_completed(self, name: str, values: Sequence[Any]) -> list[Any]:
        """Those of these values of a field that the gateway has to take as they are, `...` being none.

        On a connection that joined by a frame it may fill in what is missing, as it does over HTTP (§5.3).
        """
        if self.cast.join is not Join.FRAME:
            return list(values)
        if name == "correlation_id":
            return [one for one in values if not isinstance(one, str)]
        return [one for one in values if one is not ... or name not in _COMPLETED]

    def role(self, name: str) -> Role:
        """A role of the cast.

        Raises:
            NotOffered: the kit was given no token for it.
        """
        if name not in self.cast.roles:
            raise NotOffered(f"the kit has no token for the role {name!r}")
        return self.cast.roles[name]

    async def enter(self, name: str) -> Actor:
        """Somebody in this role: as it is there already, or else it connects now and hears its welcome."""
        for actor in self._actors:
            if actor.name == name and actor.id and not actor.is_gone:
                return actor
        return await self.join(self.role(name))

    async def enter_all(self, *names: str) -> list[Actor]:
        return [await self.enter(name) for name in names]

    async def join(self, role: Role, *, space: str | None = None, approach: Approach | None = None) -> Actor:
        """Connect as this role and hear the welcome.

        Raises:
            Refused: it was not let in.
            Violation: there was no welcome.
        """
        return await self.welcomed(await self.come(role, space=space, approach=approach))

    async def come(self, role: Role, *, space: str | None = None, approach: Approach | None = None) -> Actor:
        """Connect, also where one that has just left must be forgotten first; what is said then is not heard yet.

        Raises:
            Refused: it was not let in.
        """
        return await self._knock(partial(self.connect, role, space=space, approach=approach))

    async def connect(
        self, role: Role, *, space: str | None = None, approach: Approach | None = None
    ) -> Actor:
        """Connect, and no more: what the gateway says then is for the check to hear.

        Raises:
            Refused: it was not let in.
        """
        actor = await open_connection(
            self.session, self.cast, role, self.transcript, space=space, approach=approach or Approach()
        )
        actor.space = space
        actor.come_back = partial(self._return, actor)
        self._actors.append(actor)
        self._listening.append(self._tasks.create_task(actor.listen()))
        return actor

    async def _knock(self, connect: Callable[[], Awaitable[Actor]]) -> Actor:
        """Where each may have one connection, one that is closed may take a moment to be forgotten."""
        for _ in range(_KNOCKS):
            try:
                return await connect()
            except Refused as error:
                if error.status not in _FULL:
                    raise
            await asyncio.sleep(self.cast.patience_s / _KNOCKS)
        return await connect()

    async def welcomed(self, actor: Actor) -> Actor:
        """Wait for the welcome, from which an actor knows who it is."""
        welcome = await actor.hear(is_kind("system/welcome"), "a system/welcome after it connected (§3.8.1)")
        who = part(welcome, "payload", "you", "id")
        if not isinstance(who, str):
            raise Violation(f"the welcome has no payload.you.id (§3.8.1): {welcome}")
        actor.welcome, actor.id = welcome, who
        held = part(welcome, "payload", "you", "capabilities")
        if actor.name not in self.cast.roles and isinstance(held, list):
            first = self._held_first.setdefault(actor.name, held)
            if any(one not in held for one in first):  # what follows may fail for that alone
                self.needs.add(_KEPT)
        return actor

    async def let_in(
        self, role: Role, *, space: str | None = None, approach: Approach | None = None
    ) -> Actor | None:
        """Somebody who is welcomed; None: it is refused, disconnected, or left without a welcome."""
        actor = None
        try:
            actor = await self.connect(role, space=space, approach=approach)
            return await self.welcomed(actor)
        except (Refused, Violation):
            if actor is not None and actor.heard(is_kind("system/welcome")):
                raise
            return None

    async def come_back(self, actor: Actor) -> Actor:
        """Connect an actor again that was disconnected or has left, and hear the welcome.

        Raises:
            Refused: it was not let in.
            Violation: there was no welcome.
        """
        await actor.disconnected("as it is to come back")
        while actor.already(is_kind("system/welcome")):
            continue  # those of before, which said what a grant had changed

        async def connect() -> Actor:
            return await open_connection(
                self.session, self.cast, actor.role, self.transcript, space=actor.space, again=actor
            )

        await self._knock(connect)
        self._listening.append(self._tasks.create_task(actor.listen()))
        return await self.welcomed(actor)

    async def _return(self, actor: Actor) -> None:
        try:
            await self.come_back(actor)
        except Refused as error:
            raise Violation(
                f"{actor.name} was cut off with an error, and is not let in again: {error}"
            ) from error

    async def rejoin(self, actor: Actor) -> Actor:
        """Leave and come back, which gives a new welcome."""
        await actor.leave()
        return await self.come_back(actor)

    async def another(self, actor: Actor) -> Actor | None:
        """A second connection of the same participant; None where the gateway allows each only one.

        It may take the place of the first: `twice` knows.
        """
        try:
            second = await self.connect(actor.role, space=actor.space)
        except Refused:
            return None
        try:
            return await self.welcomed(second)
        except Violation:
            if not second.is_closed:
                raise
            return None

    async def twice(self, first: Actor, witness: Actor) -> list[Actor]:
        """The connections of one participant after it tried to have a second: one or two."""
        second = await self.another(first)
        if second is None:
            return [first]
        sent = await _MARK.by(witness)
        try:
            await first.hear(is_id(sent["id"]), f"a chat that {witness.name} sent to everyone")
        except Violation:
            if first.is_closed:
                return [second]
            await second.leave()  # it took the place of the first, which hears nothing any more
            return [await self.rejoin(first)]
        return [first, second]

    # What must have happened by now.

    async def settle(self, speaker: Actor, *hearers: Actor, mark: Say = _MARK) -> None:
        """Return when all that the speaker said before has reached them, if it ever will: a mark comes after it.

        Who was cut off with an error comes back for that.

        Raises:
            Violation: the mark did not arrive.
        """
        try:
            await self._mark(speaker, hearers, mark)
        except Violation:
            if not any(one.is_cut_off for one in (speaker, *hearers)):
                raise
            await self._mark(speaker, hearers, mark)

    async def _mark(self, speaker: Actor, hearers: Sequence[Actor], mark: Say) -> None:
        for one in (speaker, *hearers):
            if one.is_cut_off:
                await self.come_back(one)
        sent = await mark.by(speaker)
        for hearer in hearers:
            what = f"a {mark.kind} that {speaker.name} sent to everyone"
            await hearer.hear(is_id(sent["id"]), what, after=speaker)

    async def come_through(self, speaker: Actor, *hearers: Actor, mark: Say = _MARK) -> None:
        """As `settle`, after something that may be refused: the speaker has also heard what the gateway says to it.

        It may have been cut off for it, with an error or without a word, and is there again.

        Raises:
            Violation: the mark did not arrive.
        """
        try:
            await self._there_and_back(speaker, hearers, mark)
        except Violation:
            if not speaker.is_closed:
                raise
            await self.come_back(speaker)
            await self._there_and_back(speaker, hearers, mark)

    async def _there_and_back(self, speaker: Actor, hearers: Sequence[Actor], mark: Say) -> None:
        await self.settle(speaker, *hearers, mark=mark)
        await self.settle(hearers[0], speaker)
