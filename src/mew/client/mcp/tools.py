"""Tools, resources and prompts, each made from a function, as MCP lists them."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from .call import Call
from .docstring import docstring_of
from .results import CONTENT
from .schema import Arguments, Output, arguments_of, output_of
from .uri import UriTemplate

__all__ = ["NO_COMPLETERS", "Completer", "Prompt", "Resource", "Tool"]

Completer = Callable[[str], Iterable[str] | Awaitable[Iterable[str]]]
NO_COMPLETERS: Final[Mapping[str, Completer]] = MappingProxyType({})

_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function others may call. `annotations` are hints about what it does, in MCP's names."""

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    output: Output | None
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
    ) -> "Tool":
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
class Resource:
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
    ) -> "Resource":
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
class Prompt:
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
    ) -> "Prompt":
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
