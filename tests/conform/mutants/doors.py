"""Ways to make our gateway wrong at its doors: what it takes for an envelope, from whom, and what it sends."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from mew.gateway import admit, room, showing
from mew.gateway.ports import Guest
from mew.gateway.room import Room
from mew.protocol.errors import Refusal
from mew.space import Refused

from .breaks import Break, Said, replaced

__all__ = [
    "accepting",
    "in_anothers_name",
    "receiving",
    "saying",
    "signing",
    "silent",
    "taken_for",
    "taking",
]


def taking(reading: Callable[[bytes], bytes]) -> Break:
    """Judge another text than the one received, and pass on the one received."""
    right = admit.admit
    return replaced(room, "admit", lambda raw, who, **limits: right(reading(raw), who, **limits))


def accepting(mend: Callable[[Said], object]) -> Break:
    """Overlook what this puts right, in place."""
    return taking(lambda raw: _mended(raw, mend))


def taken_for(name: str, value: Any, when: Callable[[Any], object]) -> Break:
    """Take a field that is wrong for this; one that is missing is `...` to `when`."""

    def mend(said: Said) -> None:
        if when(said.get(name, ...)):
            said[name] = value() if callable(value) else value

    return accepting(mend)


def receiving(change: Callable[[Said, str], object]) -> Break:
    """Change what came from somebody, in place, and go on as if it had come so."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Room._take_envelope

        def receive(self: Room, guest: Guest, received: bytes) -> None:
            right(self, guest, _mended(received, lambda said: change(said, guest.who)))

        monkeypatch.setattr(Room, "_take_envelope", receive)

    return broken


def in_anothers_name(same: Callable[[Said, str], bool]) -> Break:
    """Take a `from` for the sender's own where this says so, and pass it on."""
    right = admit.admit

    def admitted(raw: bytes, who: Any, **limits: Any) -> Any:
        return right(_mended(raw, lambda said: same(said, who) and said.update({"from": who})), who, **limits)

    return replaced(room, "admit", admitted)


def saying(change: Callable[[Said], Any]) -> Break:
    """Send every envelope, those of the gateway to one alone too, with a change in place, or what is returned."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = vars(room)["text_frame"]  # it may be wrong in another way already

        def text_frame(raw: bytes) -> bytes:
            said, before = json.loads(raw), json.loads(raw)
            other = change(said)
            said = other if isinstance(other, dict | list) else said
            frame: bytes = right(raw if said == before else json.dumps(said).encode())
            return frame

        for module in (room, showing):
            monkeypatch.setattr(module, "text_frame", text_frame)

    return broken


def signing(kind: str, /, **fields: Any) -> Break:
    """Other fields in what the gateway says of this kind; `...` takes one away, and a function gets what it was."""

    def change(said: Said) -> None:
        for name, value in fields.items() if said["kind"] == kind else ():
            name = name.rstrip("_")
            if value is ...:
                said.pop(name, None)
            else:
                said[name] = value(said.get(name)) if callable(value) else value

    return saying(change)


def silent(*refusals: Refusal) -> Break:
    """Do not tell who sent something that is refused for one of these."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Room._refuse

        def refuse(self: Room, who: Any, connection: Any, refused: Refused, *more: Any) -> None:
            if refused.refusal not in refusals:
                right(self, who, connection, refused, *more)

        monkeypatch.setattr(Room, "_refuse", refuse)

    return broken


def _mended(raw: bytes, mend: Callable[[Said], object]) -> bytes:
    with suppress(ValueError, AttributeError, TypeError, KeyError, RecursionError):
        said, before = json.loads(raw), json.loads(raw)
        mend(said)
        if said != before:  # else it would be wrong in more than this
            return json.dumps(said).encode()
    return raw
