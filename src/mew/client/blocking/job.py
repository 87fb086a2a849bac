"""What a thread has an event loop do in another thread, and waits for: a call, or a context that it is in."""

import asyncio
import queue
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

__all__ = ["Block", "Cancelled", "Job"]

_LOOK_S: Final = 0.2 if sys.platform == "win32" else None  # there, Ctrl-C does not end a wait


class Cancelled(BaseException):
    """The block that this thread is in was cancelled from elsewhere: its work is to stop.

    No `Exception`, so that nothing but the end of the block takes it for an error that was dealt with.
    """


class Job:
    """Something that a thread has the loop do and waits for."""

    def __init__(self, work: Callable[[Any], Awaitable[Any]]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.over = False
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._interrupted = self._struck = False
        self._news: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()

    # On the loop.

    async def run(self) -> None:
        """Within the current task; raises only what cancels more of that task than this."""
        task = asyncio.current_task()
        assert task is not None, "run outside of a task"
        before, self._task = task.cancelling(), task
        try:
            if self._interrupted:
                raise asyncio.CancelledError
            self.value = await self._work(self)
        except BaseException as error:
            self.error = error
        self._task = None
        if self._struck:
            task.uncancel()
        cancelled = isinstance(self.error, asyncio.CancelledError) and task.cancelling() > before
        self.end_with(self.error)
        if cancelled:
            raise asyncio.CancelledError

    def interrupt(self) -> None:
        """Cancel this, and nothing else of the task that does it."""
        self._interrupted = True
        if self._task is not None and not self._struck:
            self._struck = True
            self._task.cancel()

    def relay(self, callback: Callable[..., object]) -> Callable[..., None]:
        """What calls the callback in the thread that waits, in order; nobody waits for its return."""

        def told(*args: Any, **named: Any) -> None:
            self._news.put(lambda: callback(*args, **named))

        return told

    def end_with(self, error: BaseException | None) -> None:
        """It is over, unless it was already."""
        if not self.over:
            self.error = error
            self.over = True
            self.tell()

    def tell(self) -> None:
        self._news.put(None)

    # In the thread that waits.

    @property
    def settled(self) -> bool:
        """Whether what is waited for has come."""
        return self.over

    def wait(self) -> None:
        """Until it is settled; callbacks are called meanwhile."""
        while not (self.settled and self._news.empty()):
            callback = self._next()
            if callback is not None:
                callback()

    def settle(self) -> None:
        """The same, without the callbacks, and where an interruption may have taken the news."""
        while not self.settled:
            self._next()

    def _next(self) -> Callable[[], object] | None:
        while True:
            with suppress(queue.Empty):
                return self._news.get(timeout=_LOOK_S)


class Block(Job):
    """A context that is entered, serves the jobs of a thread within it, and is left: one job, that settles twice."""

    def __init__(self, context: AbstractAsyncContextManager[Any], *, hosted: bool = False) -> None:
        super().__init__(Block._live)
        self.context = context
        self.hosted = hosted
        self.entered = False
        self.leaving = False
        """Whether its end is waited for, and no longer its beginning."""
        self.threw = False
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._thrown: BaseException | None = None

    @property
    def settled(self) -> bool:
        return self.over or (self.entered and not self.leaving)

    async def _live(self) -> Any:
        async with self.context as self.value:
            self.entered = True
            self.tell()
            while (job := await self._jobs.get()) is not None:
                await job.run()
            if self._thrown is not None:
                self.threw = True
                raise self._thrown
        return self.value

    def take(self, job: Job) -> None:
        if self.over:
            job.end_with(asyncio.CancelledError())
        else:
            self._jobs.put_nowait(job)

    def end(self, thrown: BaseException | None) -> None:
        """Leave it, with an exception or without."""
        self._thrown = thrown
        self._jobs.put_nowait(None)

    def end_with(self, error: BaseException | None) -> None:
        super().end_with(error)
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                job.end_with(asyncio.CancelledError())
