"""The client without `async`: a generic proxy over an event loop in a thread of its own, by an `anyio` portal.

Coroutine functions block and return their result. `await x` becomes `x.wait(timeout_s)`, `async for` becomes `for` (or
`x.next_within(timeout_s)`), and `async with` becomes `with`. Objects that belong to the loop are returned as proxies.
"""

import asyncio
import functools
import inspect
import operator
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, Final, ParamSpec, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from mew.proposals.book import ProposalBook
from mew.proposals.catalogue import Catalogue

from .client import connect
from .errors import Disconnected

__all__ = ["Cancelled", "SyncClient", "SyncProxy", "connect_sync"]

P = ParamSpec("P")

_ASYNC_METHODS: Final = ("__aiter__", "__aenter__", "__await__")
_MUTABLE: Final = (ProposalBook, Catalogue)  # no coroutines, but the loop changes them
_POLL_S: Final = 0.2 if sys.platform == "win32" else None  # on Windows, Ctrl-C does not interrupt a wait
_END: Final = object()
_CANCELLED: Final = "the block that this call is in was cancelled"

_Callbacks = queue.SimpleQueue["Callable[[], object] | None"]


class Cancelled(BaseException):
    """The block that this thread is in was cancelled by another participant: its work is to stop.

    Not an `Exception`, so that no handler but the end of the block takes it for an error that was handled.
    """


def _blocking(connecting: Callable[P, AbstractAsyncContextManager[Any]]) -> "Callable[P, SyncClient]":
    def connect_sync(*args: P.args, **named: P.kwargs) -> "SyncClient":
        """Connect to a space as `connect` does, and return once connected.

        `close` the client in the end, or use it in a `with` statement. A client that is garbage collected is closed,
        and none keeps the process from ending. A type checker sees `Any` for what it returns.

        Raises:
            ValueError: the URL is not one of a gateway, or has a token in it.
            ConnectError: the gateway cannot be reached, or refused the token.
        """
        client, loop = connecting(*args, **named), _LoopThread()
        try:
            loop.enter(client)
        except BaseException:
            loop.close()
            raise
        return SyncClient(loop, client)

    connect_sync.__signature__ = inspect.signature(connecting, eval_str=True)  # type: ignore[attr-defined]
    return connect_sync


connect_sync = _blocking(connect)


def _reading(function: Callable[..., Any]) -> Any:
    return lambda self, *args: self._loop.read(function, self._target, *args)


class SyncProxy:
    """An object of the SDK, for use from any thread. A type checker sees `Any` for its attributes."""

    def __init__(self, loop: "_LoopThread", target: Any) -> None:
        self.__dict__.update(_loop=loop, _target=target)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{self!r} has no attribute {name!r}", name=name, obj=self)
        return self._loop.read(getattr, self._target, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or not hasattr(self._target, name):
            raise AttributeError(f"{name!r} of {self!r} cannot be set", name=name, obj=self)
        self._loop.read(setattr, self._target, name, value)

    __len__ = _reading(len)
    __contains__ = _reading(operator.contains)
    __getitem__ = _reading(operator.getitem)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SyncProxy) and other._target is self._target

    def __hash__(self) -> int:
        return id(self._target)

    def __repr__(self) -> str:
        return f"<sync {type(self._target).__qualname__}>"

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *(name for name in dir(self._target) if not name.startswith("_"))]

    def __iter__(self) -> Iterator[Any]:
        if hasattr(self._target, "__aiter__"):
            iterator: Iterator[Any] = self._loop.read(aiter, self._target)
            return iterator
        return iter(self._loop.read(list, self._target))

    def __next__(self) -> Any:
        item = self._loop.run(lambda: anext(self._target, _END))
        if item is _END:
            raise StopIteration
        return item

    def next_within(self, timeout_s: float) -> Any:
        """Return the next item; None if none arrives in that time, or the iteration is over."""
        try:
            return self._loop.run(lambda: asyncio.wait_for(anext(self._target, None), timeout_s))
        except TimeoutError:
            return None

    def wait(self, timeout_s: float | None = None) -> Any:
        """Return what `await` returns. After `timeout_s`, raise `TimeoutError`; the work itself goes on."""
        return self._loop.run(lambda: asyncio.wait_for(self._target, timeout_s))

    def __enter__(self) -> Any:
        block = self.__dict__["_block"] = self._loop.enter(self._target)
        return self if block.value is self._target else self._loop.wrap(block.value)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return bool(self._loop.leave(self.__dict__["_block"], error))


