"""A result that is too large for an envelope: announced in one, brought by a stream, and put together again.

The announcement is a result too, with the mark `mew/stream` in its `_meta` (decision 0010): who watches sees that
there was an answer, and who asked gets all of it.
"""

import asyncio
import hashlib
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from mew.client.errors import StreamBroken
from mew.client.streams.reader import Reader
from mew.client.streams.stream import Stream
from mew.client.streams.streams import Streams
from mew.client.streams.window import ACK_EVERY_BYTES, Acknowledging
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

__all__ = ["MARK", "PARCEL_BYTES_MAX", "Delivery", "Parcel", "parcel_in"]

MARK: Final = "mew/stream"
PARCEL_BYTES_MAX: Final = 64 << 20
"""No result is larger."""
_SILENCE_S: Final = 30.0


class Parcel(Struct, frozen=True):
    """Which stream brings the JSON of a result, and what must arrive."""

    stream_id: Annotated[str, Meta(min_length=1, max_length=256)]
    size: Annotated[int, Meta(ge=0, le=PARCEL_BYTES_MAX)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


def parcel_in(result: Any) -> Parcel | None:
    """What a result announces; None where it is the result itself."""
    meta = result.get("_meta") if isinstance(result, dict) else None
    if not isinstance(meta, dict) or MARK not in meta:
        return None
    try:
        return msgspec.convert(meta[MARK], Parcel)
    except msgspec.ValidationError:
        return None


class Delivery:
    """A result on its way to us. Made the moment it is announced, so that none of it is missed."""

    def __init__(self, streams: Streams, parcel: Parcel, sender: str) -> None:
        """`sender` announced it: a stream of anybody else is not what brings it."""
        self._parcel = parcel
        me = streams.connection.session.me
        found = next((stream for stream in streams.active if stream.id == parcel.stream_id), None)
        is_for_us = found is not None and (found.target is None or me in found.target)
        self._stream = found if found is not None and found.owner == sender and is_for_us else None
        self._reader = None if self._stream is None else self._stream.read()

    async def result(self) -> Any:
        """All of it, once it is here.

        Raises:
            StreamBroken: it ended before that, came to a halt, or is something else.
        """
        parcel, stream, reader = self._parcel, self._stream, self._reader
        if stream is None or reader is None:
            raise self._broken("there is no such stream of theirs for us")
        pieces, size, digest = list[bytes](), 0, hashlib.sha256()
        acknowledging = Acknowledging(stream)
        try:
            async with reader:
                while size < parcel.size and (more := await _next(stream, reader)):
                    for piece in more:
                        size += len(piece)
                        digest.update(piece)
                    pieces += more
                    acknowledging.received(size)
        except (TimeoutError, StreamBroken) as lost:
            acknowledging.failed(type(lost).__name__)
            said = str(lost) or f"nothing came for {_SILENCE_S:g} s"
            raise self._broken(said) from None
        if size != parcel.size:
            raise self._broken(f"{size} arrived (the stream was closed: {stream.close_reason})")
        if digest.hexdigest() != parcel.sha256:
            raise self._broken("what arrived has another checksum")
        try:
            return decode_json(b"".join(pieces))
        except ProtocolError as error:
            raise self._broken(f"it is no JSON: {error}") from None

    def _broken(self, why: str) -> StreamBroken:
        parcel = self._parcel
        return StreamBroken(
            f"the result, of {parcel.size} bytes, did not arrive over stream {parcel.stream_id}: {why}"
        )


async def _next(stream: Stream, reader: Reader) -> list[bytes]:
    with stream.connection.expecting():
        async with asyncio.timeout(_SILENCE_S):
            return await reader.gather(ACK_EVERY_BYTES)
