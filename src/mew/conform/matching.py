"""PURE. What one looks for in an envelope of a gateway, which may be wrong in any way."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .wire import Fits

__all__ = [
    "alike",
    "answers",
    "events",
    "is_id",
    "is_kind",
    "joins",
    "leaves",
    "listed",
    "part",
    "refuses",
    "same",
]


def part(envelope: Any, *path: str) -> Any:
    """What stands at this place of an envelope; None where there is nothing."""
    for key in path:
        envelope = envelope.get(key) if isinstance(envelope, Mapping) else None
    return envelope


def is_kind(*kinds: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda envelope: envelope.get("kind") in kinds


def is_id(envelope_id: Any) -> Fits:
    return lambda envelope: envelope.get("id") == envelope_id


def answers(envelope: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether it names what was sent as its cause."""
    causes = envelope.get("correlation_id")
    return isinstance(causes, Sequence) and sent.get("id") in causes


def refuses(sent: Mapping[str, Any]) -> Fits:
    """An error about this; a gateway that names no cause can only mean the last thing it was sent."""

    def fits(envelope: Mapping[str, Any]) -> bool:
        if envelope.get("kind") != "system/error":
            return False
        return answers(envelope, sent) or not envelope.get("correlation_id")

    return fits


# Who is there.


def joins(who: str) -> Fits:
    return lambda envelope: events([envelope], who) == ["join"]


def leaves(who: str) -> Fits:
    return lambda envelope: events([envelope], who) == ["leave"]


def events(received: Iterable[dict[str, Any]], who: str) -> list[Any]:
    """What presence said of somebody, in order."""
    told = (part(envelope, "payload") for envelope in received if envelope.get("kind") == "system/presence")
    return [part(payload, "event") for payload in told if part(payload, "participant", "id") == who]


def listed(welcome: Mapping[str, Any]) -> list[Any]:
    """The ids of the others in a welcome."""
    others = part(welcome, "payload", "participants")
    return [part(one, "id") for one in others] if isinstance(others, list) else []


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where 1.0 is 1, `true` is no number, and numbers are doubles."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if _is_number(one) and _is_number(other):
        try:
            return float(one) == float(other)
        except OverflowError:
            return bool(one == other)
    return type(one) is type(other) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool))


def same(one: Any, other: Any) -> bool:
    """Whether two lists of capabilities say the same, in whatever order."""
    if not isinstance(one, list) or not isinstance(other, list):
        return False
    return sorted(map(_canonical, one)) == sorted(map(_canonical, other))


def _canonical(capability: Any) -> str:
    return json.dumps(capability, sort_keys=True)
