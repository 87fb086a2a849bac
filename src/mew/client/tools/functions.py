"""Tools, resources and prompts made from functions, with URI templates (RFC 6570), and the toolbox that holds them."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, overload
from urllib.parse import unquote

import re2

from mew.client.mcp.call import Call
from mew.client.mcp.results import CONTENT

from .schema import Arguments, OutputSchema, arguments_of, docstring_of, output_of

__all__ = [
    "NO_COMPLETERS",
    "Changed",
    "Completer",
    "FunctionPrompt",
    "FunctionResource",
    "FunctionTool",
    "Toolbox",
    "UriTemplate",
    "What",
]

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE_NAME: Final = re.compile(r"\+?[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


class UriTemplate:
    """A URI, or a family of them. `shape` is the same for templates that match the same URIs."""

    def __init__(self, template: str) -> None:
        """Read a template.

        Raises:
            ValueError: no absolute URI, a variable of another form, one that occurs twice, or two side by side.
        """
        texts, variables = _VARIABLE.split(template)[::2], _VARIABLE.findall(template)
        self.text = template
        self.names = tuple(variable.removeprefix("+") for variable in variables)
        self.shape = _VARIABLE.sub(lambda found: "{+}" if found[1].startswith("+") else "{}", template)
        if not _SCHEME.fullmatch(template):
            raise ValueError(f"{template!r} is no absolute URI such as 'notes://all' or 'notes://{{name}}'")
        if any(not _VARIABLE_NAME.fullmatch(variable) for variable in variables) or "{" in "".join(texts):
            raise ValueError(f"{template!r}: only {{name}} and {{+name}} are understood")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"{template!r} names a variable twice")
        if "" in texts[1:-1]:
            raise ValueError(f"{template!r} has two variables with nothing between them")
        runs = ["(.+)" if variable.startswith("+") else "([^/?#]+)" for variable in variables]
        parts = [text for pair in zip(map(re.escape, texts), [*runs, ""], strict=True) for text in pair]
        self._pattern: Any = re2.compile("(?s)" + "".join(parts))  # linear in time: the URI is a stranger's

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables as this URI has them, decoded; nothing when it is not of this family."""
        try:
            found = self._pattern.fullmatch(uri)
            if found is None:
                return None
            values = [unquote(value, errors="strict") for value in found.groups()]
        except UnicodeError:
            return None
        taken = dict(zip(self.names, values, strict=True))
        safe = all(_is_safe(value, is_path=f"{{+{name}}}" in self.text) for name, value in taken.items())
        return taken if safe else None


def _is_safe(value: str, *, is_path: bool) -> bool:
    if "\0" in value or {".", ".."} & set(re.split(r"[\\/]", value)):
        return False
    return is_path or not (value.startswith(("/", "\\")) or _DRIVE.match(value))


Completer = Callable[[str], Iterable[str] | Awaitable[Iterable[str]]]
NO_COMPLETERS: Final[Mapping[str, Completer]] = MappingProxyType({})

_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class FunctionTool:
    """A function others may call. `annotations` are hints about what it does, in MCP's names."""

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    output: OutputSchema | None
    title: str | None
    description: str
    annotations: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
    ) -> "FunctionTool":
        """Make a tool of a function.

        Raises:
            TypeError: a parameter that JSON has no form for, or a function that yields.
            ValueError: a name that MCP does not allow.
        """
        hints = {
            "title": title,
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        }
        return cls(
            name=_name(function, name),
            function=_plain_function(function),
            arguments=arguments_of(function, context=Call),
            output=output_of(function, besides=CONTENT),
            title=title,
            description=_description(function, description),
            annotations=_present(hints),
        )

    @property
    def key(self) -> str:
        return self.name

    def listed(self) -> dict[str, Any]:
        """As `tools/list` shows it."""
        return _present(
            {
                "name": self.name,
                "title": self.title,
                "description": self.description or None,
                "inputSchema": self.arguments.schema,
                "outputSchema": self.output.schema if self.output is not None else None,
                "annotations": self.annotations or None,
            }
        )


@dataclass(frozen=True, kw_only=True)
class FunctionResource:
    """Something to read under a URI, or, where the URI has variables, under each of a family of them."""

    name: str
    uri: UriTemplate
    function: Callable[..., Any]
    arguments: Arguments
    title: str | None
    description: str
    mime_type: str | None
    completers: Mapping[str, Completer]

    @classmethod
    def of(
        cls,
        uri: str,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        complete: Mapping[str, Completer] = NO_COMPLETERS,
    ) -> "FunctionResource":
        """Make a resource of a function, whose parameters are the variables of the URI. None means: there is none.

        Raises:
            TypeError: as for a tool; or the parameters are not the variables.
            ValueError: a URI or a template that is not understood; a completer for what is no variable.
        """
        template = UriTemplate(uri)
        arguments = arguments_of(function, context=Call)
        unknown = set(template.names) - arguments.hints.keys()
        unfilled = set(arguments.schema["required"]) - set(template.names)
        if unknown or unfilled:
            parameters, variables = ", ".join(arguments.hints) or "none", ", ".join(template.names) or "none"
            raise TypeError(
                f"{uri!r} has the variables {variables}, its function the parameters {parameters}"
            )
        return cls(
            name=_name(function, name),
            uri=template,
            function=_plain_function(function),
            arguments=arguments,
            title=title,
            description=_description(function, description),
            mime_type=mime_type,
            completers=_completers(complete, template.names),
        )

    @property
    def key(self) -> str:
        return self.uri.shape

    @property
    def is_template(self) -> bool:
        return bool(self.uri.names)

    def listed(self) -> dict[str, Any]:
        """As `resources/list` or `resources/templates/list` shows it."""
        return _present(
            {
                "uriTemplate" if self.is_template else "uri": self.uri.text,
                "name": self.name,
                "title": self.title,
                "description": self.description or None,
                "mimeType": self.mime_type,
            }
        )


