"""Stream frames (§3.10.3): `#stream-id#data`, text or binary, never an envelope."""

from typing import Final

from .errors import ProtocolError

__all__ = ["is_frame", "join", "stream_of"]

_MARK: Final = b"#"
_ID_BYTES_MAX: Final = 128


def is_frame(received: bytes) -> bool:
    return received[:1] == _MARK


def stream_of(frame: bytes) -> str:
    """The id of the stream a frame belongs to.

    Raises:
        ProtocolError: there is no `#id#` at its start.
    """
    end = frame.find(_MARK, 1, _ID_BYTES_MAX + 2)
    if frame[:1] != _MARK or end < 2:
        raise ProtocolError("a stream frame starts with '#stream-id#'")
    try:
        return frame[1:end].decode("ascii")
    except UnicodeDecodeError:
        raise ProtocolError("a stream id is ASCII") from None


def join(stream_id: str, data: bytes) -> bytes:
    return b"#%b#%b" % (stream_id.encode("ascii"), data)
