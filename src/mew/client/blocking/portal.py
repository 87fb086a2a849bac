"""An event loop in a thread of its own, and the way for other threads to have it do something and wait for that.

What a thread does between entering a context and leaving it, one task does on the loop: it enters, serves what the
thread asks for meanwhile, and leaves. So what cancels that task stops the thread where it waits.
"""

import asyncio
import atexit
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, NoReturn, TypeVar

from mew.client.errors import Disconnected

from .job import Block, Cancelled, Job

__all__ = ["Portal"]

Result = TypeVar("Result")
Shaped = TypeVar("Shaped")

_NAME: Final = "mew-sync"
_NORMAL: Final = 1000
_EXIT_S: Final = 2.0  # for goodbyes, where nobody waits for them


class Portal:
    """The loop runs from here on, until `close`, until nothing refers to this any more, or the process ends."""

    def __init__(self) -> None:
        self._works = _Works()
        self._here = _Here()
        weakref.finalize(self, self._works.stop).atexit = False

    def run(self, work: Callable[[Job], Awaitable[Result]], shape: Callable[[Result], Shaped]) -> Shaped:
        """Await on the loop what `work` gives, and return what `shape` makes of it there.

        An interruption (Ctrl-C, or an exception of a callback) cancels it, waits for its end and goes on.

        Raises:
            Cancelled: the block that this thread is in is cancelled, now or before.
            Disconnected: this is closed.
        """

        async def do(job: Job) -> Shaped:
            return shape(await work(job))

        result: Shaped = self._done(Job(do), self._here.blocks[-1] if self._here.blocks else None)
        return result

    def read(
        self, shape: Callable[[Result], Shaped], function: Callable[..., Result], *args: Any, **named: Any
    ) -> Shaped:
        """Call a plain function on the loop; possible in a block that is cancelled, too."""

        async def do(job: Job) -> Shaped:
            return shape(function(*args, **named))

        result: Shaped = self._done(Job(do), None)
        return result

    # Contexts.

    def enter(self, context: AbstractAsyncContextManager[Result]) -> Result:
        """Enter a context on behalf of this thread."""
        blocks = self._here.blocks
        block = Block(context)
        value: Result = self._entered(block, blocks[-1] if blocks else None)
        blocks.append(block)
        return value

    def leave(self, context: object, error: BaseException | None) -> bool:
        """Leave the context that this thread has entered last; whether it has dealt with the error.

        Raises:
            RuntimeError: it is another context, or another thread.
        """
        blocks = self._here.blocks
        if not blocks or blocks[-1].context is not context:
            raise RuntimeError("blocks are left in the thread that entered them, the last one first")
        return self._left(blocks.pop(), error)

    def host(self, context: AbstractAsyncContextManager[Result]) -> Result:
        """Enter a context that is nobody's block; it is left by `dismiss` or `close`, the last one first."""
        block = Block(context, hosted=True)
        try:
            value: Result = self._entered(block, None)
        except BaseException:
            if not self._works.inhabited:
                self.close()
            raise
        return value

    def dismiss(self, context: object) -> None:
        """Leave a context that is hosted, if it is still; with the last of them, this is closed."""
        others = [block for block in self._works.hosted if block.context is not context]
        if not others:
            self.close()
        for block in set(self._works.hosted) - set(others):
            if not block.leaving:
                self._left(block, None)

    # The end.

    def close(self) -> None:
        """Leave what is hosted, end the thread and wait for that; any number of times, but not from the loop."""
        self._works.check_thread()
        self._works.stop()
        self._works.thread.join()
        failed, self._works.failed = self._works.failed, None
        if failed is not None:
            raise failed

    def drop(self, things: list[object]) -> None:
        """Have the loop empty the list, which has the last references to them; from any thread, at any time."""
        self._works.post(things.clear)

    # Waiting.

    def _done(self, job: Job, block: Block | None) -> Any:
        try:
            self._wait(job, self._works.start, job, block)
        finally:
            self._works.forget(job)
        if job.error is not None:
            self._raise(job)
        return job.value

    def _entered(self, block: Block, outer: Block | None) -> Any:
        try:
            self._wait(block, self._works.start, block, outer)
            if not block.entered:
                self._raise(block)
        except BaseException:
            if block.entered:  # just before it was interrupted
                block.leaving = True
                self._works.post(block.end, asyncio.CancelledError())
                block.settle()
            self._works.forget(block)
            raise
        return block.value

    def _left(self, block: Block, error: BaseException | None) -> bool:
        """What contexts see of an interruption is a cancellation, and that does not undo it."""
        trace = None if error is None else error.__traceback__
        thrown = error if isinstance(error, Exception | None) else asyncio.CancelledError()
        block.leaving = True
        try:
            self._wait(block, block.end, thrown)
        finally:
            self._works.forget(block)
            if error is not None:
                error.__traceback__ = trace  # without its way through the loop
        if block.error is None:
            return isinstance(error, Cancelled) or (block.threw and isinstance(error, Exception))
        is_known = isinstance(block.error, asyncio.CancelledError) and not isinstance(error, Exception | None)
        if block.error is thrown or is_known or self._works.closing:
            return False
        self._raise(block)

    def _wait(self, job: Job, begin: Callable[..., object], *args: Any) -> None:
        self._works.expect(job)
        try:
            self._works.post(begin, *args)
            job.wait()
        except BaseException:
            self._works.post(job.interrupt)
            job.settle()
            raise

    def _raise(self, job: Job) -> NoReturn:
        error, job.error = job.error, None
        if isinstance(error, asyncio.CancelledError):
            said = error.args or ("this block was cancelled",)
            error = _closed() if self._works.closing else Cancelled(*said)
        assert error is not None, "nothing to raise"
        try:
            raise error
        finally:
            del error


