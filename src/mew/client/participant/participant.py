"""Participant: what an author writes, and how it runs as a whole program."""

import asyncio
import logging
import signal
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from mew.client.client import Client, connect
from mew.client.connection.websocket import Via, address
from mew.client.errors import ConnectError, Disconnected
from mew.client.tools.functions import Toolbox
from mew.client.tools.server import McpServer

from .control import Override
from .memory import Memory, NoMemory
from .runtime import Behaviour, Handler, ParticipantRuntime, takes_two

__all__ = ["Participant", "run_program"]

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


_log = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])


class Participant(Toolbox):
    """Tools, resources and prompts, made from functions, and how they are offered in a space.

        calc = mew.Participant("calculator")

        @calc.tool
        async def add(a: int, b: int) -> int:
            "Add two numbers."
            return a + b

        calc.run("ws://localhost:8080", space="demo", token=...)

    Functions that are not async run in a thread. `name` is what it calls itself as an MCP server; who it is in the
    space, the token says. Each request is answered once, and participant control (§3.9) without a line of yours;
    `memory` is what it retains of the conversation: nothing, unless given.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str | None = None,
        instructions: str | None = None,
        memory: Memory | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.memory: Memory = NoMemory() if memory is None else memory
        self._behaviour = Behaviour()
        self._server = McpServer(name, version or "0", instructions, self, changed=self._changed)
        self._client: Client | None = None
        self._serving: ParticipantRuntime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def client(self) -> Client:
        """Through which it acts on its own: `await p.client.chat("hello")`.

        Raises:
            RuntimeError: it is not running.
        """
        if self._client is None:
            raise RuntimeError(f"participant {self.name!r} is not running")
        return self._client

    # What it does.

    def on(
        self,
        kind: str | Iterable[str],
        *,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        to_me: bool = False,
        at_once: int = 1,
    ) -> Callable[[Function], Function]:
        """Decorate a handler for the envelopes of others, of a kind like `chat` or `reasoning/*`, or several.

        It is called with the envelope, and with the payload as the struct of its kind if it takes two arguments.
        `to_me`: only those that name us in `to`. `at_once`: how many of them it handles at a time; beyond 1,024, or
        16 MiB, that wait for it, they are dropped. What it raises is logged.

        Raises:
            TypeError: it takes neither one nor two arguments.
            InvalidCapability: a kind is no pattern.
        """

        def decorate(function: Function) -> Function:
            handler = Handler.of(function, kind, sender=sender, context=context, to_me=to_me, at_once=at_once)
            self._behaviour.handlers.append(handler)
            return function

        return decorate

    def on_proposal(self, function: Function) -> Function:
        """Decorate a function that is called with each open proposal of others that we may decide, as a `Review`.

        Without one, proposals that are addressed to us are left to others: often `to` names who is to carry it out,
        and a rejection could end what somebody else would have approved.
        """
        self._behaviour.proposals.append(function)
        return function

    def on_question(self, function: Function) -> Function:
        """Decorate a function that is called with each question somebody asks us, as a `Question`.

        Without one, and unless somebody iterates over `client.questions()`, the asker is told that nobody answers.
        """
        self._behaviour.questions.append(function)
        return function

    def answers(self, method: str) -> Callable[[Function], Function]:
        """Decorate a function that answers a further method of MCP, `sampling/createMessage` or one of your own.

        It is called with the params, and with the `Call` if it takes two arguments, and returns the result, a `dict`.

        Raises:
            TypeError: it takes neither one nor two arguments.
            ValueError: that method is answered already.
        """

        def decorate(function: Function) -> Function:
            takes_call = takes_two(function, "the params, and the call if wanted")
            self._server.extend(method, function, takes_call=takes_call)
            self._behaviour.answered.add(method)
            return function

        return decorate

    def on_start(self, function: Function) -> Function:
        """Decorate a function that is called before anything is answered, and again after a restart (§3.9.9)."""
        self._behaviour.start.append(function)
        return function

    def on_stop(self, function: Function) -> Function:
        """Decorate a function that is called when all work has ended: before leaving, and before a restart."""
        self._behaviour.stop.append(function)
        return function

    def on_pause(self, function: Function) -> Function:
        """Decorate a function that is called with the `participant/pause` (§3.9.1); what we send waits by itself."""
        self._behaviour.pause.append(function)
        return function

    def on_resume(self, function: Function) -> Function:
        """Decorate a function that is called with the `participant/resume`, or with None when the time was over."""
        self._behaviour.resume.append(function)
        return function

    def status(self, function: Function) -> Function:
        """Decorate a function that returns further metrics for `participant/status`, in snake_case (§3.9.4)."""
        self._behaviour.status.append(function)
        return function

    def override(self, kind: str) -> Callable[[Override], Override]:
        """Decorate a function that answers one kind of participant control itself: it is called with the envelope.

        Raises:
            ValueError: it is no kind of participant control.
        """

        def decorate(function: Override) -> Override:
            self._behaviour.override(kind, function)
            return function

        return decorate

    # Its life.

    def run(
        self,
        url: str | None = None,
        *,
        space: str | None = None,
        token: str | Path | None = None,
        via: Via = Via.HEADER,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Connect, and answer until it is shut down or interrupted: blocks, and ends well on Ctrl-C and SIGTERM.

        Without a URL it connects where the environment says, as under `mew up`; see `connect`.

        It goes on trying where a gateway is not there yet or not there any more, and says so on stderr, unless the
        program has set up `logging` itself. A program that wants to decide more calls `serve`.

        Raises:
            SystemExit: it is not let in, or was put out; the message says why.
            ValueError: the URL is not one of a gateway, or has a token in it, or there is none.
        """
        if not logging.getLogger().handlers:
            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

        to = address(url, space, token)

        async def main() -> None:
            recall = 0 if to.space is None else self._behaviour.recalls
            await self._run(
                connect(
                    to.url,
                    space=to.space,
                    token=to.token,
                    via=via,
                    tls=tls,
                    first_within_s=inf,
                    recall=recall,
                )
            )

        try:
            run_program(main)
        except (ConnectError, Disconnected) as error:
            raise SystemExit(f"{self.name}: {error}") from error

    async def serve(self, client: Client) -> None:
        """Answer as a client that is connected, until that ends, `stop` is called or somebody shuts us down (§3.9.10).

        Raises:
            Disconnected: the connection ended for good, and not by us.
            RuntimeError: it is running already.
            Exception: what `on_start` raised.
        """
        if self._serving is not None:
            raise RuntimeError(f"participant {self.name!r} is running already")
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._serving = ParticipantRuntime(client, self._server, self._behaviour, self.memory)
        try:
            await self._serving.run()
        finally:
            self._serving = self._client = self._loop = None

    def stop(self) -> None:
        """Leave: `run` or `serve` returns once all work has ended. From any thread, at any time."""
        self._in_loop(lambda serving: serving.stop())

    def updated(self, uri: str) -> None:
        """What a resource says has changed: tell who has subscribed to it. From any thread."""
        self._in_loop(lambda serving: serving.updated(uri, self._server.subscribers(uri)))

    async def report(self) -> bool:
        """Show everyone how we are doing now (§3.9.4); whether we may.

        Raises:
            RuntimeError: it is not running.
        """
        if self._serving is None:
            raise RuntimeError(f"participant {self.name!r} is not running")
        return await self._serving.report()

    async def _run(self, client: Client) -> None:
        async with client:
            _log.info("%s is %s in space %s", self.name, client.id, client.space)
            await self.serve(client)

    def _changed(self, what: Literal["tools", "resources", "prompts"]) -> None:
        self._in_loop(lambda serving: serving.changed(what))

    def _in_loop(self, work: Callable[[ParticipantRuntime], None]) -> None:
        serving, loop = self._serving, self._loop
        if serving is not None and loop is not None:
            loop.call_soon_threadsafe(work, serving)
