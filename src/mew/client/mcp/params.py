"""The params of MCP's requests, as far as a server has to understand them."""

from typing import Any, Final, TypeVar

import msgspec

from mew.client.errors import RpcError

from .call import Level
from .generation import HANDSHAKE_VERSIONS
from .hints import read

__all__ = [
    "At",
    "Complete",
    "Initialize",
    "LevelWanted",
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
