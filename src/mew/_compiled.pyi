from collections.abc import Mapping
from datetime import datetime

from mew.gateway.pages import Record
from mew.gateway.plain import Heard
from mew.protocol.envelope import ParticipantId
from mew.space import Connection
from mew.space.space import Standing

class Bucket:
    def __init__(self, per_second: float, burst: float) -> None: ...
    def take(self, now_s: float, /) -> float: ...

def hand_out(
    records: list[Record],
    connected: Mapping[ParticipantId, tuple[Connection, ...]],
    boxes: Mapping[Connection, object],
    shared: list[bytes],
    apart: dict[Connection, list[bytes]],
    /,
) -> int: ...
def is_plain(received: bytes, nesting_max: int, /) -> bool: ...
def plain_run(
    heard: list[Heard],
    start: int,
    standing: Standing,
    record: type[Record],
    seq: int,
    at: datetime,
    now_s: float,
    bytes_max: int,
    nesting_max: int,
    /,
) -> tuple[list[Record], dict[str, ParticipantId], int]: ...
def text_frames(records: list[Record], /) -> bytes: ...
def whole_frames(data: bytes, bytes_max: int, /) -> tuple[list[tuple[int, bytes]], int]: ...
