"""Stream frames (§3.10.3): `#stream-id#data`, text or binary, never an envelope."""

from typing import Final

from .errors import ProtocolError

__all__ = ["MARK", "join", "split", "stream_of"]

MARK: Final = b"#"
_ID_BYTES_MAX: Final = 128


def stream_of(frame: bytes) -> str:
    """The id of the stream a frame belongs to.

    Raises:
        ProtocolError: there is no `#id#` at its start.
    """
    end = frame.find(MARK, 1, _ID_BYTES_MAX + 2)
    if frame[:1] != MARK or end < 2:
        raise ProtocolError("a stream frame starts with '#stream-id#'")
    try:
        return frame[1:end].decode("ascii")
    except UnicodeDecodeError:
        raise ProtocolError("a stream id is ASCII") from None


def split(frame: bytes) -> tuple[str, bytes]:
    """The id of its stream, and the data.

    Raises:
        ProtocolError: there is no `#id#` at its start.
    """
    stream_id = stream_of(frame)
    return stream_id, frame[len(stream_id) + 2 :]


def join(stream_id: str, data: bytes) -> bytes:
    frame = b"#%b#%b" % (stream_id.encode(), data)
    assert stream_of(frame) == stream_id, f"not a stream id: {stream_id!r}"
    return frame
