"""Registers checks and runs them one after the other: none can hang, crash or spoil the others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import aiohttp

from .connection import Actor, Refused, Unreachable
from .context import Lessons, Stage
from .outcome import NotOffered, Outcome, Result, Transcript, Violation
from .roles import DOOMED, BadCast, Cast, Role, http_beside

__all__ = ["Check", "CheckOn", "PlaceT", "Registry", "all_checks", "check", "judged", "reached", "run_checks"]


class Place(Protocol):
    """Where a check can be played: an async context that keeps what was said."""

    cast: Cast
    transcript: Transcript
    needs: set[str]

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


PlaceT = TypeVar("PlaceT", bound=Place)


@dataclass(frozen=True, slots=True)
class CheckOn(Generic[PlaceT]):
    """`requirements` are ids of the ledger; `title` says what is tried, on a stage of this type.

    `needs` are requirements without which it cannot get as far as its subject.
    """

    requirements: tuple[str, ...]
    play: Callable[[PlaceT], Awaitable[None]]
    name: str
    title: str
    needs: tuple[str, ...] = ()


class Registry(Generic[PlaceT]):
    """The checks of one side, in the order in which their modules were imported."""

    def __init__(self) -> None:
        self.checks: list[CheckOn[PlaceT]] = []

    def check(
        self, *requirements: str, needs: tuple[str, ...] = ()
    ) -> Callable[[Callable[[PlaceT], Awaitable[None]]], Callable[[PlaceT], Awaitable[None]]]:
        """Have this function tried for these requirements. Its docstring, one sentence, is its title."""

        def register(play: Callable[[PlaceT], Awaitable[None]]) -> Callable[[PlaceT], Awaitable[None]]:
            assert play.__doc__, f"{play} does not say what it tries"
            name = f"{play.__module__.rpartition('.')[2]}.{getattr(play, '__name__', '')}"
            title = play.__doc__.strip().splitlines()[0]
            self.checks.append(CheckOn(requirements, play, name, title, needs))
            return play

        return register


Check: TypeAlias = CheckOn[Stage]

_gateways: Registry[Stage] = Registry()
check = _gateways.check


def all_checks() -> tuple[Check, ...]:
    """All there are for gateways, in the order of their modules."""
    from . import checks as _modules  # they register themselves

    assert _modules is not None
    return tuple(_gateways.checks)


_UNAUTHORIZED: Final = (401, 403)
_NOT_FOUND: Final = 404
_POLICY: Final = 1008
_OWN_CODES: Final = range(3000, 5000)


async def reached(cast: Cast) -> Cast:
    """The cast as it can be played; without an HTTP API that nobody named and that is not there.

    A gateway that takes a connection and then misbehaves is there: what it does wrong is for the checks to say.

    Raises:
        BadCast: nobody is there, nobody is let in, or a token is wrong.
    """
    async with Stage(cast) as stage:
        closed: dict[str, str] = {}
        for named, role, space in _everybody(cast):
            why = await _refusal(stage, role, space)
            if role.name == "owner" and space is None and why is None and not stage.actors[0].welcome:
                return cast  # it takes connections, and welcomes nobody
            if why is not None and role.name != DOOMED:  # who may have been kicked in an earlier run
                closed[named] = why
        if closed:
            raise BadCast(_told(closed))
        return await _with_http(stage)


def _everybody(cast: Cast) -> Iterator[tuple[str, Role, str | None]]:
    """The owner first: who is not let in at all is told of it."""
    for name, role in sorted(cast.roles.items(), key=lambda one: one[0] != "owner"):
        yield repr(name), role, None
    if cast.elsewhere is not None:
        for name, role in cast.elsewhere.roles.items():
            yield f"{name!r} in the space {cast.elsewhere.space!r}", role, cast.elsewhere.space


async def _refusal(stage: Stage, role: Role, space: str | None) -> str | None:
    """How the gateway says that this token is none; None: it does not.

    Raises:
        BadCast: there is no gateway, no such space, or the token is somebody else's.
    """
    named = space or stage.cast.space
    try:
        actor = await stage.come(role, space=space)
    except Unreachable as error:
        raise BadCast(str(error)) from error
    except Refused as error:
        if error.status in _UNAUTHORIZED:
            return str(error)
        if role.name != "owner" and error.status != _NOT_FOUND:
            return None
        raise BadCast(
            f"{stage.cast.url}/ws?space={named} answers the role {role.name!r} with {error} and no WebSocket: "
            f"is a gateway there, and does it have the space {named!r}?"
        ) from error
    why = await _closed(stage, actor)
    if why is None and actor.id and role.id not in (None, actor.id):
        raise BadCast(f"the token of the role {role.name!r} is that of {actor.id!r}, not of {role.id!r}")
    await actor.leave()
    return why


async def _closed(stage: Stage, actor: Actor) -> str | None:
    """How it was shown the door instead of being welcomed, if it was."""
    try:
        await stage.welcomed(actor)
    except Violation:
        if not actor.is_closed:
            return None
        code = await actor.disconnected("")
        if code == _POLICY or code in _OWN_CODES or actor.received:
            return f"closed with code {code}"
    return None


def _told(closed: dict[str, str]) -> str:
    how = " and ".join(dict.fromkeys(closed.values()))
    names = ", ".join(closed)
    return f"the gateway refuses the token of the role{'s' if len(closed) > 1 else ''} {names}: {how}"


async def _with_http(stage: Stage) -> Cast:
    cast = stage.cast
    if cast.http is None:
        return cast
    try:
        async with stage.session.get(cast.http, allow_redirects=False):
            return cast
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        if cast.http == http_beside(cast.url):
            return replace(cast, http=None)
        why = "it does not answer" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise BadCast(f"http = {cast.http!r} cannot be reached: {why}") from error


_PATIENCES: Final = 15  # a check may wait so many times as long as one answer may take
_IN_VAIN_MAX: Final = 5
_WELCOMED: Final = "welcome.sent"


async def run_checks(
    cast: Cast,
    chosen: Iterable[Check],
    progress: Callable[[Check], None] = lambda check: None,
    results: list[Result] | None = None,
) -> list[Result]:
    """What each came to; in `results`, where given, as soon as it is known.

    If nobody is let in, the first ones show that, and the others are blocked. What fails because a requirement that
    it needs does not hold is blocked too: the root cause is reported once.
    """
    results = [] if results is None else results
    lessons, in_vain = Lessons(), 0
    for check in chosen:
        progress(check)
        if in_vain == _IN_VAIN_MAX:
            why = f"not played: in {in_vain} checks one after the other nobody was welcomed"
            results.append(Result(check.name, check.requirements, Outcome.BLOCKED, why, blocked_by=_WELCOMED))
            continue
        stage = Stage(cast, lessons)
        results.append(await judged(check, stage))
        if any(actor.welcome for actor in stage.actors):
            in_vain = 0
        elif results[-1].outcome in (Outcome.FAIL, Outcome.BLOCKED):
            in_vain += 1
    _find_root_causes(results)
    return results


def _find_root_causes(results: list[Result]) -> None:
    """Turn failures into what is blocked, where a requirement that the check needs does not hold.

    A gateway that cannot be reached any more fails the first check that finds it so.
    """
    first = next((place for place, one in enumerate(results) if one.outcome is Outcome.BLOCKED), None)
    if first is not None and not any(one.outcome is Outcome.FAIL for one in results):
        results[first] = replace(results[first], outcome=Outcome.FAIL, blocked_by="")
    failed = {one for result in results if result.outcome is Outcome.FAIL for one in result.requirements}
    for place, result in enumerate(results):
        causes = [one for one in result.needs if one in failed and one not in result.requirements]
        if result.outcome is Outcome.FAIL and causes:
            results[place] = replace(result, outcome=Outcome.BLOCKED, evidence=(), blocked_by=causes[0])


async def judged(check: CheckOn[PlaceT], stage: PlaceT) -> Result:
    """Play it on a stage that was not entered yet; whatever happens on it becomes a result."""
    began = time.monotonic()
    limit_s = stage.cast.patience_s * _PATIENCES
    outcome, why, blocked_by = Outcome.PASS, "", ""
    try:
        async with asyncio.timeout(limit_s), stage:
            await check.play(stage)
    except NotOffered as error:
        outcome, why = Outcome.NOT_OFFERED, str(error)
    except Unreachable as error:
        outcome, why, blocked_by = Outcome.BLOCKED, str(error), _WELCOMED
    except Violation as error:
        outcome, why = Outcome.FAIL, str(error)
    except Refused as error:
        outcome, why = Outcome.FAIL, f"the gateway refused a connection it had to accept: {error}"
    except TimeoutError:
        outcome, why = Outcome.FAIL, f"not done within {limit_s:g} s: something hangs"
    except Exception as error:  # an envelope without what every envelope of its kind has
        outcome, why = Outcome.FAIL, f"what came back cannot be understood: {type(error).__name__}: {error}"
    why = stage.transcript.redacted(why)
    evidence = stage.transcript.evidence(why) if outcome is Outcome.FAIL else ()
    took_s = time.monotonic() - began
    needs = (*check.needs, *sorted(stage.needs))
    return Result(check.name, check.requirements, outcome, why, evidence, took_s, needs, blocked_by)
