"""An MCP host for tests: the official client, below its types, that keeps what it was told and asked."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal, TextIO

import mcp_types as types
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from pydantic import BaseModel, TypeAdapter

from mcp import Client, MCPError

__all__ = ["LEGACY", "MODERN", "Generation", "Host", "Json", "hosting"]

Json = dict[str, Any]
Generation = Literal["legacy", "2026-07-28"]
LEGACY: Generation = "legacy"
MODERN: Generation = "2026-07-28"

WITHIN_S = 60.0
_ROUNDS_MAX = 8
_ANY: TypeAdapter[Any] = TypeAdapter(dict[str, Any])

SAMPLED = types.CreateMessageResult(
    role="assistant", content=types.TextContent(text="forty-two"), model="a-model", stop_reason="endTurn"
)
ELICITED: Mapping[str, Any] = {"name": "Ann", "username": "ann", "email": "ann@example.org", "integer": 7}


class Host:
    """Asks as a host does, and answers what it is asked: sampling and elicitation."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.cancels = True
        """Whether a call that it gives up is to end."""
        self.told: list[Json] = []
        """Notifications, in the order they came; progress is with the call it belongs to."""
        self.asked: list[Json] = []
        """What the server wanted to know, in order."""
        self._changed = asyncio.Condition()
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        assert self._client is not None, "not connected"
        return self._client

    async def ask(self, method: str, params: Json | None = None, steps: list[Json] | None = None) -> Json:
        """The whole answer: `{"result": …}` or `{"error": …}`, as JSON; questions in between are answered."""

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            assert steps is not None
            steps.append({"progress": progress, "total": total, "message": message})

        given = dict(params or {})
        try:
            for _ in range(_ROUNDS_MAX):
                result: Json = await self.client.session.send_request(
                    types.Request[Json, str](method=method, params=given),
                    _ANY,
                    WITHIN_S,
                    progress_callback=None if steps is None else on_progress,
                )
                if result.get("resultType") != "input_required":
                    return {"result": result}
                given = {**(params or {}), **await self._answered(result)}
        except MCPError as failed:
            error = {"code": failed.error.code, "message": failed.error.message, "data": failed.error.data}
            return {"error": error}
        raise AssertionError(f"{method} still asks after {_ROUNDS_MAX} rounds")

    async def call(self, tool: str, steps: list[Json] | None = None, /, **arguments: Any) -> Json:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments}, steps)

    async def text(self, tool: str, /, **arguments: Any) -> str:
        """What a tool says, where it says one thing and no error."""
        answer = await self.call(tool, **arguments)
        assert not answer.get("result", {"isError": True}).get("isError"), answer
        (block,) = answer["result"]["content"]
        return str(block["text"])

    async def until(self, found: Callable[[Json], bool]) -> Json:
        """The first notification like this, now or soon."""
        async with asyncio.timeout(WITHIN_S), self._changed:
            while True:
                for told in self.told:
                    if found(told):
                        return told
                await self._changed.wait()

    @asynccontextmanager
    async def watching(self, *uris: str) -> AsyncIterator[None]:
        """Within the block it is told what changes: these resources, and all lists."""
        async with AsyncExitStack() as stack:
            if self.generation == MODERN:
                await stack.enter_async_context(
                    self.client.listen(
                        tools_list_changed=True,
                        prompts_list_changed=True,
                        resources_list_changed=True,
                        resource_subscriptions=list(uris),
                    )
                )
            else:
                for uri in uris:
                    assert await self.ask("resources/subscribe", {"uri": uri}) == {"result": {}}
            yield
            if self.generation != MODERN:
                for uri in uris:
                    assert await self.ask("resources/unsubscribe", {"uri": uri}) == {"result": {}}

    def connection(self, server: StdioServerParameters | str, log: TextIO) -> Client:
        self._client = Client(
            server if isinstance(server, str) else stdio_client(server, log),
            mode=self.generation,
            cache=None,
            sampling_callback=self._sample,
            elicitation_callback=self._elicit,
            message_handler=self._hear,
            log_level="debug",
            client_info=types.Implementation(name="a-host", version="1.0"),
        )
        return self._client

    async def _answered(self, result: Json) -> Json:
        """What goes with the next round."""
        session, answers = self.client.session, {}
        for key, request in result["inputRequests"].items():
            parsed: types.InputRequest = TypeAdapter(types.InputRequest).validate_python(request)
            answer = await session.dispatch_input_request(
                ClientRequestContext(session=session, request_id=key, meta=None), parsed
            )
            answers[key] = _json(answer)
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return {"inputResponses": answers, **state}

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self.asked.append({"method": "sampling/createMessage", "params": _json(params)})
        return SAMPLED

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append({"method": "elicitation/create", "params": _json(params)})
        wanted = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
        content = {name: ELICITED[name] for name in wanted.get("properties", {}) if name in ELICITED}
        return types.ElicitResult(action="accept", content=content)

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            raise message
        async with self._changed:
            self.told.append(_json(message))
            self._changed.notify_all()


@asynccontextmanager
async def hosting(
    server: StdioServerParameters | str, generation: Generation = LEGACY
) -> AsyncIterator[Host]:
    """A host that is connected to this server: a command, or the address of one. What it logs is not shown."""
    host = Host(generation)
    with tempfile.TemporaryFile("w") as log:
        async with asyncio.timeout(60), host.connection(server, log):
            yield host


def _json(model: BaseModel) -> Json:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
