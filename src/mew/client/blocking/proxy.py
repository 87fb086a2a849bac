"""One proxy for anything of the SDK: what is awaited there returns here, and only the loop's thread touches it.

A class of proxies is made of the class it stands for: methods and properties with their names, signatures and words;
async iterators become iterators, async contexts contexts, and what can be awaited has `wait`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial, wraps
from types import FunctionType, TracebackType
from typing import Any, ClassVar, Final, NamedTuple

from mew.client.errors import Disconnected

from .job import Job
from .portal import Portal

__all__ = ["FACES", "Face", "Proxy", "spoken", "wrap"]

_MACHINERY: Final = frozenset(
    code.co_filename for code in (Job.run.__code__, Portal.run.__code__, (lambda: None).__code__)
)
_PLAIN: Final = ("__len__", "__contains__", "__getitem__")
_SPOKEN: Final = {
    "for `async for`": "to iterate over",
    "for `async with`": "as a context",
    "An async context": "A context",
    "an async context": "a context",
    "async ": "",
    "`await` it": "`wait()`",
    "await ": "",
    "awaiting": "waiting for",
}


class Proxy:
    """Something of the SDK, for use from any thread."""

    _of: ClassVar[type]
    _without: ClassVar[frozenset[str]]
    _portal: Portal
    _thing: Any
    _turn: asyncio.Lock

    def __init_subclass__(cls, *, of: type, without: Iterable[str] = ()) -> None:
        """`of`: the class it stands for, `without` some names. What the class body defines is left as it is."""
        super().__init_subclass__()
        cls._of, cls._without = of, frozenset(without)
        cls.__doc__ = cls.__doc__ or spoken(inspect.getdoc(of))
        members: dict[str, Any] = {}
        for name in dir(of):
            member = inspect.getattr_static(of, name)
            if (name.startswith("_") and name not in _PLAIN) or name in cls._without:
                continue
            if isinstance(member, FunctionType):
                members[name] = _method(member)
            elif isinstance(member, property):
                members[name] = property(_getter(name), doc=spoken(member.__doc__))
        for special, made in _SPECIAL.items():
            if hasattr(of, special):
                members |= made
        for name, member in members.items():
            if name not in cls.__dict__:
                setattr(cls, name, member)
        FACES[of] = Face(cls, of, cls._without)

    def __init__(self, portal: Portal, thing: Any) -> None:
        object.__setattr__(self, "_portal", portal)
        object.__setattr__(self, "_thing", thing)
        object.__setattr__(self, "_turn", asyncio.Lock())  # iterators have one who waits, at a time

    def __getattr__(self, name: str) -> Any:
        """What is no method: it is set where the thing is made."""
        if name.startswith("_") or name in self._without:
            raise AttributeError(f"a synchronous {type(self).__name__} has no {name!r}", name=name, obj=self)
        return _read(self, getattr, self._thing, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or name in self._without or name not in vars(self._thing):
            raise AttributeError(f"{name!r} of a {type(self).__name__} cannot be set", name=name, obj=self)
        _read(self, setattr, self._thing, name, _unwrapped(self._portal, value))

    def __dir__(self) -> list[str]:
        known = (name for name in vars(self._thing) if not name.startswith("_") and name not in self._without)
        return sorted({*object.__dir__(self), *known})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and other._thing is self._thing

    def __hash__(self) -> int:
        return id(self._thing)

    def __repr__(self) -> str:
        said = f"<{type(self).__module__}.{type(self).__name__}>"
        if inspect.getattr_static(self._of, "__repr__") is not object.__repr__:
            with suppress(Disconnected):
                said = _read(self, repr, self._thing)
        return said

    def __del__(self) -> None:
        """What is forgotten when it is dropped, like an iteration, is to be dropped on the loop."""
        self._portal.drop([self.__dict__.pop("_thing")])


class Face(NamedTuple):
    """A class of proxies, the class it stands for, and what it leaves out of it."""

    proxy: type[Proxy]
    of: type
    without: frozenset[str]


FACES: Final[dict[type, Face]] = {}
"""By the class that they stand for."""


def wrap(portal: Portal, value: Any) -> Any:
    """What leaves the loop: proxies of what belongs there, a copy of what changes there, and anything else as it is."""
    for of in type(value).__mro__:
        if of in FACES:
            return FACES[of].proxy(portal, value)
    if type(value) in (tuple, list):
        return type(value)(wrap(portal, item) for item in value)
    if isinstance(value, Mapping) and not isinstance(value, dict):
        return dict(value)
    return value


def spoken(words: str | None) -> str | None:
    """A docstring of the asynchronous face, in the words of this one."""
    for there, here in _SPOKEN.items() if words else ():
        words = words and words.replace(there, here)
    return words


def _unwrapped(portal: Portal, value: Any) -> Any:
    if isinstance(value, Proxy):
        if value._portal is not portal:
            raise ValueError(f"this {type(value).__name__} is another client's")
        return value._thing
    if type(value) in (tuple, list):
        return type(value)(_unwrapped(portal, item) for item in value)
    return value


def _read(proxy: Proxy, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    portal = proxy._portal
    return _clean(portal.read, partial(wrap, portal), function, *args, **named)


def _run(proxy: Proxy, work: Callable[[Job], Awaitable[Any]]) -> Any:
    portal = proxy._portal
    return _clean(portal.run, work, partial(wrap, portal))


def _clean(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What it raises has the trace of what failed, and not of how it was called."""
    try:
        return function(*args, **named)
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in _MACHINERY:
            trace = trace.tb_next
        error.__traceback__ = trace
        raise


