"""Frames for many records at once, in C where it is there: for everyone, or each for those it is for."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import TypeAlias

from mew import compiled
from mew.protocol.envelope import ParticipantId
from mew.space import Connection

from .pages import Record
from .websocket import text_frame

__all__ = ["hand_out", "text_frames"]

HandOut: TypeAlias = Callable[
    [
        list[Record],
        Mapping[ParticipantId, tuple[Connection, ...]],
        Mapping[Connection, object],
        list[bytes],
        dict[Connection, list[bytes]],
    ],
    int,
]


def text_frames_in_python(records: list[Record]) -> bytes:
    """A frame for each of these, joined."""
    return b"".join([text_frame(record.raw) for record in records])


def hand_out_in_python(
    records: list[Record],
    connected: Mapping[ParticipantId, tuple[Connection, ...]],
    boxes: Mapping[Connection, object],
    shared: list[bytes],
    apart: dict[Connection, list[bytes]],
) -> int:
    """Gather a frame of each for those it is for; how many deliveries that makes.

    `shared` is for all of `boxes` but those that have something else, `apart`.
    """
    given = 0
    for record in records:
        frame = text_frame(record.raw)
        if record.only is None:
            given += len(boxes)
            for due in (shared, *apart.values()):
                due.append(frame)
            continue
        for connection in chain.from_iterable(connected.get(who, ()) for who in record.only):
            if connection in apart:
                apart[connection].append(frame)
            elif connection in boxes:
                apart[connection] = [*shared, frame]
            else:
                continue
            given += 1
    return given


text_frames: Callable[[list[Record]], bytes] = compiled.text_frames or text_frames_in_python
hand_out: HandOut = compiled.hand_out or hand_out_in_python
