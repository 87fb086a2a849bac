"""Ways to make our gateway wrong in what it lets through, and in what it shows."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from mew.gateway.ports import Guest
from mew.gateway.room import Room
from mew.gateway.websocket import text_frame
from mew.protocol.codec import decode, encode
from mew.protocol.envelope import Envelope
from mew.protocol.errors import Refusal
from mew.space import Decision, Deliver, Entry, Refused, Space

from .breaks import Break, Said, When

__all__ = [
    "allowing",
    "altered",
    "changed",
    "doubled",
    "dropped",
    "leaking",
    "narrowed",
    "refusing",
]


# What is said is refused, or allowed, where it must not be.


def refusing(when: When) -> Break:
    """Refuse what should pass."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Space.refusal

        def refusal(space: Space, at: Any, envelope: Envelope, *, lenient: bool = False) -> Refused | None:
            if when(envelope):
                return Refused(Refusal.INVALID_PAYLOAD, "this gateway is wrong")
            return right(space, at, envelope, lenient=lenient)

        monkeypatch.setattr(Space, "refusal", refusal)

    return broken


def allowing(when: When) -> Break:
    """Let through what should be refused."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Space.refusal

        def refusal(space: Space, at: Any, envelope: Envelope, *, lenient: bool = False) -> Refused | None:
            refused = right(space, at, envelope, lenient=lenient)
            return None if refused is not None and when(envelope) else refused

        monkeypatch.setattr(Space, "refusal", refusal)

    return broken


def leaking(when: When) -> Break:
    """Refuse it, and show it to everyone else all the same."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Room._take_envelope

        def receive(room: Room, guest: Guest, received: bytes) -> None:
            envelope = decode(received)
            if when(envelope) and room.space.refusal(datetime.now(UTC), envelope) is not None:
                room._outboxes.to_all_but((guest.id,), text_frame(received))
            right(room, guest, received)

        monkeypatch.setattr(Room, "_take_envelope", receive)

    return broken


# What is shown is not what was said.


def altered(alter: Callable[[Said], list[Said] | None]) -> Break:
    """Show these instead of each envelope, its own among them; none: it is lost; None: it is left as it is."""

    def instead(decision: Decision) -> list[Decision]:
        if not isinstance(decision, Deliver):
            return [decision]
        others = alter(json.loads(decision.raw or encode(decision.envelope)))
        if others is None:
            return [decision]
        return [replace(decision, raw=json.dumps(one).encode()) for one in others]

    return _deciding(lambda decisions: [one for decision in decisions for one in instead(decision)])


def dropped(when: Callable[[Said], bool]) -> Break:
    return altered(lambda said: [] if when(said) else None)


def doubled(when: Callable[[Said], bool]) -> Break:
    return altered(lambda said: [said, said] if when(said) else None)


def changed(when: Callable[[Said], bool], change: Callable[[Said], object]) -> Break:
    """Show it with a change made in place."""

    def alter(said: Said) -> list[Said] | None:
        before = copy.deepcopy(said)
        if when(said):
            change(said)
        return None if said == before else [said]

    return altered(alter)


def narrowed(when: When, only: Callable[[Envelope], list[str]]) -> Break:
    """Show it to these alone."""

    def narrow(decision: Decision) -> Decision:
        if not isinstance(decision, Deliver) or not when(decision.envelope):
            return decision
        return replace(decision, only=tuple(only(decision.envelope)))

    return _deciding(lambda decisions: [narrow(decision) for decision in decisions])


def _deciding(decide: Callable[[list[Decision]], list[Decision]]) -> Break:
    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Space.apply

        def apply(space: Space, entry: Entry) -> list[Decision]:
            return decide(right(space, entry))

        monkeypatch.setattr(Space, "apply", apply)

    return broken