@dataclass(frozen=True, kw_only=True)
class FunctionPrompt:
    """A function that writes messages for a model."""

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    title: str | None
    description: str
    completers: Mapping[str, Completer]

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        complete: Mapping[str, Completer] = NO_COMPLETERS,
    ) -> "FunctionPrompt":
        """Make a prompt of a function.

        Raises:
            TypeError, ValueError: as for a tool; a completer for what is no parameter.
        """
        arguments = arguments_of(function, context=Call)
        return cls(
            name=_name(function, name),
            function=_plain_function(function),
            arguments=arguments,
            title=title,
            description=_description(function, description),
            completers=_completers(complete, arguments.hints),
        )

    @property
    def key(self) -> str:
        return self.name

    def listed(self) -> dict[str, Any]:
        """As `prompts/list` shows it."""
        schema = self.arguments.schema
        arguments = [
            _present(
                {
                    "name": name,
                    "description": parameter.get("description"),
                    "required": name in schema["required"],
                }
            )
            for name, parameter in schema["properties"].items()
        ]
        shown = {
            "name": self.name,
            "title": self.title,
            "description": self.description or None,
            "arguments": arguments or None,
        }
        return _present(shown)


def _name(function: Callable[..., Any], given: str | None) -> str:
    name = given if given is not None else getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: 1 to 128 of letters, digits and _ . / -")
    return name


def _plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__}() yields: return a list")
    return function


def _description(function: Callable[..., Any], given: str | None) -> str:
    return given if given is not None else docstring_of(function).description


def _completers(given: Mapping[str, Completer], names: Iterable[str]) -> Mapping[str, Completer]:
    unknown = given.keys() - set(names)
    if unknown:
        raise ValueError(f"a completer for {', '.join(sorted(unknown))}, which is no argument")
    return dict(given)


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item", FunctionTool, FunctionResource, FunctionPrompt)

What = Literal["tools", "resources", "prompts"]
Changed = Callable[[What], None]


class Toolbox:
    """The tools, resources and prompts of one participant, in the order they came; they may come and go at any time."""

    def __init__(self) -> None:
        self._tools: dict[str, FunctionTool] = {}
        self._resources: dict[str, FunctionResource] = {}
        self._prompts: dict[str, FunctionPrompt] = {}
        self._watchers: list[Changed] = []

    @property
    def tools(self) -> Mapping[str, FunctionTool]:
        """By name."""
        return MappingProxyType(self._tools)

    @property
    def resources(self) -> Mapping[str, FunctionResource]:
        """By the shape of their URI: the URI itself where it has no variables."""
        return MappingProxyType(self._resources)

    @property
    def prompts(self) -> Mapping[str, FunctionPrompt]:
        """By name."""
        return MappingProxyType(self._prompts)

    def watch(self, changed: Changed) -> None:
        """Have a function called with `tools`, `resources` or `prompts` whenever some are added or removed."""
        self._watchers.append(changed)

    def find_resource(self, uri: str) -> tuple[FunctionResource, dict[str, str]] | None:
        """Whose URI this is, with its variables; one without variables goes first."""
        exact = self._resources.get(uri)
        if exact is not None and not exact.is_template:
            return exact, {}
        for resource in self._resources.values():
            variables = resource.uri.match(uri) if resource.is_template else None
            if variables is not None:
                return resource, variables
        return None

    def add(self, item: FunctionTool | FunctionResource | FunctionPrompt) -> None:
        """Offer one more.

        Raises:
            ValueError: there is one of that name or URI.
        """
        match item:
            case FunctionTool():
                self._put(self._tools, item, "tools")
            case FunctionResource():
                self._put(self._resources, item, "resources")
            case FunctionPrompt():
                self._put(self._prompts, item, "prompts")

    def remove(self, item: FunctionTool | FunctionResource | FunctionPrompt) -> None:
        """Offer it no more; nothing happens when it is not there."""
        match item:
            case FunctionTool():
                self._take(self._tools, item, "tools")
            case FunctionResource():
                self._take(self._resources, item, "resources")
            case FunctionPrompt():
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
        """Decorate a function: others may call it. With or without options, which are those of `FunctionTool.of`."""
        return self._decorate(function, lambda decorated: FunctionTool.of(decorated, **options))

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
                FunctionResource.of(
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
        """Decorate a function: it writes a prompt. With or without options, which are those of `FunctionPrompt.of`."""
        return self._decorate(function, lambda decorated: FunctionPrompt.of(decorated, **options))

    def _decorate(self, function: Any, make: Callable[[Any], FunctionTool | FunctionPrompt]) -> Any:
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
