"""Waiting for an envelope that answers one of ours, or settles it in another way."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mew.client.errors import Absent, Disconnected, Unanswered
from mew.protocol.envelope import Envelope

from .connection import ClientConnection

__all__ = ["answered", "awaiting", "gone"]

Answer = TypeVar("Answer")

Look = Callable[[Envelope, Any], Answer | None]
"""What an envelope, with its payload, says about what is waited for; None: nothing. `Absent`: nothing ever will."""


@contextmanager
def awaiting(connection: ClientConnection, look: Look[Answer]) -> Iterator[asyncio.Future[Answer]]:
    """From here on, look at every envelope; the future has the first answer, or raises `Disconnected`.

    Entered before what asks is sent, so no answer is too fast for it.
    """
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def listen(envelope: Envelope, payload: Any) -> None:
        if answer.done():
            return
        try:
            found = look(envelope, payload)
        except Absent as error:
            answer.set_exception(error)
        else:
            if found is not None:
                answer.set_result(found)

    def ended(over: asyncio.Future[Disconnected]) -> None:
        if not answer.done() and not over.cancelled():
            answer.set_exception(over.result().copy())

    connection.listen(listen)
    connection.ended.add_done_callback(ended)
    try:
        with connection.expecting():
            yield answer
    finally:
        connection.unlisten(listen)
        connection.ended.remove_done_callback(ended)
        if not answer.cancel() and not answer.cancelled():
            answer.exception()  # marks it as seen: what asked may have failed first


async def answered(answer: asyncio.Future[Answer], within_s: float, missing: str) -> Answer:
    """The answer, once it is there.

    Raises:
        Unanswered: it did not come in time; `missing` says what did not.
        Absent: who should answer has left.
        Disconnected: the connection ended for good.
    """
    try:
        async with asyncio.timeout(within_s):
            return await answer
    except TimeoutError:
        raise Unanswered(f"{missing} within {within_s:g} s") from None


def gone(connection: ClientConnection, who: str) -> bool:
    """Whether `who` is not in the space now; each envelope is looked at only after the roster knows of it."""
    return who not in connection.session.roster
