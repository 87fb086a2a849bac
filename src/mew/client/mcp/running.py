"""Runs an author's function: async ones as they are, others in a thread, so that none holds up the loop."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["run"]


async def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the function returns, awaited where it is to be.

    Cancelling stops an async function; one in a thread runs on, and nobody waits for it.

    Raises:
        Exception: whatever it raised; never what would end this program or look as if the caller were cancelled.
    """
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            value = function(*args, **kwargs)
        else:
            value = await asyncio.to_thread(_in_thread, function, args, kwargs)
        return await value if inspect.isawaitable(value) else value
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("something it waited for was cancelled") from error
    except SystemExit as error:
        raise RuntimeError("it tried to exit") from error


def _in_thread(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except StopIteration as error:  # no future can hold one: whoever awaits it would wait for ever
        raise RuntimeError("it raised StopIteration") from error
