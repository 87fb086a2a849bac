"""Answer MCP methods from a toolbox."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final, TypeVar

import msgspec

from mew.client.errors import RpcError, ToolError
from mew.client.mcp.call import (
    HANDSHAKE_VERSIONS,
    SERVER_INFO,
    VERSIONS,
    Call,
    CallCancelled,
    Level,
    answered,
    is_stateless,
    log_level,
    run,
)
from mew.client.mcp.results import call_result, failure, prompt_result, read_result

from .functions import Changed, FunctionPrompt, FunctionResource, FunctionTool, Toolbox
from .hints import read
from .schema import ArgumentError

__all__ = [
    "PROTOCOL_VERSIONS",
    "At",
    "Complete",
    "Initialize",
    "LevelWanted",
    "McpServer",
    "Named",
    "Page",
    "PromptRef",
    "ResourceRef",
    "understood",
]

Params = TypeVar("Params")

_INVALID_PARAMS: Final = -32602
_MESSAGE_CHARS_MAX: Final = 2000


class Initialize(msgspec.Struct):
    protocolVersion: str = HANDSHAKE_VERSIONS[-1]


class Page(msgspec.Struct):
    cursor: str | None = None


class Named(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | None = None


class At(msgspec.Struct):
    uri: str


class LevelWanted(msgspec.Struct):
    level: Level


class PromptRef(msgspec.Struct, tag_field="type", tag="ref/prompt"):
    name: str


class ResourceRef(msgspec.Struct, tag_field="type", tag="ref/resource"):
    uri: str


class Typed(msgspec.Struct):
    name: str
    value: str


class Complete(msgspec.Struct):
    ref: PromptRef | ResourceRef
    argument: Typed


def understood(params: dict[str, Any], shape: type[Params]) -> Params:
    """What they say; fields that nobody here knows are left alone.

    Raises:
        RpcError: they are not of this shape.
    """
    try:
        said: Params = read(params, shape)
    except msgspec.ValidationError as problem:
        wrong = str(problem).replace("`", "")[:_MESSAGE_CHARS_MAX]
        raise RpcError(_INVALID_PARAMS, f"params: {wrong}") from None
    return said


_log = logging.getLogger(__name__)

PROTOCOL_VERSIONS: Final = HANDSHAKE_VERSIONS

_UNKNOWN_METHOD: Final = -32601
_INTERNAL: Final = -32603
_NOT_FOUND: Final = -32002

_COMPLETIONS_MAX: Final = 100  # MCP's
_SUBSCRIPTIONS_MAX: Final = 1024
_URI_CHARS_MAX: Final = 4096  # of one that is kept
_SHOWN_CHARS_MAX: Final = 100

Responder = Callable[[dict[str, Any], Call], Awaitable[dict[str, Any]]]


class McpServer:
    """Answers for one toolbox. Whoever feeds it decides how many calls run at once, and sends what it returns.

    `changed` is called when the toolbox changes, with the word that `notifications/…/list_changed` needs.
    """

    def __init__(
        self,
        name: str,
        version: str,
        instructions: str | None,
        toolbox: Toolbox,
        *,
        changed: Changed | None = None,
        page_size: int = 100,
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self.toolbox = toolbox
        self._page_size = page_size
        self._running: dict[tuple[str, str | int], list[tuple[Call, asyncio.Timeout]]] = {}
        self._subscriptions: dict[str, dict[str, None]] = {}
        self._levels: dict[str, Level] = {}
        self._answers: dict[str, Responder] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
        }
        if changed is not None:
            toolbox.watch(changed)

    async def answer(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
        """The result of a request.

        Raises:
            RpcError: the error to answer with.
            CallCancelled: its sender cancelled it, and expects no answer.
        """
        answering = self._answers.get(method)
        if answering is None:
            raise RpcError(_UNKNOWN_METHOD, f"unknown method {_short(method)}")
        if not is_stateless(params):
            call.level = self._levels.get(call.sender, call.level)
            return await self._answer(answering, params, call)
        call.level = log_level(params)
        try:
            return answered(method, await self._answer(answering, params, call))
        except RpcError as error:
            if error.code == _NOT_FOUND:  # retired
                raise RpcError(_INVALID_PARAMS, error.message, error.data) from None
            raise

    def extend(self, method: str, function: Callable[..., Any], *, takes_call: bool) -> None:
        """Have a function answer a further method, given the params, and the call if it takes it.

        Raises:
            ValueError: that method is answered already.
        """
        if method in self._answers:
            raise ValueError(f"{method} is answered already")

        async def answering(params: dict[str, Any], call: Call) -> dict[str, Any]:
            failed = f"{_short(method)} could not be answered"
            result = await _made(failed, function, *((params, call) if takes_call else (params,)))
            if not isinstance(result, Mapping):
                _log.warning("%s: %r is no result of MCP, which is an object", failed, type(result).__name__)
                raise RpcError(_INTERNAL, failed)
            return dict(result)

        self._answers[method] = answering

    async def _answer(self, answering: Responder, params: dict[str, Any], call: Call) -> dict[str, Any]:
        try:
            async with asyncio.timeout(None) as scope:
                with self._cancellable(call, scope):
                    result = await answering(params, call)
        except Exception as error:
            if call.cancelled:
                raise CallCancelled from None
            if isinstance(error, RpcError):
                raise
            raise _as_rpc_error(error, call.method) from error
        finally:
            call.close()
        if call.cancelled:
            raise CallCancelled
        return result

    def notice(self, method: str, params: dict[str, Any], sender: str) -> None:
        """Take a notification. Those that are of no use here are ignored, as MCP has it."""
        if method != "notifications/cancelled":
            return
        wanted = params.get("requestId")
        if isinstance(wanted, str | int) and not isinstance(wanted, bool):
            for call, scope in self._running.get((sender, wanted), ()):
                if not call.cancelled:
                    call.cancelled = True
                    scope.reschedule(asyncio.get_running_loop().time())

    def subscribers(self, uri: str) -> tuple[str, ...]:
        """Who wants `notifications/resources/updated` for this URI."""
        return tuple(sender for sender, uris in self._subscriptions.items() if uri in uris)

    def forget(self, sender: str) -> None:
        """A participant has left: its subscriptions and its log level go."""
        self._subscriptions.pop(sender, None)
        self._levels.pop(sender, None)

    @contextmanager
    def _cancellable(self, call: Call, scope: asyncio.Timeout) -> Iterator[None]:
        # Participants know a request by its envelope's id, MCP clients by its JSON-RPC id.
        keys = {(call.sender, call.id), (call.sender, call.envelope.id)}
        for key in keys:
            self._running.setdefault(key, []).append((call, scope))
        try:
            yield
        finally:
            for key in keys:
                self._running[key].remove((call, scope))
                if not self._running[key]:
                    del self._running[key]

    async def _initialize(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        asked = understood(params, Initialize).protocolVersion
        return {
            "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "serverInfo": self._identity,
            **self._abilities(),
        }

    async def _discover(self, _params: dict[str, Any], _call: Call) -> dict[str, Any]:
        """Whoever asks this is of the second generation, said or not."""
        found = {"supportedVersions": list(VERSIONS), "_meta": {SERVER_INFO: self._identity}}
        return answered("server/discover", found | self._abilities())

    @property
    def _identity(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version}

    def _abilities(self) -> dict[str, Any]:
        abilities = {
            "tools": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        }
        said = {"instructions": self.instructions} if self.instructions else {}
        return {"capabilities": abilities, **said}

    async def _ping(self, _params: dict[str, Any], _call: Call) -> dict[str, Any]:
        return {}

    async def _list_tools(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        return self._page("tools", list(self.toolbox.tools.values()), params)

    async def _list_resources(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        fixed = [resource for resource in self.toolbox.resources.values() if not resource.is_template]
        return self._page("resources", fixed, params)

    async def _list_templates(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        templates = [resource for resource in self.toolbox.resources.values() if resource.is_template]
        return self._page("resourceTemplates", templates, params)

    async def _list_prompts(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        return self._page("prompts", list(self.toolbox.prompts.values()), params)

    def _page(
        self,
        what: str,
        items: Sequence[FunctionTool | FunctionResource | FunctionPrompt],
        params: dict[str, Any],
    ) -> dict[str, Any]:
        cursor = understood(params, Page).cursor
        start = 0
        if cursor is not None:
            if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
                raise RpcError(_INVALID_PARAMS, f"unknown cursor {_short(cursor)}")
            start = int(cursor)
        end = start + self._page_size
        page: dict[str, Any] = {what: [item.listed() for item in items[start:end]]}
        return page | ({"nextCursor": str(end)} if end < len(items) else {})

    async def _call_tool(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        asked = understood(params, Named)
        tool = self.toolbox.tools.get(asked.name)
        if tool is None:
            near = get_close_matches(asked.name, self.toolbox.tools, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RpcError(_INVALID_PARAMS, f"unknown tool {_short(asked.name)}{hint}")
        bound = tool.arguments.decode(asked.arguments or {}, call)
        try:
            return call_result(await run(tool.function, *bound.args, **bound.kwargs), tool.output)
        except RpcError:
            raise
        except ToolError as error:
            return failure(str(error))
        except Exception as error:
            _log.warning("tool %r failed", tool.name, exc_info=error)
            return failure(f"{type(error).__name__}: {error}"[:_MESSAGE_CHARS_MAX])

    async def _read_resource(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        uri = understood(params, At).uri
        resource, variables = self._resource(uri)
        bound = resource.arguments.decode(variables, call, strict=False)
        value = await _made(
            f"resource {_short(uri)} could not be read", resource.function, *bound.args, **bound.kwargs
        )
        if value is None:
            raise _no_resource(uri)
        return read_result(uri, value, resource.mime_type)

    async def _subscribe(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        uri = understood(params, At).uri
        self._resource(uri)
        if len(uri) > _URI_CHARS_MAX:
            raise RpcError(_INVALID_PARAMS, f"a URI of more than {_URI_CHARS_MAX} characters")
        uris = self._subscriptions.setdefault(call.sender, {})
        if len(uris) >= _SUBSCRIPTIONS_MAX and uri not in uris:
            raise RpcError(_INVALID_PARAMS, f"more than {_SUBSCRIPTIONS_MAX} subscriptions")
        uris[uri] = None
        return {}

    async def _unsubscribe(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        self._subscriptions.get(call.sender, {}).pop(understood(params, At).uri, None)
        return {}

    async def _get_prompt(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        asked = understood(params, Named)
        prompt = self._prompt(asked.name)
        bound = prompt.arguments.decode(asked.arguments or {}, call, strict=False)
        value = await _made(
            f"prompt {prompt.name!r} could not be written", prompt.function, *bound.args, **bound.kwargs
        )
        return prompt_result(value, prompt.description)

    async def _complete(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        asked = understood(params, Complete)
        name, begun = asked.argument.name, asked.argument.value
        offer = self._referred(asked.ref)
        completer = offer.completers.get(name)
        if completer is None:
            values = [value for value in offer.arguments.choices(name) if value.startswith(begun)]
        else:
            made = await _made(f"{_short(name)} could not be completed", completer, begun)
            values = [str(value) for value in made]
        shown = values[:_COMPLETIONS_MAX]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}}

    async def _set_level(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        self._levels[call.sender] = understood(params, LevelWanted).level
        return {}

    def _resource(self, uri: str) -> tuple[FunctionResource, dict[str, str]]:
        found = self.toolbox.find_resource(uri)
        if found is None:
            raise _no_resource(uri)
        return found

    def _prompt(self, name: str) -> FunctionPrompt:
        prompt = self.toolbox.prompts.get(name)
        if prompt is None:
            raise RpcError(_INVALID_PARAMS, f"unknown prompt {_short(name)}")
        return prompt

    def _referred(self, ref: PromptRef | ResourceRef) -> FunctionPrompt | FunctionResource:
        if isinstance(ref, PromptRef):
            return self._prompt(ref.name)
        for resource in self.toolbox.resources.values():
            if resource.uri.text == ref.uri:
                return resource
        return self._resource(ref.uri)[0]


async def _made(failed: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return await run(function, *args, **kwargs)
    except RpcError:
        raise
    except ToolError as error:
        raise RpcError(_INTERNAL, str(error)) from error
    except Exception as error:
        _log.warning("%s", failed, exc_info=error)
        raise RpcError(_INTERNAL, failed) from error


def _as_rpc_error(error: Exception, method: str) -> RpcError:
    if isinstance(error, ArgumentError):
        return RpcError(_INVALID_PARAMS, str(error))
    _log.error("%s could not be answered", method, exc_info=error)
    return RpcError(_INTERNAL, "internal error")


def _no_resource(uri: str) -> RpcError:
    return RpcError(_NOT_FOUND, f"no resource {_short(uri)}", {"uri": uri[:_MESSAGE_CHARS_MAX]})


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…")
