"""What a participant offers as an MCP server: a registry of tools, resources and prompts."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeVar, overload

from .tools import NO_COMPLETERS, Completer, Prompt, Resource, Tool

__all__ = ["Changed", "Toolbox", "What"]

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item", Tool, Resource, Prompt)

What = Literal["tools", "resources", "prompts"]
Changed = Callable[[What], None]


class Toolbox:
    """The tools, resources and prompts of one participant, in the order they came; they may come and go at any time."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._resources: dict[str, Resource] = {}
        self._prompts: dict[str, Prompt] = {}
        self._watchers: list[Changed] = []

    @property
    def tools(self) -> Mapping[str, Tool]:
        """By name."""
        return MappingProxyType(self._tools)

    @property
    def resources(self) -> Mapping[str, Resource]:
        """By the shape of their URI: the URI itself where it has no variables."""
        return MappingProxyType(self._resources)

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """By name."""
        return MappingProxyType(self._prompts)

    def watch(self, changed: Changed) -> None:
        """Have a function called with `tools`, `resources` or `prompts` whenever some are added or removed."""
        self._watchers.append(changed)

    def find_resource(self, uri: str) -> tuple[Resource, dict[str, str]] | None:
        """Whose URI this is, with its variables; one without variables goes first."""
        exact = self._resources.get(uri)
        if exact is not None and not exact.is_template:
            return exact, {}
        for resource in self._resources.values():
            variables = resource.uri.match(uri) if resource.is_template else None
            if variables is not None:
                return resource, variables
        return None

    def add(self, item: Tool | Resource | Prompt) -> None:
        """Offer one more.

        Raises:
            ValueError: there is one of that name or URI.
        """
        match item:
            case Tool():
                self._put(self._tools, item, "tools")
            case Resource():
                self._put(self._resources, item, "resources")
            case Prompt():
                self._put(self._prompts, item, "prompts")

    def remove(self, item: Tool | Resource | Prompt) -> None:
        """Offer it no more; nothing happens when it is not there."""
        match item:
            case Tool():
                self._take(self._tools, item, "tools")
            case Resource():
                self._take(self._resources, item, "resources")
            case Prompt():
                self._take(self._prompts, item, "prompts")

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
    ) -> Callable[[Function], Function]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Decorate a function: others may call it. With or without options, which are those of `Tool.of`."""
        return self._decorate(function, lambda decorated: Tool.of(decorated, **options))

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        complete: Mapping[str, Completer] = NO_COMPLETERS,
    ) -> Callable[[Function], Function]:
        """Decorate a function: what it returns can be read under this URI, `notes://{name}` under each such.

        Raises:
            TypeError: used without a URI.
        """
        if not isinstance(uri, str):
            raise TypeError('a resource has a URI: @participant.resource("notes://all")')

        def decorate(function: Function) -> Function:
            self.add(
                Resource.of(
                    uri,
                    function,
                    name=name,
                    title=title,
                    description=description,
                    mime_type=mime_type,
                    complete=complete,
                )
            )
            return function

        return decorate

    @overload
    def prompt(self, function: Function, /) -> Function: ...
    @overload
    def prompt(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        complete: Mapping[str, Completer] = NO_COMPLETERS,
    ) -> Callable[[Function], Function]: ...
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Decorate a function: it writes a prompt. With or without options, which are those of `Prompt.of`."""
        return self._decorate(function, lambda decorated: Prompt.of(decorated, **options))

    def _decorate(self, function: Any, make: Callable[[Any], Tool | Prompt]) -> Any:
        def decorate(decorated: Any) -> Any:
            self.add(make(decorated))
            return decorated

        return decorate if function is None else decorate(function)

    def _put(self, items: dict[str, Item], item: Item, what: What) -> None:
        if item.key in items:
            raise ValueError(f"there is one of {item.key!r} among the {what} already")
        items[item.key] = item
        self._tell(what)

    def _take(self, items: dict[str, Item], item: Item, what: What) -> None:
        if items.get(item.key) is item:
            del items[item.key]
            self._tell(what)

    def _tell(self, what: What) -> None:
        for changed in self._watchers:
            changed(what)
