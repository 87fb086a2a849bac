"""PURE. What one looks for in an envelope, which may be wrong in any way."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

__all__ = [
    "Predicate",
    "about",
    "alike",
    "answers",
    "both",
    "causes",
    "events",
    "is_id",
    "is_kind",
    "joins",
    "leaves",
    "listed",
    "moment",
    "part",
    "payload_of",
    "refuses",
    "same",
    "to_of",
    "word_in",
]


Envelope = Mapping[str, Any]
Predicate = Callable[[Envelope], bool]

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def moment(text: object) -> datetime | None:
    """The moment that a date and time with an offset names, at the most a leap second early; None: it is none."""
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[3]) > 60:
        return None
    day, minute, second, fraction, offset, _ = found.groups()
    try:
        return datetime.fromisoformat(
            f"{day}T{minute}:{min(int(second), 59):02}{(fraction or '')[:7]}{offset.upper()}"
        )
    except ValueError:
        return None


def part(envelope: Any, *path: str) -> Any:
    """What stands at this place of an envelope; None where there is nothing."""
    for key in path:
        envelope = envelope.get(key) if isinstance(envelope, Mapping) else None
    return envelope


def is_kind(*kinds: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda envelope: envelope.get("kind") in kinds


def is_id(envelope_id: Any) -> Predicate:
    return lambda envelope: envelope.get("id") == envelope_id


def answers(envelope: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether it names what was sent as its cause."""
    causes = envelope.get("correlation_id")
    return isinstance(causes, Sequence) and sent.get("id") in causes


def refuses(sent: Mapping[str, Any]) -> Predicate:
    """An error about this; a gateway that names no cause can only mean the last thing it was sent."""

    def fits(envelope: Mapping[str, Any]) -> bool:
        if envelope.get("kind") != "system/error":
            return False
        return answers(envelope, sent) or not envelope.get("correlation_id")

    return fits


# Who is there.


def joins(who: str) -> Predicate:
    return lambda envelope: events([envelope], who) == ["join"]


def leaves(who: str) -> Predicate:
    return lambda envelope: events([envelope], who) == ["leave"]


def events(received: Iterable[Envelope], who: str) -> list[Any]:
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


def payload_of(envelope: Envelope) -> Mapping[str, Any]:
    """An empty one where there is none, or one that is no object."""
    payload = envelope.get("payload")
    return payload if isinstance(payload, Mapping) else {}


def causes(envelope: Envelope) -> Sequence[Any]:
    """What `correlation_id` names, also where that is wrongly no array."""
    return _listed(envelope.get("correlation_id"))


def to_of(envelope: Envelope) -> Sequence[Any]:
    return _listed(envelope.get("to"))


def about(*sent: Envelope) -> Predicate:
    """It names one of these in `correlation_id`."""
    ids = [one["id"] for one in sent]
    return lambda envelope: any(one in causes(envelope) for one in ids)


def both(*tests: Predicate) -> Predicate:
    return lambda envelope: all(fits(envelope) for fits in tests)


def word_in(word: str) -> Predicate:
    """The word is said somewhere in the payload."""
    return lambda envelope: word in json.dumps(envelope.get("payload"), ensure_ascii=False)


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []
