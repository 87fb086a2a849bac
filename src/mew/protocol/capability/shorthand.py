"""The string form of a capability (decision 002): `kind`, `kind:method` or `kind:method:name`."""

import msgspec

from mew.protocol.errors import InvalidCapability

from .values import JSON
from .written import LENGTH_MAX

__all__ = ["expanded", "in_short", "named_by", "short_form"]

_NAMED_BY = {
    "tools/call": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "prompts/get": "name",
    "completion/complete": "ref",
}
_KINDS_WITH_METHOD = ("mcp/request", "mcp/proposal")
_SHOWN_MAX = 128


def short_form(kind: str, payload: JSON) -> str:
    """The narrowest string form that fits an envelope like this: its kind, and method and name where it has them."""
    method = payload.get("method") if kind in _KINDS_WITH_METHOD and isinstance(payload, dict) else None
    if not isinstance(method, str):
        return kind
    params = payload.get("params")
    name = params.get(named_by(method)) if isinstance(params, dict) else None
    parts = (kind, method, name) if isinstance(name, str) else (kind, method)
    return ":".join(part[:_SHOWN_MAX] for part in parts)


def named_by(method: str) -> str | None:
    """The field of the params that says which tool, prompt or resource a method is for."""
    return _NAMED_BY.get(method)


def in_short(written: JSON) -> str:
    """A capability as somebody wrote it, in its string form where that says all of it; else its JSON."""
    if isinstance(written, str):
        return written
    kind = written.get("kind") if isinstance(written, dict) else None
    if isinstance(written, dict) and isinstance(kind, str):
        text = short_form(kind, written.get("payload"))
        try:
            if expanded(text) == written:
                return text
        except InvalidCapability:
            pass  # its kind has a colon in it
    return msgspec.json.encode(written).decode()


def expanded(text: str) -> dict[str, JSON]:
    """The object that the string stands for. A `*` for the method or the name is no condition on it.

    Raises:
        InvalidCapability: the string has parts that mean nothing.
    """
    if len(text) > LENGTH_MAX:
        raise InvalidCapability(f"a capability has {len(text)} characters, {LENGTH_MAX} are allowed")
    kind, *parts = text.split(":", 2)  # no further: the name may be a URI
    if not all((kind, *parts)):
        raise InvalidCapability(
            f"{text[:64]!r} has an empty part, write 'kind', 'kind:method' or 'kind:method:name'"
        )
    if not parts or (parts == ["*"] and kind in (*_KINDS_WITH_METHOD, "mcp/response")):
        return {"kind": kind}
    if kind not in _KINDS_WITH_METHOD:
        raise InvalidCapability(
            f"{text[:64]!r} names a method, which only {' and '.join(_KINDS_WITH_METHOD)} have;"
            f" write {kind[:64]!r} alone, or an object with a payload"
        )
    method = parts[0]
    if len(parts) == 1:
        return {"kind": kind, "payload": {"method": method}}
    if method not in _NAMED_BY:
        raise InvalidCapability(
            f"{text[:64]!r} has a third part, which only these methods take: {', '.join(_NAMED_BY)}"
        )
    if parts[1] == "*":
        return {"kind": kind, "payload": {"method": method}}
    return {"kind": kind, "payload": {"method": method, "params": {_NAMED_BY[method]: parts[1]}}}
