"""PURE. What one looks for in an envelope that may be wrong in any way."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["Test", "about", "both", "causes", "payload_of", "to_of", "word_in"]

Envelope = Mapping[str, Any]
Test = Callable[[Envelope], bool]


def payload_of(envelope: Envelope) -> Mapping[str, Any]:
    """An empty one where there is none, or one that is no object."""
    payload = envelope.get("payload")
    return payload if isinstance(payload, Mapping) else {}


def causes(envelope: Envelope) -> Sequence[Any]:
    """What `correlation_id` names, also where that is wrongly no array."""
    return _listed(envelope.get("correlation_id"))


def to_of(envelope: Envelope) -> Sequence[Any]:
    return _listed(envelope.get("to"))


def about(*sent: Envelope) -> Test:
    """It names one of these in `correlation_id`."""
    ids = [one["id"] for one in sent]
    return lambda envelope: any(one in causes(envelope) for one in ids)


def both(*tests: Test) -> Test:
    return lambda envelope: all(fits(envelope) for fits in tests)


def word_in(word: str) -> Test:
    """The word is said somewhere in the payload."""
    return lambda envelope: word in json.dumps(envelope.get("payload"), ensure_ascii=False)


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []
