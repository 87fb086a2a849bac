"""Where one check of a participant plays: says things to it, puts things before it, and hears what it sends."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any, Final

import aiohttp

from mew.conform.connection import PROTOCOL, ScriptedClient, open_connection
from mew.conform.match import Predicate, about, both, causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, Transcript, Violation
from mew.conform.participant.prompts import ToolPrompt
from mew.conform.participant.worker import Worker

from .subject import Frame
from .test_run import TestRun

__all__ = ["ParticipantContext", "Prohibition"]


_LEAVE_S: Final = 2.0
_UNANSWERED_S: Final = 1.0  # so long does one react that answers nothing one could ask
_numbers = count(1)


@dataclass(slots=True)
class Prohibition:
    """What the participant must not send from `since` on, until it is lifted, or ever."""

    fits: Predicate
    why: str
    since: int
    until: int | None = None


class ParticipantContext:
    """One check's play. An async context: at its end what it changed is undone, and those whom the kit plays leave."""

    def __init__(self, test_run: TestRun) -> None:
        self.test_run = test_run
        self.config = test_run.config
        self.subject = test_run.subject
        self.traits = test_run.traits
        self.transcript = Transcript({role.token for role in test_run.config.roles.values()})
        self.needs: set[str] = set()
        self.began = self.subject.place
        self.prohibitions: list[Prohibition] = []
        self._actors: dict[str, ScriptedClient] = {}
        self._connected: list[ScriptedClient] = []
        self._worker: Worker | None = None
        self._cleanups: list[Callable[[], Awaitable[object]]] = []
        self._running: list[asyncio.Task[None]] = []
        self._is_there = False
        self._session: aiohttp.ClientSession
        self._tasks: asyncio.TaskGroup

    async def __aenter__(self) -> "ParticipantContext":
        self.subject.transcript = self.transcript
        self._session = aiohttp.ClientSession()
        self._tasks = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.transcript.over = True
        self.subject.rewrite = None
        try:
            async with asyncio.timeout(_LEAVE_S):
                await self._clean_up()
                for client in self._connected:
                    await client.leave()
        except TimeoutError:
            pass  # a participant that hangs must not hang the kit
        finally:
            await self._session.close()
            for task in self._running:
                task.cancel()
            await self._tasks.__aexit__(None, None, None)

    def add_cleanup(self, act: Callable[[], Awaitable[object]]) -> None:
        """Have this done when the check is over, whatever came of it; what was asked for last is done first."""
        self._cleanups.append(act)

    async def _clean_up(self) -> None:
        while self._cleanups:
            try:
                await self._cleanups.pop()()
            except (Violation, NotOffered):
                continue  # it is gone

    # Who is there.

    async def client(self, name: str) -> ScriptedClient:
        """One whom the kit plays, connected to the gateway."""
        await self._here()
        if name not in self._actors:
            client = await open_connection(self._session, self.config, self.config.roles[name], Transcript())
            self._connected.append(client)
            self._running.append(self._tasks.create_task(client.read_loop()))
            welcome = await client.expect(is_kind("system/welcome"), "a welcome")
            client.id = welcome["payload"]["you"]["id"]
            self._actors[name] = client
        return self._actors[name]

    async def worker(self) -> Worker:
        """The one with the tools `read_note` and `write_note`, who answers by itself."""
        if self._worker is None:
            self._worker = Worker(await self.client("worker"))
            self._running.append(self._tasks.create_task(self._worker.work()))
        return self._worker

    async def leave(self, name: str) -> None:
        """One whom the kit plays goes; the participant has been shown that when this returns."""
        since = self.subject.place
        await self._actors.pop(name).leave()
        if name == "worker":
            self._worker = None
        who = self.config.roles[name].id
        gone = both(is_kind("system/presence"), lambda e: payload_of(e).get("event") == "leave")
        await self.subject.wait(
            lambda: self.subject.was_shown(both(gone, _names(who)), since=since) or None,
            self.config.timeout_s,
        )

    async def _here(self) -> None:
        if not self._is_there:
            await self.test_run.presence()
            self._is_there = True

    # What the participant is told.

    async def ask(
        self, kind: str, payload: Any = None, /, *, by: str = "owner", **fields: Any
    ) -> dict[str, Any]:
        """Somebody says this to the participant, through the gateway; on return it was shown it.

        A field that is `...` is left out, `to` as well.
        """
        client = await self.client(by)
        since = self.subject.place
        sent = await client.send(kind, payload, **{"to": [self.subject.id], **fields})
        await self.subject.reached(sent["id"], since)
        return sent

    async def show(
        self, kind: str, payload: Any = None, /, *, by: str = "owner", **fields: Any
    ) -> dict[str, Any]:
        """Put this before the participant, and before nobody else, the gateway included: it enforces nothing of it."""
        await self._here()
        envelope = {
            "protocol": PROTOCOL,
            "id": f"conform-{uuid.uuid4()}",
            "ts": "2026-01-01T00:00:00Z",
            "from": self.config.roles[by].id,
            "to": [self.subject.id],
            "kind": kind,
            "payload": {} if payload is None else payload,
            **fields,
        }
        envelope = {key: value for key, value in envelope.items() if value is not ...}
        await self.subject.show(json.dumps(envelope))
        return envelope

    async def show_frame(self, data: str | bytes) -> None:
        """Put any frame before the participant."""
        await self._here()
        await self.subject.show(data)

    async def request(
        self, method: str, params: Any = None, *, by: str = "owner", **fields: Any
    ) -> dict[str, Any]:
        """Ask it with an MCP request of a fresh JSON-RPC id."""
        return await self.ask("mcp/request", rpc(method, params), by=by, **fields)

    async def call(self, call: ToolPrompt, *, by: str = "owner", **fields: Any) -> dict[str, Any]:
        """Call one of its tools."""
        return await self.request(
            "tools/call", {"name": call.tool, "arguments": call.arguments}, by=by, **fields
        )

    async def prompt(self, name: str, *, by: str = "owner", **values: str) -> dict[str, Any]:
        """Say what makes it do this.

        Raises:
            NotOffered: nobody told the kit what does.
        """
        filled = self.prompt_of(name, **values)
        if isinstance(filled, ToolPrompt):
            return await self.call(filled, by=by)
        return await self.ask("chat", {"text": filled, "format": "plain"}, by=by)

    def prompt_of(self, name: str, **values: str) -> str | ToolPrompt:
        filled = self.test_run.prompts.filled(name, worker=self.config.roles["worker"].id or "", **values)
        if filled is None:
            raise NotOffered(f"no prompt {name!r} is configured")
        return filled

    def call_of(self, name: str) -> ToolPrompt:
        """A prompt that is a call, as `tool` is."""
        filled = self.prompt_of(name)
        assert isinstance(filled, ToolPrompt), f"{name} is no call"
        return filled

    # What the participant does.

    async def expect(
        self, fits: Predicate, what: str, *, since: int | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """The first envelope that it sent since the check began, or since that place, and that fits; waited for.

        Raises:
            Violation: it did not come.
        """
        return _envelope(await self.expect_frame(fits, what, since=since, timeout_s=timeout_s))

    async def expect_frame(
        self, fits: Predicate, what: str, *, since: int | None = None, timeout_s: float | None = None
    ) -> Frame:
        since = self.began if since is None else since
        return await self.subject.expect(fits, what, since=since, timeout_s=timeout_s)

    async def expect_optional(self, fits: Predicate, *, since: int | None = None) -> dict[str, Any] | None:
        """The same, where it may as well not come."""
        try:
            return await self.expect(fits, "it", since=since)
        except Violation:
            return None

    def said(
        self, fits: Predicate, *, since: int | None = None, until: int | None = None
    ) -> list[dict[str, Any]]:
        """All that it sent since the check began, or since that place, and that fits."""
        since = self.began if since is None else since
        return [_envelope(frame) for frame in self.subject.said(fits, since=since, until=until)]

    async def answer(self, sent: Mapping[str, Any], what: str = "an mcp/response") -> dict[str, Any]:
        """Its response to a request.

        Raises:
            Violation: none came.
        """
        where = f"{what} that names the request {sent['id']} in `correlation_id`"
        return await self.expect(both(is_kind("mcp/response"), about(sent)), where)

    async def result(self, sent: Mapping[str, Any]) -> Any:
        """The result in its response.

        Raises:
            Violation: there is none.
        """
        payload = payload_of(await self.answer(sent))
        if "result" not in payload:
            raise Violation(f"expected a result of {sent['payload'].get('method')}, got {payload}")
        return payload["result"]

    async def status(self, payload: Any = None) -> Mapping[str, Any]:
        """What it says of itself when asked.

        Raises:
            NotOffered: it answers no such questions.
            Violation: it does, but not this time.
        """
        if not self.traits.answers_status:
            raise NotOffered("the participant does not answer participant/request-status")
        sent = await self.ask("participant/request-status", payload)
        return payload_of(await self.expect_status(sent))

    async def expect_status(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The status that answers this: it names it, or came after it and names nothing."""
        since = (await self.subject.reached(sent["id"], self.began)).place
        return await self.expect(
            lambda e: e.get("kind") == "participant/status" and (sent["id"] in causes(e) or not causes(e)),
            f"a participant/status after the {sent['kind']}",
            since=since,
        )

    # What must not happen.

    def never(self, fits: Predicate, why: str, *, since: int | None = None) -> Prohibition:
        """Since the check began, or since that place, and to the end of the run, the participant must not send this."""
        prohibition = Prohibition(fits, why, self.began if since is None else since)
        self.prohibitions.append(prohibition)
        return prohibition

    def lift(self, prohibition: Prohibition) -> None:
        prohibition.until = self.subject.place

    async def barrier(self) -> None:
        """Return when it had the time to react to all that it was shown: it has answered what came after that.

        Raises:
            Violation: it answers no more, or did what it must not.
        """
        try:
            await self.ponged()
            if not self.traits.answers_mcp and not self.traits.answers_status:
                await asyncio.sleep(min(_UNANSWERED_S, self.config.timeout_s))  # there is nothing to wait for
        finally:
            self.keep()  # says more than that it does not answer any more

    async def ponged(self) -> None:
        """It answers what it answered when they got acquainted: a ping, and a question for its status.

        Raises:
            Violation: it does not.
        """
        if self.traits.answers_mcp:
            await self.answer(await self.request("ping"), "an mcp/response to ping")
        if self.traits.answers_status:
            await self.status()

    def keep(self) -> None:
        """Hold it to what was forbidden.

        Raises:
            Violation: it did that.
        """
        for prohibition in self.prohibitions:
            broken = self.subject.said(prohibition.fits, since=prohibition.since, until=prohibition.until)
            if broken:
                raise Violation(f"{prohibition.why}; it sent {broken[0].data!r}")


def rpc(method: str, params: Any = None) -> dict[str, Any]:
    """A JSON-RPC request with an id of its own."""
    payload = {"jsonrpc": "2.0", "id": next(_numbers), "method": method}
    return payload if params is None else {**payload, "params": params}


def _envelope(frame: Frame) -> dict[str, Any]:
    assert frame.envelope is not None, "a frame that was looked into is an envelope"
    return frame.envelope


def _names(who: str | None) -> Predicate:
    return lambda e: isinstance(one := payload_of(e).get("participant"), dict) and one.get("id") == who
