"""What can be wrong with a participant, as what becomes of the envelopes on their way out of it or into it."""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mew.client.connection.websocket import Via, WebSocketLink

__all__ = [
    "Envelope",
    "Fault",
    "Kept",
    "Say",
    "Wrong",
    "afresh",
    "drop",
    "edit",
    "patched",
    "payload",
    "reason_of",
    "sends",
    "some_payload",
    "spoken",
    "takes",
    "tool_of",
    "twice",
    "when",
]

Envelope = dict[str, Any]
Change = Callable[[Envelope], Any]
"""What an envelope becomes: another, several, a text, or None for nothing."""


@dataclass(frozen=True)
class Say:
    """Among what comes in: the participant sends this, instead."""

    envelope: Envelope


@dataclass
class Fault:
    """How a participant is wrong. `sent` and `shown` change its envelopes, `frame` its stream frames."""

    sent: Change = lambda envelope: envelope
    shown: Change = lambda envelope: envelope
    frame: Callable[[bytes], bytes] = lambda frame: frame
    patch: Callable[[pytest.MonkeyPatch], object] = lambda monkeypatch: None
    via: Via = Via.HEADER

    def commit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        send, receive = WebSocketLink.send, WebSocketLink.receive
        waiting: list[bytes] = []

        async def sending(link: WebSocketLink, message: bytes, *, text: bool = True) -> None:
            if message[:1] == b"#":
                changed = self.frame(message)
                await send(link, changed, text=text or changed[:1] == b"{")
                return
            for one in _several(self.sent(json.loads(message))):
                await send(link, _raw(one))

        async def receiving(link: WebSocketLink) -> bytes:
            while not waiting:
                message = await receive(link)
                try:
                    envelope = json.loads(message)
                except ValueError:
                    return message
                if not isinstance(envelope, dict):
                    return message
                for one in _several(self.shown(envelope)):
                    if isinstance(one, Say):
                        await send(link, _raw(one.envelope))
                    else:
                        waiting.append(message if one is envelope else _raw(one))
            return waiting.pop(0)

        monkeypatch.setattr(WebSocketLink, "send", sending)
        monkeypatch.setattr(WebSocketLink, "receive", receiving)
        self.patch(monkeypatch)


@dataclass(frozen=True)
class Wrong:
    """A check, a fault that it has to find, and words of what it then says."""

    check: str
    says: str
    make: Callable[[], Fault] = field(repr=False)


def _several(changed: Any) -> list[Any]:
    if changed is None:
        return []
    return changed if isinstance(changed, list) else [changed]


def _raw(one: Any) -> bytes:
    return one.encode() if isinstance(one, str) else json.dumps(one).encode()


# Changes.


def edit(envelope: Mapping[str, Any], **fields: Any) -> Envelope:
    """With these fields; one that is `...` is taken away."""
    return {key: value for key, value in {**envelope, **fields}.items() if value is not ...}


def when(*kinds: str, **fields: Any) -> Change:
    """Envelopes of these kinds get these fields; one that can be called is called with the envelope."""

    def change(envelope: Envelope) -> Envelope:
        if envelope.get("kind") not in kinds:
            return envelope
        return edit(
            envelope,
            **{name: value(envelope) if callable(value) else value for name, value in fields.items()},
        )

    return change


def payload(*kinds: str, **fields: Any) -> Change:
    """The payload of envelopes of these kinds gets these fields."""
    return when(*kinds, payload=lambda envelope: edit(envelope.get("payload") or {}, **fields))


def some_payload(test: Callable[[Any], bool], *kinds: str) -> Callable[[Envelope], bool]:
    """Whether it is of these kinds, and its payload, or None, is such."""
    return lambda envelope: envelope.get("kind") in kinds and test(envelope.get("payload"))


def drop(*kinds: str, test: Callable[[Envelope], bool] = lambda envelope: True) -> Change:
    """Envelopes of these kinds, or all, that are such are lost."""
    return lambda envelope: (
        None if (not kinds or envelope.get("kind") in kinds) and test(envelope) else envelope
    )


def afresh(envelope: Mapping[str, Any], **fields: Any) -> Envelope:
    """Another one like it."""
    return edit(envelope, id=uuid.uuid4().hex, **fields)


def twice(*kinds: str, **fields: Any) -> Change:
    """Envelopes of these kinds are followed by another like it, with these fields."""
    return lambda envelope: (
        [envelope, afresh(envelope, **fields)] if envelope.get("kind") in kinds else envelope
    )


def spoken(me: str, kind: str, said: Mapping[str, Any], **fields: Any) -> Envelope:
    """A new envelope of the participant."""
    return {
        "protocol": "mew/v0.4",
        "id": uuid.uuid4().hex,
        "from": me,
        "kind": kind,
        "payload": said,
        **fields,
    }


# Wrong participants.


def sends(check: str, says: str, change: Any) -> Wrong:
    return Wrong(check, says, lambda: Fault(sent=change))


def takes(check: str, says: str, change: Any) -> Wrong:
    return Wrong(check, says, lambda: Fault(shown=change))


def patched(check: str, says: str, patch: Any) -> Wrong:
    return Wrong(check, says, lambda: Fault(patch=patch))


class Kept:
    """What a fault has seen pass: the last envelope of each kind, sent or shown."""

    def __init__(self) -> None:
        self.sent: dict[str, Envelope] = {}
        self.shown: dict[str, Envelope] = {}
        self.prompted: Envelope = {}

    def out(self, change: Callable[[Envelope], Any] = lambda e: e) -> Callable[[Envelope], Any]:
        def changed(envelope: Envelope) -> Any:
            self.sent[envelope["kind"]] = envelope
            return change(envelope)

        return changed

    def into(self, change: Callable[[Envelope], Any] = lambda e: e) -> Callable[[Envelope], Any]:
        def changed(envelope: Envelope) -> Any:
            self.shown[str(envelope.get("kind"))] = envelope
            if tool_of(envelope) == "write" and envelope.get("kind") == "mcp/request":
                self.prompted = envelope
            return change(envelope)

        return changed

    def about(self, kind: str, envelope: Envelope) -> bool:
        """Whether it names the last of a kind that was sent."""
        return self.sent.get(kind, {}).get("id") in (envelope.get("correlation_id") or ())


def tool_of(envelope: Envelope) -> str:
    return str(((envelope.get("payload") or {}).get("params") or {}).get("name"))


def reason_of(envelope: Envelope) -> Any:
    return (envelope.get("payload") or {}).get("reason")