class SyncClient(SyncProxy):
    """A connected client, until `close`. Everything else is as in `Client`, without `async`."""

    def close(self) -> None:
        """Leave the space; return when the thread has ended. What other threads wait for ends or raises."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:  # type: ignore[override]
        self.close()


class _LoopThread:
    """An event loop in a thread of its own, until it is closed or garbage collected."""

    def __init__(self) -> None:
        stack = ExitStack()
        self._portal = stack.enter_context(start_blocking_portal("asyncio", name="mew-sync"))
        self._tasks = _Tasks()
        self.close = weakref.finalize(self, _stop, self._portal, self._tasks, stack)

    def read(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a plain function on the loop, also in a cancelled block."""
        given, also = self._unwrap(args), {name: self._unwrap(value) for name, value in named.items()}
        return _wait(self._start(lambda: self.wrap(function(*given, **also))))

    def run(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Await a coroutine function on the loop, and call its callbacks in this thread meanwhile.

        Raises:
            Cancelled: a block that this thread is in was cancelled.
            Disconnected: the client is closed.
        """
        thread, callbacks = threading.get_ident(), _Callbacks()
        if any(block.cancelled for block in self._tasks.blocks if block.thread == thread):
            raise Cancelled(_CANCELLED)

        def relayed(value: Any) -> Any:
            if not callable(value := self._unwrap(value)) or isinstance(value, type):
                return value
            return lambda *told: callbacks.put(functools.partial(value, *map(self.wrap, told)))

        given, also = [relayed(value) for value in args], {name: relayed(named[name]) for name in named}
        tasks: list[Any] = []

        async def work() -> Any:
            tasks.append(asyncio.current_task())
            self._tasks.threads[tasks[0]] = thread
            return self.wrap(await function(*given, **also))

        over: futures.Future[Any] | None = None
        try:
            over = self._start(work)
            return _wait(over, callbacks)
        except futures.CancelledError:
            raise self._tasks.error or Cancelled(_CANCELLED) from None
        except BaseException:  # Ctrl-C, maybe before `over` was assigned, or what a callback raised
            if over is None or not over.done():
                self._start(lambda: [task.cancel() for task in tasks])
                futures.wait([] if over is None else [over])
            raise

    def enter(self, context: AbstractAsyncContextManager[Any]) -> "_Block":
        """Enter an async context. One task enters and leaves it, as task groups and timeouts demand."""
        block = _Block(context, self._tasks)
        block.over = self._start(block.hold)
        try:
            _wait(block.entered)
        except BaseException:
            if not block.over.done():  # Ctrl-C
                self._start(block.abort)
            raise
        return block

    def leave(self, block: "_Block", error: BaseException | None) -> bool:
        """Leave a context; return whether it swallowed the error."""
        others = [
            other for other in self._tasks.blocks if other is not block and other.thread == block.thread
        ]
        outer = Cancelled(_CANCELLED) if error is None and any(other.cancelled for other in others) else None
        if not block.over.done():
            self._start(block.leave, outer or error)
        try:
            swallowed: bool = _wait(block.over)
        except futures.CancelledError:
            return False
        if outer is not None:
            raise outer
        return swallowed

    def wrap(self, value: Any) -> Any:
        """Return a proxy of what belongs to the loop, a copy of what it changes, and anything else as it is."""
        if inspect.ismethod(value):
            call = self.run if inspect.iscoroutinefunction(value) else self.read
            return functools.wraps(value)(functools.partial(call, value))
        kind: Any = type(value)
        if _belongs_to_loop(kind):
            return SyncProxy(self, value)
        if kind in (tuple, list):
            return kind(map(self.wrap, value))
        return dict(value) if isinstance(value, Mapping) and not isinstance(value, dict) else value

    def _unwrap(self, value: Any) -> Any:
        if isinstance(value, SyncProxy):
            if value._loop is not self:
                raise ValueError(f"{value!r} belongs to another client")
            return value._target
        return type(value)(map(self._unwrap, value)) if type(value) in (tuple, list) else value

    def _start(self, function: Callable[..., Any], *args: Any) -> "futures.Future[Any]":
        try:
            return self._portal.start_task_soon(function, *args)
        except RuntimeError:
            raise self._tasks.error or RuntimeError(
                "a callback that runs on the client's own event loop cannot wait for the client"
            ) from None


class _Tasks:
    """What runs on a loop for other threads."""

    def __init__(self) -> None:
        self.error: Disconnected | None = None
        """What a call raises once the loop is closed."""
        self.blocks: list[_Block] = []
        self.threads: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()
        """Which thread waits for a task."""

    async def close(self) -> None:
        """Leave every context, the last entered first, and cancel what is still waited for."""
        self.error = Disconnected(1000, "closed here")
        for block in reversed(self.blocks.copy()):
            block.abort()
            await asyncio.wait([block.task])
        for task in tuple(self.threads):
            task.cancel()


class _Block:
    """An async context that a thread is in."""

    over: "futures.Future[bool]"
    task: Any

    def __init__(self, context: AbstractAsyncContextManager[Any], tasks: _Tasks) -> None:
        self.thread = threading.get_ident()
        self.value: Any = None
        self.entered: futures.Future[None] = futures.Future()
        self.cancelled = False
        self._context = context
        self._tasks = tasks
        self._left = asyncio.Event()
        self._error: BaseException | None = None

    async def hold(self) -> bool:
        """Enter, wait until the thread leaves, and leave; return whether the context swallowed an error."""
        self.task = asyncio.current_task()
        self._tasks.blocks.append(self)
        try:
            async with self._context as self.value:
                self.entered.set_result(None)
                while not self._left.is_set():
                    try:
                        await self._left.wait()
                    except (
                        asyncio.CancelledError
                    ):  # what the thread waits for is cancelled, and whatever it asks next
                        self.cancelled = True
                        for task in [
                            task for task, thread in self._tasks.threads.items() if thread == self.thread
                        ]:
                            task.cancel()
                if self._error is not None:
                    raise self._error
            return self._error is not None
        except BaseException as raised:
            if not self.entered.done():
                self.entered.set_exception(raised)
            if raised is self._error:
                return False
            raise
        finally:
            self._tasks.blocks.remove(self)

    def leave(self, error: BaseException | None) -> None:
        self._error = asyncio.CancelledError() if isinstance(error, Cancelled) else error
        self._left.set()

    def abort(self) -> None:
        """Leave it, whether it is entered yet or not."""
        self.leave(Cancelled())
        if not self.entered.done():
            self.task.cancel()


def _stop(portal: BlockingPortal, tasks: _Tasks, stack: ExitStack) -> None:
    def stop() -> None:
        portal.call(tasks.close)
        stack.close()

    try:
        stop()
    except RuntimeError:  # collected by the loop's own thread, which cannot wait for itself
        threading.Thread(target=stop, daemon=True).start()


def _wait(future: "futures.Future[Any]", callbacks: _Callbacks | None = None) -> Any:
    """Return the result of a future; meanwhile call what arrives in `callbacks`."""
    pending = _Callbacks() if callbacks is None else callbacks
    future.add_done_callback(lambda _: pending.put(None))
    while True:
        try:
            callback = pending.get(timeout=_POLL_S)
        except queue.Empty:
            continue
        if callback is None:
            return future.result()
        callback()


@functools.cache
def _belongs_to_loop(kind: Any) -> bool:
    if issubclass(kind, _MUTABLE) or any(hasattr(kind, name) for name in _ASYNC_METHODS):
        return True
    return any(inspect.iscoroutinefunction(getattr(kind, name, None)) for name in dir(kind))