def _method(function: FunctionType) -> Callable[..., Any]:
    """Of the same name and signature; callbacks are called in the thread that waits, and their returns ignored."""
    waits = inspect.iscoroutinefunction(function)

    @wraps(function)
    def method(self: Proxy, /, *args: Any, **named: Any) -> Any:
        given = _unwrapped(self._portal, args)
        also = {name: _unwrapped(self._portal, value) for name, value in named.items()}
        if not waits:
            return _read(self, function, self._thing, *given, **also)

        def work(job: Job) -> Awaitable[Any]:
            return function(  # type: ignore[no-any-return]
                self._thing,
                *(_relayed(job, value) for value in given),
                **{name: _relayed(job, value) for name, value in also.items()},
            )

        return _run(self, work)

    method.__doc__ = spoken(function.__doc__)
    return method


def _relayed(job: Job, value: Any) -> Any:
    return job.relay(value) if callable(value) and not isinstance(value, type) else value


def _getter(name: str) -> Callable[[Proxy], Any]:
    def read(self: Proxy) -> Any:
        return _read(self, getattr, self._thing, name)

    return read


# What special methods of the SDK become.


def _list(self: Proxy) -> Iterator[Any]:
    return iter(_read(self, list, self._thing))


def _iter(self: Proxy) -> Iterator[Any]:
    iterator: Iterator[Any] = _read(self, aiter, self._thing)
    return iterator


def _self(self: Proxy) -> Proxy:
    return self


def _next(self: Proxy) -> Any:
    """The next, once there is one."""
    try:
        return _run(self, lambda job: _following(self))
    except StopAsyncIteration:
        raise StopIteration from None


def _next_within(self: Proxy, timeout_s: float) -> Any:
    """The next, or None where none comes in that time or none comes any more."""

    async def work() -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await _following(self)
        except (TimeoutError, StopAsyncIteration):
            return None

    return _run(self, lambda job: work())


async def _following(self: Proxy) -> Any:
    async with self._turn:
        return await anext(self._thing)


def _wait(self: Proxy, timeout_s: float | None = None) -> Any:
    """What comes of it, once it does; `TimeoutError` where it does not in that time, and it goes on by itself."""

    async def work() -> Any:
        async with asyncio.timeout(timeout_s):
            return await self._thing

    return _run(self, lambda job: work())


def _enter(self: Proxy) -> Any:
    value = _clean(self._portal.enter, self._thing)
    return self if value is self._thing else wrap(self._portal, value)


def _exit(
    self: Proxy, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> bool:
    swallowed: bool = _clean(self._portal.leave, self._thing, error)
    return swallowed


def _named(**members: Any) -> dict[str, Any]:
    for name, member in members.items():
        if isinstance(member, FunctionType):
            member.__name__ = name
    return members


_SPECIAL: Final[dict[str, dict[str, Any]]] = {
    "__iter__": _named(__iter__=_list),
    "__aiter__": _named(__iter__=_iter),
    "__anext__": _named(__iter__=_self, __next__=_next, next_within=_next_within),
    "__await__": _named(wait=_wait),
    "__aenter__": _named(__enter__=_enter, __exit__=_exit),
}
