"""PURE. Which method an MCP request or proposal calls, and for what: read the same way wherever it is told.

Only what names it is read, so nothing else in a payload hides it: no field of another method, no number too long.
"""

from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from mew.protocol.capability import named_by
from mew.protocol.json import NOT_JSON

__all__ = ["Call", "called"]


class Call(NamedTuple):
    """`name`: of the tool or prompt, or the URI of the resource; empty where the method has none."""

    method: str
    name: str = ""


class _Asked(Struct, gc=False):
    method: str
    params: Raw = Raw(b"{}")


_calls: Final = msgspec.json.Decoder(_Asked)
_fields: Final = msgspec.json.Decoder(dict[str, Raw])
_strings: Final = msgspec.json.Decoder(str)


def called(payload: bytes) -> Call:
    """What a payload calls; empty where it says none."""
    method = ""
    try:
        asked = _calls.decode(payload)
        method = asked.method
        field = named_by(method)
        named = None if field is None else _fields.decode(asked.params).get(field)
        return Call(method) if named is None else Call(method, _strings.decode(named))
    except NOT_JSON:
        return Call(method)
