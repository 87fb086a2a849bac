"""Registers checks and runs them one after the other: none can hang, crash or spoil the others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import aiohttp

from .connection import GatewayUnreachable, ScriptedClient, UpgradeRefused
from .context import CheckContext, GatewayFindings
from .outcome import CheckOutcome, CheckResult, NotOffered, Transcript, Violation
from .roles import KICKED, KitConfig, KitConfigError, Role, default_http_url

__all__ = [
    "Check",
    "CheckOn",
    "ContextT",
    "Registry",
    "all_checks",
    "check",
    "check_reachable",
    "run_check",
    "run_checks",
]


class AnyContext(Protocol):
    """Where a check can be played: an async context that keeps what was said."""

    config: KitConfig
    transcript: Transcript
    needs: set[str]

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


ContextT = TypeVar("ContextT", bound=AnyContext)


@dataclass(frozen=True, slots=True)
class CheckOn(Generic[ContextT]):
    """`requirements` are ids of the ledger; `title` says what is tried, on a stage of this type.

    `needs` are requirements without which it cannot get as far as its subject.
    """

    requirements: tuple[str, ...]
    play: Callable[[ContextT], Awaitable[None]]
    name: str
    title: str
    needs: tuple[str, ...] = ()


class Registry(Generic[ContextT]):
    """The checks of one side, in the order in which their modules were imported."""

    def __init__(self) -> None:
        self.checks: list[CheckOn[ContextT]] = []

    def check(
        self, *requirements: str, needs: tuple[str, ...] = ()
    ) -> Callable[[Callable[[ContextT], Awaitable[None]]], Callable[[ContextT], Awaitable[None]]]:
        """Have this function tried for these requirements. Its docstring, one sentence, is its title."""

        def register(play: Callable[[ContextT], Awaitable[None]]) -> Callable[[ContextT], Awaitable[None]]:
            assert play.__doc__, f"{play} does not say what it tries"
            name = f"{play.__module__.rpartition('.')[2]}.{getattr(play, '__name__', '')}"
            title = play.__doc__.strip().splitlines()[0]
            self.checks.append(CheckOn(requirements, play, name, title, needs))
            return play

        return register


Check: TypeAlias = CheckOn[CheckContext]

_gateways: Registry[CheckContext] = Registry()
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


async def check_reachable(config: KitConfig) -> KitConfig:
    """The cast as it can be played; without an HTTP API that nobody named and that is not there.

    A gateway that takes a connection and then misbehaves is there: what it does wrong is for the checks to say.

    Raises:
        BadCast: nobody is there, nobody is let in, or a token is wrong.
    """
    async with CheckContext(config) as ctx:
        closed: dict[str, str] = {}
        for named, role, space in _everybody(config):
            why = await _refusal(ctx, role, space)
            if role.name == "owner" and space is None and why is None and not ctx.all_clients[0].welcome:
                return config  # it takes connections, and welcomes nobody
            if why is not None and role.name != KICKED:  # who may have been kicked in an earlier run
                closed[named] = why
        if closed:
            raise KitConfigError(_told(closed))
        return await _with_http(ctx)


def _everybody(config: KitConfig) -> Iterator[tuple[str, Role, str | None]]:
    """The owner first: who is not let in at all is told of it."""
    for name, role in sorted(config.roles.items(), key=lambda one: one[0] != "owner"):
        yield repr(name), role, None
    if config.second_space is not None:
        for name, role in config.second_space.roles.items():
            yield f"{name!r} in the space {config.second_space.space!r}", role, config.second_space.space


async def _refusal(ctx: CheckContext, role: Role, space: str | None) -> str | None:
    """How the gateway says that this token is none; None: it does not.

    Raises:
        BadCast: there is no gateway, no such space, or the token is somebody else's.
    """
    named = space or ctx.config.space
    try:
        client = await ctx.connect_with_retry(role, space=space)
    except GatewayUnreachable as error:
        raise KitConfigError(str(error)) from error
    except UpgradeRefused as error:
        if error.status in _UNAUTHORIZED:
            return str(error)
        if role.name != "owner" and error.status != _NOT_FOUND:
            return None
        raise KitConfigError(
            f"{ctx.config.url}/ws?space={named} answers the role {role.name!r} with {error} and no WebSocket: "
            f"is a gateway there, and does it have the space {named!r}?"
        ) from error
    why = await _closed(ctx, client)
    if why is None and client.id and role.id not in (None, client.id):
        raise KitConfigError(
            f"the token of the role {role.name!r} is that of {client.id!r}, not of {role.id!r}"
        )
    await client.leave()
    return why


async def _closed(ctx: CheckContext, client: ScriptedClient) -> str | None:
    """How it was shown the door instead of being welcomed, if it was."""
    try:
        await ctx.welcomed(client)
    except Violation:
        if not client.is_closed:
            return None
        code = await client.disconnected("")
        if code == _POLICY or code in _OWN_CODES or client.received:
            return f"closed with code {code}"
    return None


def _told(closed: dict[str, str]) -> str:
    how = " and ".join(dict.fromkeys(closed.values()))
    names = ", ".join(closed)
    return f"the gateway refuses the token of the role{'s' if len(closed) > 1 else ''} {names}: {how}"


async def _with_http(ctx: CheckContext) -> KitConfig:
    config = ctx.config
    if config.http is None:
        return config
    try:
        async with ctx.session.get(config.http, allow_redirects=False):
            return config
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        if config.http == default_http_url(config.url):
            return replace(config, http=None)
        why = "it does not answer" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise KitConfigError(f"http = {config.http!r} cannot be reached: {why}") from error


_PATIENCES: Final = 15  # a check may wait so many times as long as one answer may take
_IN_VAIN_MAX: Final = 5
_WELCOMED: Final = "welcome.sent"


async def run_checks(
    config: KitConfig,
    chosen: Iterable[Check],
    progress: Callable[[Check], None] = lambda check: None,
    results: list[CheckResult] | None = None,
) -> list[CheckResult]:
    """What each came to; in `results`, where given, as soon as it is known.

    If nobody is let in, the first ones show that, and the others are blocked. What fails because a requirement that
    it needs does not hold is blocked too: the root cause is reported once.
    """
    results = [] if results is None else results
    findings, in_vain = GatewayFindings(), 0
    for check in chosen:
        progress(check)
        if in_vain == _IN_VAIN_MAX:
            why = f"not played: in {in_vain} checks one after the other nobody was welcomed"
            results.append(
                CheckResult(check.name, check.requirements, CheckOutcome.BLOCKED, why, blocked_by=_WELCOMED)
            )
            continue
        ctx = CheckContext(config, findings)
        results.append(await run_check(check, ctx))
        if any(client.welcome for client in ctx.all_clients):
            in_vain = 0
        elif results[-1].outcome in (CheckOutcome.FAIL, CheckOutcome.BLOCKED):
            in_vain += 1
    _find_root_causes(results)
    return results


def _find_root_causes(results: list[CheckResult]) -> None:
    """Turn failures into what is blocked, where a requirement that the check needs does not hold.

    A gateway that cannot be reached any more fails the first check that finds it so.
    """
    first = next((place for place, one in enumerate(results) if one.outcome is CheckOutcome.BLOCKED), None)
    if first is not None and not any(one.outcome is CheckOutcome.FAIL for one in results):
        results[first] = replace(results[first], outcome=CheckOutcome.FAIL, blocked_by="")
    failed = {one for result in results if result.outcome is CheckOutcome.FAIL for one in result.requirements}
    for place, result in enumerate(results):
        causes = [one for one in result.needs if one in failed and one not in result.requirements]
        if result.outcome is CheckOutcome.FAIL and causes:
            results[place] = replace(result, outcome=CheckOutcome.BLOCKED, evidence=(), blocked_by=causes[0])


async def run_check(check: CheckOn[ContextT], ctx: ContextT) -> CheckResult:
    """Play it on a stage that was not entered yet; whatever happens on it becomes a result."""
    began = time.monotonic()
    limit_s = ctx.config.timeout_s * _PATIENCES
    outcome, why, blocked_by = CheckOutcome.PASS, "", ""
    try:
        async with asyncio.timeout(limit_s), ctx:
            await check.play(ctx)
    except NotOffered as error:
        outcome, why = CheckOutcome.NOT_OFFERED, str(error)
    except GatewayUnreachable as error:
        outcome, why, blocked_by = CheckOutcome.BLOCKED, str(error), _WELCOMED
    except Violation as error:
        outcome, why = CheckOutcome.FAIL, str(error)
    except UpgradeRefused as error:
        outcome, why = CheckOutcome.FAIL, f"the gateway refused a connection it had to accept: {error}"
    except TimeoutError:
        outcome, why = CheckOutcome.FAIL, f"not done within {limit_s:g} s: something hangs"
    except Exception as error:  # an envelope without what every envelope of its kind has
        outcome, why = (
            CheckOutcome.FAIL,
            f"what came back cannot be understood: {type(error).__name__}: {error}",
        )
    why = ctx.transcript.redacted(why)
    evidence = ctx.transcript.evidence(why) if outcome is CheckOutcome.FAIL else ()
    took_s = time.monotonic() - began
    needs = (*check.needs, *sorted(ctx.needs))
    return CheckResult(check.name, check.requirements, outcome, why, evidence, took_s, needs, blocked_by)
