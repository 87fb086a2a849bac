"""The checks: each tries requirements of the ledger on a stage, and raises when who is tried does otherwise."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Protocol, TypeAlias, TypeVar

from .cast import Cast
from .stage import Stage
from .verdicts import Transcript

__all__ = ["Check", "CheckOn", "PlaceT", "Registry", "all_checks", "check"]


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
