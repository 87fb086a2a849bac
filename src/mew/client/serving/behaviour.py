"""What an author says a participant does beside answering: handlers of envelopes, and hooks in its life."""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mew.client.mcp.running import run
from mew.client.wire.filters import Filter
from mew.protocol.envelope import Envelope

from .control import CONTROL_KINDS, Override

__all__ = ["Behaviour", "Handler", "Hook", "takes_two"]

_log = logging.getLogger(__name__)

Hook = Callable[..., Any]

_RECALLED: Final = 1_000
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Handler:
    """A function for the envelopes that fit; it takes the envelope, and the payload if it has a second parameter."""

    function: Callable[..., Any]
    fits: Filter
    to_me: bool
    at_once: int
    takes_payload: bool

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        kind: str | Iterable[str],
        *,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        to_me: bool = False,
        at_once: int = 1,
    ) -> "Handler":
        """
        Raises:
            TypeError: it takes neither one nor two arguments.
            InvalidCapability: a kind is no pattern.
        """
        return cls(
            function=function,
            fits=Filter.of(kind=kind, sender=sender, context=context),
            to_me=to_me,
            at_once=at_once,
            takes_payload=takes_two(function, "the envelope, and its payload if wanted"),
        )

    def wants(self, envelope: Envelope, me: str) -> bool:
        """What we sent ourselves is not for a handler: it would answer itself for ever."""
        if envelope.sender == me or (self.to_me and me not in envelope.to):
            return False
        return self.fits.fits(envelope)

    async def handle(self, envelope: Envelope, payload: Any) -> None:
        await (run(self.function, envelope, payload) if self.takes_payload else run(self.function, envelope))


@dataclass
class Behaviour:
    """In the order they were given; several of each are all called."""

    handlers: list[Handler] = field(default_factory=list)
    proposals: list[Hook] = field(default_factory=list)
    questions: list[Hook] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    start: list[Hook] = field(default_factory=list)
    stop: list[Hook] = field(default_factory=list)
    pause: list[Hook] = field(default_factory=list)
    resume: list[Hook] = field(default_factory=list)
    status: list[Hook] = field(default_factory=list)
    overrides: dict[str, Override] = field(default_factory=dict)

    @property
    def recalls(self) -> int:
        """How much of what came before it wants to know: who decides or answers, what waits for that."""
        return _RECALLED if self.proposals or self.questions else 0

    def override(self, kind: str, function: Override) -> None:
        """
        Raises:
            ValueError: it is no kind of participant control.
        """
        if kind not in CONTROL_KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(sorted(CONTROL_KINDS))}")
        self.overrides[kind] = function

    async def metrics(self) -> Mapping[str, Any]:
        """Of all that tell some."""
        metrics: dict[str, Any] = {}
        for function in self.status:
            metrics |= await run(function)
        return metrics

    async def call(self, hooks: Iterable[Hook], *arguments: Any) -> None:
        """Call each, whatever another raises."""
        for hook in hooks:
            try:
                await run(hook, *arguments)
            except Exception:
                _log.exception("%s failed", getattr(hook, "__qualname__", hook))


def takes_two(function: Callable[..., Any], what: str) -> bool:
    """Whether a function takes two positional arguments, and not one.

    Raises:
        TypeError: it takes neither one nor two; `what` says what it is given.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return True
    many = sum(parameter.kind in _POSITIONAL for parameter in parameters)
    if many not in (1, 2):
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name}() takes {what}, not {many} arguments")
    return many == 2