class _Here(threading.local):
    def __init__(self) -> None:
        self.blocks: list[Block] = []


class _Works:
    """The thread and what runs in it; it knows no portal, so that one that is forgotten can end it."""

    def __init__(self) -> None:
        self.closing = False
        self.hosted: list[Block] = []
        self.failed: BaseException | None = None
        """With what a hosted context was left, and nobody was told yet."""
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._awaited: set[Job] = set()
        self._begun = threading.Event()
        self._stopping = asyncio.Event()
        self._tasks: asyncio.TaskGroup
        self._own: dict[asyncio.Task[None], Job] = {}
        self.thread = threading.Thread(target=self._serve, name=_NAME, daemon=True)
        _alive.add(self)
        self.thread.start()
        self._begun.wait()

    # From any thread.

    def expect(self, job: Job) -> None:
        """Somebody waits for this job; what was not over by the end is over then.

        Raises:
            Disconnected: it is the end, and the job has not begun.
        """
        self.check_thread()
        with self._lock:
            if self.closing and job not in self._awaited:
                raise _closed()
            self._awaited.add(job)

    def forget(self, job: Job) -> None:
        with self._lock:
            self._awaited.discard(job)

    def post(self, function: Callable[..., object], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop is over: who waits has been told
            self._loop.call_soon_threadsafe(function, *args)

    @property
    def inhabited(self) -> bool:
        return any(block.entered and not block.over for block in tuple(self.hosted))

    def stop(self) -> None:
        self.post(self._stopping.set)

    def check_thread(self) -> None:
        if threading.current_thread() is self.thread:
            raise RuntimeError("this waits for the thread that it was called in: not from within a callback")

    # In the thread.

    def _serve(self) -> None:
        loop = self._loop
        with ThreadPoolExecutor(thread_name_prefix=_NAME) as workers:
            loop.set_default_executor(workers)
            try:
                loop.run_until_complete(self._live())
                loop.run_until_complete(loop.shutdown_asyncgens())
            finally:
                loop.close()
                with self._lock:
                    self.closing = True
                    left = tuple(self._awaited)
                for job in left:
                    job.end_with(_closed())

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self._begun.set()
            await self._stopping.wait()
            with self._lock:
                self.closing = True
            await self._cancel([task for task, job in self._own.items() if _is_of_a_thread(job)])
            while self.hosted:
                block = self.hosted[-1]
                block.end(None)
                await asyncio.wait([task for task, job in self._own.items() if job is block])
            await self._cancel(list(self._own))

    def start(self, job: Job, block: Block | None) -> None:
        if self.closing:
            job.end_with(_closed())
        elif block is not None:
            block.take(job)
        else:
            task = self._tasks.create_task(job.run())
            self._own[task] = job
            if isinstance(job, Block) and job.hosted:
                self.hosted.append(job)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        job = self._own.pop(task)
        job.end_with(asyncio.CancelledError())  # where it was cancelled before it began
        if isinstance(job, Block) and job.hosted:
            self.hosted.remove(job)
            if job.entered and (self.closing or not job.leaving):
                self.failed = self.failed or job.error

    async def _cancel(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_EXIT_S)


_alive: weakref.WeakSet[_Works] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """A loop that runs while the interpreter is taken down may trip over it."""
    for works in tuple(_alive):
        works.stop()
    for works in tuple(_alive):
        works.thread.join(_EXIT_S)


def _closed() -> Disconnected:
    return Disconnected(_NORMAL, "this client is closed")


def _is_of_a_thread(job: Job) -> bool:
    return isinstance(job, Block) and not job.hosted
