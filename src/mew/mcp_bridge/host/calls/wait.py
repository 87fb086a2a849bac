"""A host waits for a call: how long, and what it is sent meanwhile.

Many hosts give up after a minute, whatever happens. So after `wait_s` one that waits for an approval is told so. A host
of the first generation gets a handle, and a tool to ask for the outcome. One of 2026-07-28 is answered
`input_required`, asks again by itself, and gets a handle only when it may be about to stop asking.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from mew.client.errors import RpcError
from mew.mcp_bridge.host.host_request import HostRequest
from mew.mcp_bridge.host.settings import HostSettings
from mew.mcp_bridge.host_profiles import profile_of

from .call import HostCall, unless
from .notes import CallNote, LogNote, logged
from .questions import ServerQuestion
from .results import CallEnd, pending, told

__all__ = ["CallWait", "RetryState"]

_REMIND_S: Final = 10.0
_ROUNDS_MAX: Final = 8  # the SDKs give up after ten
_CANNOT: Final = "the host cannot ask its user such things"


@dataclass(frozen=True)
class RetryState:
    """What a host of 2026-07-28 brings back when it asks again: `3.p.HANDLE`. Nothing in it is secret or trusted."""

    rounds: int
    key: str
    is_proposal: bool

    @classmethod
    def read(cls, written: Any) -> "RetryState | None":
        """None where it is none of ours."""
        rounds, _, rest = written.partition(".") if isinstance(written, str) else ("", "", "")
        kind, _, key = rest.partition(".")
        if (
            not (rounds.isascii() and rounds.isdecimal() and len(rounds) < 4)
            or kind not in ("p", "c")
            or not key
        ):
            return None
        return cls(int(rounds), key, kind == "p")

    def __str__(self) -> str:
        return f"{self.rounds}.{'p' if self.is_proposal else 'c'}.{self.key}"


class CallWait:
    """One host waits for one call."""

    def __init__(
        self, call: HostCall, host: HostRequest, settings: HostSettings, state: RetryState | None = None
    ) -> None:
        """`state` is what the host brought back, where it asks again."""
        self._call = call
        self._host = host
        self._settings = settings
        self._rounds = 0 if state is None else state.rounds
        self._read = 0
        self._profile = host.profile if settings.host is None else profile_of(settings.host)

    @property
    def patience_s(self) -> float:
        """How long the host waits at a time."""
        return min(self._settings.wait_s, self._profile.wait_s)

    async def answer(self) -> dict[str, Any]:
        """What the host is told in the end, or for now.

        Raises:
            RpcError: a JSON-RPC error is what it is told.
        """
        call, begun_s = self._call, asyncio.get_running_loop().time()
        while True:
            end = await self.end(self.patience_s)
            if end is not None:
                call.told(asyncio.get_running_loop().time() - begun_s)
                return told(call.operation, end)
            if call.questions or (self._profile.retries and self._rounds < _ROUNDS_MAX):
                return self._input_required()
            if call.handle is not None and not self._stays:
                call.is_handle_known = True
                return pending(call.operation, call.stands, call.handle, ask_again=self._settings.own_tools)

    async def end(self, wait_s: float) -> CallEnd | None:
        """The end of the call. None: it waits for an approval still, or has a question for a modern host.

        Where the host says meanwhile that it wants no answer, the call is taken back; where it is just gone, not.
        """
        call = self._call
        call.attending += 1
        call.awaits_retry = False
        asking: list[asyncio.Task[None]] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                end = await self._end(
                    wait_s, lambda question: asking.append(tasks.create_task(self._ask(question)))
                )
                for task in asking:
                    task.cancel()
            return end
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            call.attending -= 1

    def _give_up(self) -> None:
        """The host is gone, has cancelled, or waits no longer: what it does not want is withdrawn, now or later."""
        call, host = self._call, self._host
        if not host.has_cancelled:
            call.abandon()
        elif call.handle is None:
            call.cancel()
        else:
            call.spawn(self._cancelled())

    async def _cancelled(self) -> None:
        if await self._host.has_timed_out():
            self._call.abandon()
        else:
            self._call.cancel()

    async def _end(self, wait_s: float, ask: Callable[[ServerQuestion], None]) -> CallEnd | None:
        call, loop = self._call, asyncio.get_running_loop()
        begun_s = reminded_s = loop.time()
        while True:
            moved = call.moved
            self._read, notes = call.notes.since(self._read)
            for note in notes:
                await self._tell(note)
            if notes:
                continue  # while they were told, there may have been more
            if call.end is not None:
                return call.end
            for key in tuple(call.questions):
                if self._asks_later(key):
                    return None
                question = call.take_question(key)
                if question is not None:
                    ask(question)
            left_s = begun_s + wait_s - loop.time()
            if call.handle is not None and left_s <= 0:
                return None
            if call.is_held_up and loop.time() - reminded_s >= _REMIND_S:
                reminded_s = loop.time()
                await self._host.progress(None, message=f"{call.stands} ({reminded_s - begun_s:.0f} s)")
            pause_s = _REMIND_S if call.handle is None else min(_REMIND_S, left_s)
            await _wait(moved, pause_s)

    @property
    def _stays(self) -> bool:
        """Whether the host goes on waiting for what was approved and runs, as it would for a server of its own.

        It does if it hears of the progress, or could not be told of a handle but by an error; unless it is known to
        give up soon.
        """
        wants_it = self._host.news.progress or self._call.operation.is_structured
        return self._call.is_running and wants_it and self._profile.wait_s == inf

    async def _tell(self, note: CallNote) -> None:
        if isinstance(note, LogNote):
            await self._host.log(
                logged(self._call.operation.origin.participant, note.params, self._settings.only)
            )
        else:
            await self._host.progress(note.done, note.total, note.message)

    def _asks_later(self, key: str) -> bool:
        """Whether the question is put to the host in our answer."""
        question = self._call.questions[key]
        return self._host.is_modern and self._host.can_answer(question.method, question.params)

    async def _ask(self, question: ServerQuestion) -> None:
        if self._host.is_modern or not self._host.can_answer(question.method, question.params):
            await question.decline(_CANNOT)
            return
        said = await unless(question.dropped(), self._put(question), otherwise=None)
        if isinstance(said, RpcError):
            await question.fail(said)
        elif said is not None:
            await question.answer(said)

    async def _put(self, question: ServerQuestion) -> dict[str, Any] | RpcError | None:
        """What the host says to it. Cancelled, the host is told that nobody wants to know any more."""
        try:
            return await self._host.ask(question.method, question.params)
        except RpcError as error:
            return error

    def _input_required(self) -> dict[str, Any]:
        call = self._call
        call.awaits_retry = True
        asked = {
            question.key: {"method": question.method, "params": question.params}
            for question in call.questions.values()
        }
        state = RetryState(self._rounds + 1, call.key, is_proposal=call.handle is not None)
        required: dict[str, Any] = {"resultType": "input_required", "requestState": str(state)}
        return required | ({"inputRequests": asked} if asked else {})


async def _wait(moved: asyncio.Event, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            await moved.wait()
    except TimeoutError:
        return
