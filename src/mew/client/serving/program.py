"""Runs something as a whole program: an event loop, threads enough for it, and a good end on Ctrl-C and SIGTERM."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

__all__ = ["run_program"]

_THREADS: Final = 64  # as many as requests may run at once: none waits for the thread of another


def run_program(
    main: Callable[[], Coroutine[Any, Any, None]],
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Until it ends, or is interrupted: then it is cancelled, and that is no error.

    Raises:
        RuntimeError: an event loop is running in this thread.
        Exception: what it raised.
    """
    with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_until_terminated(main))


async def _until_terminated(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "a coroutine without a task"
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="mew"))
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    if threading.current_thread() is threading.main_thread():
        with suppress(NotImplementedError):  # Windows knows no SIGTERM to speak of
            loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        await main()
    except asyncio.CancelledError:
        if not terminated:
            raise
