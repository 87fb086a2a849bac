"""Ways to make our gateway wrong at its doors: what it takes for an envelope, from whom, and what it sends."""

import json
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from mew.gateway.http.api import HttpApi
from mew.gateway.room import room as room_module
from mew.gateway.room import streams as streams_module
from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.gateway.websocket.frames import binary_frame, text_frame
from mew.protocol.codec import decode
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import MARK
from mew.space import ConnectionId, Decision, Deliver, Entry, Event, RefusalDetails, Space

from .breaks import Break, Said, When, wrapping
from .deciding import deciding, one_by_one, with_raw

__all__ = [
    "POLLS",
    "POSTS",
    "accepting",
    "afterwards",
    "append",
    "arriving",
    "framing",
    "framing_streams",
    "in_anothers_name",
    "leaking",
    "reading",
    "receiving",
    "saying",
    "show",
    "signing",
    "silent",
    "taken_for",
    "taking",
]

POSTS: Final = (HttpApi, "_post_message")
"""Answers who posts an envelope."""

POLLS: Final = (HttpApi, "_messages")
"""Answers who fetches envelopes."""


# What comes in.


def arriving(take: Callable[[Room, RoomConnection, bytes], bytes | None]) -> Break:
    """Let the room receive this in place of each text that is no stream frame; None: nothing."""

    def taken(room: Room, connection: RoomConnection, texts: list[bytes]) -> list[bytes]:
        found = (text if text.startswith(MARK) else take(room, connection, text) for text in texts)
        return [text for text in found if text is not None]

    def receive(right: Any, room: Room, connection: RoomConnection, texts: list[bytes], size: int) -> None:
        right(room, connection, taken(room, connection, texts), size)

    def receive_lenient(right: Any, room: Room, connection: RoomConnection, texts: list[bytes]) -> None:
        right(room, connection, taken(room, connection, texts))

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        wrapping(Room, "receive", receive)(monkeypatch)
        wrapping(Room, "receive_lenient", receive_lenient)(monkeypatch)

    return broken


def receiving(change: Callable[[Said, str], object]) -> Break:
    """Change what came from somebody, in place, and go on as if it had come so."""
    return arriving(lambda room, connection, text: _mended(text, lambda said: change(said, connection.who)))


def taking(judged: Callable[[bytes], bytes]) -> Break:
    """Judge another text than the one received, and pass on the one received."""
    return reading(lambda room, connection, text: judged(text))


def accepting(mend: Callable[[Said], object]) -> Break:
    """Overlook what this puts right, in place."""
    return taking(lambda raw: _mended(raw, mend))


def taken_for(name: str, value: Any, when: Callable[[Any], object]) -> Break:
    """Take a field that is wrong for this; one that is missing is `...` to `when`."""

    def mend(said: Said) -> None:
        if when(said.get(name, ...)):
            said[name] = value() if callable(value) else value

    return accepting(mend)


def in_anothers_name(same: Callable[[Said, str], bool]) -> Break:
    """Take a `from` for the sender's own where this says so, and pass it on."""

    def read(room: Room, connection: RoomConnection, text: bytes) -> bytes:
        own = {"from": connection.who}
        return _mended(text, lambda said: same(said, connection.who) and said.update(own))

    return reading(read)


def leaking(when: When) -> Break:
    """Refuse it, and show it to everyone else all the same."""

    def take(room: Room, connection: RoomConnection, text: bytes) -> bytes:
        with suppress(ProtocolError):
            envelope = decode(text)
            _, refused = room.space.judge(datetime.now(UTC), Envelopes.of(envelope, text))
            if refused is not None and when(envelope):
                show(room, text, but=(connection.id,))
        return text

    return arriving(take)


def silent(*refusals: Refusal) -> Break:
    """Do not tell who sent something that is refused for one of these."""

    def reject(
        right: Any, room: Room, connection: RoomConnection, refused: RefusalDetails, *more: Any
    ) -> None:
        if refused.refusal not in refusals:
            right(room, connection, refused, *more)

    return wrapping(Room, "reject", reject)


def reading(read: Callable[[Room, RoomConnection, bytes], bytes]) -> Break:
    """Judge what this makes of a text, and deliver the text itself."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        received: dict[bytes, bytes] = {}

        def take(room: Room, connection: RoomConnection, text: bytes) -> bytes:
            made = text
            with suppress(ValueError, TypeError, ProtocolError):  # what it cannot read it takes as it came
                made = read(room, connection, text)
            if made != text:
                received[made] = text
            return made

        def deliver(space: Space, decision: Decision) -> list[Decision]:
            if not isinstance(decision, Deliver) or decision.envelopes.raws[0] not in received:
                return [decision]
            return [with_raw(decision, received[decision.envelopes.raws[0]])]

        arriving(take)(monkeypatch)
        deciding(deliver)(monkeypatch)

    return broken


def _mended(raw: bytes, mend: Callable[[Said], object]) -> bytes:
    with suppress(ValueError, AttributeError, TypeError, KeyError, RecursionError):
        said, before = json.loads(raw), json.loads(raw)
        mend(said)
        if said != before:  # else it would be wrong in more than this
            return json.dumps(said).encode()
    return raw


# What is done with it.


def afterwards(then: Callable[[Room, Entry, Decision], object]) -> Break:
    """Have something done after each decision was carried out; for each envelope that is delivered."""

    def apply(right: Any, room: Room, entry: Entry) -> Any:
        decisions = right(room, entry)
        for decision in one_by_one(decisions):
            then(room, entry, decision)
        return decisions

    return wrapping(Room, "_apply", apply)


def append(room: Room, event: Event) -> None:
    """Have something happen in a space that did not."""
    room.enqueue(lambda: room._append(event))


# What goes out.


def show(
    room: Room,
    text: bytes,
    to: Iterable[ConnectionId] | None = None,
    *,
    but: Collection[ConnectionId] = (),
    is_binary: bool = False,
) -> None:
    """Send a message to some or all, in order with what the room receives and after all that it has decided."""
    frame: bytes = binary_frame(text) if is_binary else vars(room_module)["text_frame"](text)

    def send() -> None:
        room._outboxes.send(frame, to, but=but)

    room.enqueue(send)


def framing(make: Callable[[Callable[[bytes], bytes], bytes], bytes]) -> Break:
    """Make the frame of every envelope that is sent like this, given how it is rightly made."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = vars(room_module)["text_frame"]  # it may be wrong in another way already

        def framed(raw: bytes) -> bytes:
            return make(right, raw)

        monkeypatch.setattr(room_module, "text_frame", framed)
        monkeypatch.setattr(room_module, "join_frames", lambda raws: b"".join(map(framed, raws)))

    return broken


def framing_streams(
    *,
    text: Callable[[bytes], bytes] = text_frame,
    binary: Callable[[bytes], bytes] = binary_frame,
) -> Break:
    """Make the frames of streams that are passed on like this."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streams_module, "text_frame", text)
        monkeypatch.setattr(streams_module, "binary_frame", binary)

    return broken


def saying(change: Callable[[Said], Any]) -> Break:
    """Send every envelope, those of the gateway to one alone too, with a change in place, or what is returned."""

    def make(right: Callable[[bytes], bytes], raw: bytes) -> bytes:
        said, before = json.loads(raw), json.loads(raw)
        other = change(said)
        said = other if isinstance(other, dict | list) else said
        return right(raw if said == before else json.dumps(said).encode())

    return framing(make)


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
