"""Results too large for an envelope: announced in the response, and sent over a stream."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct

from mew.client.errors import MewError, RpcError, StreamBroken
from mew.client.history import HistoryFilter, HistoryIterator
from mew.client.streams.files import ACK_EVERY_BYTES, WINDOW_BYTES, Acknowledging, Window
from mew.client.streams.reader import StreamReader
from mew.client.streams.stream import FRAME_BYTES_MAX, Stream
from mew.client.streams.streams import RESULT_OF, Streams
from mew.proposals.book import ProposalBook
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json
from mew.protocol.kinds import Kind

from .call import Call

__all__ = [
    "ENVELOPE_BYTES_MAX",
    "MARK",
    "PARCEL_BYTES_MAX",
    "LargeResult",
    "LargeResultDownload",
    "LargeResultUpload",
    "large_result_in",
    "too_large",
]

MARK: Final = "mew/stream"
PARCEL_BYTES_MAX: Final = 64 << 20
"""No result is larger."""
_SILENCE_S: Final = 30.0


class LargeResult(Struct, frozen=True):
    """Which stream brings the JSON of a result, and what must arrive."""

    stream_id: Annotated[str, Meta(min_length=1, max_length=256)]
    size: Annotated[int, Meta(ge=0, le=PARCEL_BYTES_MAX)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


def large_result_in(result: Any) -> LargeResult | None:
    """What a result announces; None where it is the result itself."""
    meta = result.get("_meta") if isinstance(result, dict) else None
    if not isinstance(meta, dict) or MARK not in meta:
        return None
    try:
        return msgspec.convert(meta[MARK], LargeResult)
    except msgspec.ValidationError:
        return None


class LargeResultDownload:
    """A result on its way to us. Made the moment it is announced, so that none of it is missed."""

    def __init__(self, streams: Streams, parcel: LargeResult, sender: str) -> None:
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


async def _next(stream: Stream, reader: StreamReader) -> list[bytes]:
    with stream.connection.expecting():
        async with asyncio.timeout(_SILENCE_S):
            return await reader.gather(ACK_EVERY_BYTES)


_log = logging.getLogger(__name__)

ENVELOPE_BYTES_MAX: Final = 512 << 10
"""A result that takes more goes over a stream, where we may open one."""
_AT_ONCE: Final = 4
_WITHIN_S: Final = 300.0
_BLIND_BYTES_S: Final = 8 << 20
_PROPOSALS_MAX: Final = 4
_RECALL_S: Final = 5.0
_TOO_LARGE: Final = -32000
_MIB: Final = 1 << 20

Announce = Callable[[dict[str, Any]], Awaitable[Envelope] | None]
"""Answers with this result in place of the whole; None where that may not be said, or nobody waits for it any more."""


class LargeResultUpload:
    """At most four at a time, each within five minutes."""

    def __init__(self, streams: Streams, book: ProposalBook) -> None:
        """The book knows whose proposal a request carries out."""
        self._streams = streams
        self._book = book
        self._room = asyncio.Semaphore(_AT_ONCE)

    def may(self, call: Call) -> bool:
        """Whether we may open a stream for its answer, and close it."""
        session = self._streams.connection.session
        asked = {"direction": "upload", "target": [call.sender]}
        return session.may(Kind.STREAM_REQUEST, (), asked) and session.may(
            Kind.STREAM_CLOSE, (), {"reason": "complete"}
        )

    async def send(self, call: Call, result: dict[str, Any], data: bytes, announce: Announce) -> bool:
        """Announce the result and send it, as the JSON that it is; False: no stream was opened, and nothing said.

        What goes wrong after that, who reads it learns from the end of the stream.

        Raises:
            RpcError: it is larger than any result may be.
        """
        if len(data) > PARCEL_BYTES_MAX:
            raise RpcError(
                _TOO_LARGE,
                f"the result has {_mib(len(data))}, and at most {_mib(PARCEL_BYTES_MAX)} are sent: ask for less",
                {"size": len(data)},
            )
        async with self._room:
            sha256 = hashlib.sha256(data).hexdigest()
            try:
                stream = await self._open(call, len(data))
            except MewError as error:
                _log.warning("no stream for the result of %s: %s", call.method, error)
                return False
            parcel = {"stream_id": stream.id, "size": len(data), "sha256": sha256}
            try:
                async with asyncio.timeout(_WITHIN_S), stream:
                    accepted = announce(_announcement(call, result, parcel))
                    if accepted is not None:
                        await accepted
                        await self._write(stream, data)
                        await stream.close(size=len(data), sha256=sha256)
            except (MewError, TimeoutError) as error:
                _log.warning("the result of %s was not sent whole: %s", call.method, error)
        return True

    async def _open(self, call: Call, size: int) -> Stream:
        marked: dict[str, Any] = {RESULT_OF: call.envelope.id}
        return await self._streams.open(
            target=await self._readers(call),
            description=f"result of {call.method}",
            expected_size_bytes=size,
            correlation_id=[call.envelope.id],
            context=None if call.envelope.context is UNSET else call.envelope.context,
            **marked,
        )

    async def _write(self, stream: Stream, data: bytes) -> None:
        with Window(stream, silence_s=_SILENCE_S) as window:
            for piece in _pieces(data):
                await window.room()
                if window.sent >= WINDOW_BYTES and window.blind:
                    # Who is too far behind, the gateway puts out: and they may not even be able to say so.
                    await asyncio.sleep(len(piece) / _BLIND_BYTES_S)
                window.sent += len(piece)
                await stream.write(piece)

    async def _readers(self, call: Call) -> list[str]:
        """Who asked; and where that carries out a proposal, who proposed it."""
        readers = {call.sender: None}
        for id in call.envelope.correlation_id[:_PROPOSALS_MAX]:
            record = self._book.get(id)
            if record is None:
                readers |= dict.fromkeys(await self._recalled(call, id))
            elif any(sent.id == call.envelope.id for sent in record.fulfilments):
                readers[record.proposer] = None
        return list(readers)

    async def _recalled(self, call: Call, id: str) -> list[str]:
        """Who proposed what was proposed before we came, as far as the gateway tells."""
        with suppress(MewError, TimeoutError):
            async with asyncio.timeout(_RECALL_S):
                asked = HistoryFilter(correlation=id, kind=Kind.MCP_PROPOSAL, limit=_PROPOSALS_MAX)
                shown = await HistoryIterator(self._streams.connection, asked).list()
                return [
                    one.sender for one in shown if one.id == id and one.content.get("method") == call.method
                ]
        return []


def too_large(size: int, me: str) -> RpcError:
    """What to answer where the gateway refuses a result for its size."""
    return RpcError(
        _TOO_LARGE,
        f"the result has {_mib(size)}, too large for an envelope; "
        f"with the capability 'stream/*' {me!r} could send it over a stream",
        {"size": size},
    )


def _announcement(call: Call, result: dict[str, Any], parcel: dict[str, Any]) -> dict[str, Any]:
    announced: dict[str, Any] = {"_meta": {MARK: parcel}}
    if call.method == "tools/call":
        said = f"The result has {_mib(parcel['size'])} and comes over stream {parcel['stream_id']}."
        announced["content"] = [{"type": "text", "text": said}]
    return announced | ({"isError": True} if result.get("isError") is True else {})


def _pieces(data: bytes) -> Iterator[memoryview]:
    whole = memoryview(data)
    for start in range(0, len(data), FRAME_BYTES_MAX):
        yield whole[start : start + FRAME_BYTES_MAX]


def _mib(size: int) -> str:
    return f"{size / _MIB:.1f} MiB"
