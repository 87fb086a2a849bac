"""Files of any size over a stream, in constant memory: flow control, checksum, and saved whole or not at all."""

import asyncio
import hashlib
import os
import re
import secrets
import stat
import threading
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from msgspec import UNSET

from mew.client.errors import Corrupt, StreamBroken
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, Presence, StreamAck

from .stream import FRAME_BYTES_MAX, Stream
from .streams import Streams

__all__ = [
    "ACK_EVERY_BYTES",
    "WINDOW_BYTES",
    "Acknowledging",
    "PartialFile",
    "Progress",
    "Saved",
    "Uploaded",
    "Window",
    "safe_name",
    "save",
    "upload",
]

WINDOW_BYTES: Final = 4 << 20
ACK_EVERY_BYTES: Final = 1 << 20
_FIRST_ACK_S: Final = 1.0
_LAST_ACK_S: Final = 2.0


class Acknowledging:
    """For who saves: tells the owner how much has arrived, where one may."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._told = -ACK_EVERY_BYTES
        self._received = 0
        self._on_its_way: asyncio.Future[Envelope] | None = None

    def received(self, received: int) -> None:
        """So much is saved. Said for each MiB, and once the one before has got through."""
        self._received = received
        if self._on_its_way is None:
            self._say_more()

    async def done(self) -> None:
        """All of it is saved; return once everyone is being shown that, or soon."""
        answer = self._post({"received": self._received})
        if answer is not None:
            await asyncio.wait({answer}, timeout=_LAST_ACK_S)

    def failed(self, error: str) -> None:
        """Nobody need wait for us."""
        if self._told >= 0:
            self._post({"received": self._received, "error": error})

    def _say_more(self) -> None:
        self._on_its_way = None
        if self._received - self._told >= ACK_EVERY_BYTES:
            self._told = self._received
            self._on_its_way = self._post({"received": self._received})
            if self._on_its_way is not None:
                self._on_its_way.add_done_callback(lambda _: self._say_more())

    def _post(self, said: dict[str, Any]) -> asyncio.Future[Envelope] | None:
        stream, connection = self._stream, self._stream.connection
        payload, to = {"stream_id": stream.id, **said}, (stream.owner,)
        if not connection.session.may(Kind.STREAM_ACK, to, payload):
            return None
        about = () if stream.open_id is None else (stream.open_id,)
        return connection.post(connection.compose(Kind.STREAM_ACK, payload, to=to, correlation_id=about))


class _Saver:
    """Somebody who acknowledges."""

    __slots__ = ("heard_s", "received")

    def __init__(self, received: int, heard_s: float) -> None:
        self.received = received
        self.heard_s = heard_s


class Window:
    """For who uploads, as a context: how far those who acknowledge have come, and waiting for them.

    Waited for is only who has acknowledged at least once, may get the data, has not left, and got further within the
    last `silence_s` in which it was behind. Who was given up once is not waited for again.
    """

    def __init__(self, stream: Stream, *, silence_s: float) -> None:
        self.sent = 0
        self._stream = stream
        self._connection = stream.connection
        self._silence_s = silence_s
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._savers: dict[str, _Saver] = {}
        self._given_up: set[str] = set()
        self._changed = asyncio.Event()
        self._began = False

    def __enter__(self) -> Self:
        self._connection.listen(self._hear)
        self._connection.lost_listeners.append(self._changed.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.unlisten(self._hear)
        self._connection.lost_listeners.remove(self._changed.set)

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Who has said to have saved all that was sent."""
        return tuple(who for who, saver in self._savers.items() if saver.received >= self.sent)

    @property
    def blind(self) -> bool:
        """Whether somebody whom it is for, and who is here, does not say how far it is."""
        roster = self._connection.session.roster
        return any(who in roster and who not in self._savers for who in self._stream.target or ())

    async def room(self) -> None:
        """Wait until everybody waited for is at most 4 MiB behind.

        The first 4 MiB go out at once; then those who could acknowledge have a second to begin with it, as they may
        be far away, and what is sent meanwhile could already be too much for them.
        """
        if self.sent >= WINDOW_BYTES:
            await self._first_ack()
        if self._late(WINDOW_BYTES):
            await self._caught_up(WINDOW_BYTES)

    async def settled(self) -> None:
        """Wait until everybody waited for has all that was sent; whom it is for has a second to begin with it."""
        if self._stream.target is not None:
            await self._first_ack()
        if self._late(0):
            await self._caught_up(0)

    async def _first_ack(self) -> None:
        if not self._began:
            self._began = True
            if not (self._savers or self._given_up) and self._anybody_could():
                await self._news(self._clock() + _FIRST_ACK_S)

    async def _caught_up(self, behind_max: int) -> None:
        began_s = self._clock()
        while not self._stream.broken:
            for who, saver in self._late(behind_max):
                if self._clock() >= max(saver.heard_s, began_s) + self._silence_s:
                    self._give_up(who)
            late = self._late(behind_max)
            if not late:
                return
            await self._news(min(max(saver.heard_s, began_s) for _, saver in late) + self._silence_s)

    async def _news(self, until_s: float) -> None:
        self._changed.clear()
        with suppress(TimeoutError), self._connection.expecting():
            async with asyncio.timeout_at(until_s):
                await self._changed.wait()

    def _late(self, behind_max: int) -> list[tuple[str, _Saver]]:
        least = self.sent - behind_max
        return [(who, saver) for who, saver in self._savers.items() if saver.received < least]

    def _give_up(self, who: str) -> None:
        if self._savers.pop(who, None) is not None:
            self._given_up.add(who)
            self._changed.set()

    def _anybody_could(self) -> bool:
        session, target = self._connection.session, self._stream.target
        payload = {"stream_id": self._stream.id, "received": 0}
        return any(
            held.fits(Kind.STREAM_ACK, (session.me,), lambda: payload)
            for who, held in session.roster.items()
            if who != session.me and (target is None or who in target)
        )

    def _hear(self, envelope: Envelope, payload: Any) -> None:
        if isinstance(payload, StreamAck):
            self._acknowledged(envelope.sender, payload)
        elif isinstance(payload, Presence) and payload.event == "leave":
            self._give_up(payload.participant.id)

    def _acknowledged(self, who: str, ack: StreamAck) -> None:
        target = self._stream.target
        if who in self._given_up or (target is not None and who not in target):
            return
        if ack.stream_id != self._stream.id:
            return
        if ack.error is not UNSET:
            self._give_up(who)
            return
        saver = self._savers.get(who)
        if ack.received <= self.sent and (saver is None or ack.received > saver.received):
            self._savers[who] = _Saver(ack.received, self._clock())
            self._changed.set()


Progress = Callable[[int, int | None], object]
"""Told how many bytes are done, and of how many, where that is known. Must not wait."""

_NAME_BYTES_MAX: Final = 200
_FORBIDDEN: Final = frozenset('<>:"|?*/\\')
_DEVICES: Final = re.compile(r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9¹²³])", re.IGNORECASE)


@dataclass(frozen=True)
class Uploaded:
    """What was sent; `confirmed`: who has said, until then, to have saved all of it."""

    size: int
    sha256: str
    stream_id: str
    confirmed: tuple[str, ...]


@dataclass(frozen=True)
class Saved:
    """What was saved; `verified`: the sender has given a checksum, and this is it."""

    size: int
    sha256: str
    verified: bool


async def upload(
    streams: Streams,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    to: Sequence[str] = (),
    target: str | Sequence[str] | None = None,
    description: str | None = None,
    encoding: str | None = None,
    correlation_id: Sequence[str] = (),
    context: str | None = None,
    progress: Progress | None = None,
    silence_s: float = 30.0,
    **fields: Any,
) -> Uploaded:
    """Send a file over a stream of its own: what it has now, up to its present size.

    Its `name` and `size` are shown with the stream; size and SHA-256 of what was sent are in its close. Whoever
    acknowledges what it saves is waited for, each until it has got no further for `silence_s`; so `target` says who
    could slow it down. Returns once the gateway has taken all of it, and those who acknowledge have saved it.

    Raises:
        OSError: the file cannot be read; where it fails on the way, the stream is closed with the reason `error`.
        ValueError: it is no regular file.
        Refused: the gateway said no.
        StreamBroken: the connection was lost on the way.
    """
    source = await asyncio.to_thread(_Source, Path(path))
    try:
        stream = await streams.open(
            to=to,
            target=target,
            description=description,
            expected_size_bytes=source.size,
            encoding=encoding,
            correlation_id=correlation_id,
            context=context,
            name=Path(path).name if name is None else name,
            size=source.size,
            **fields,
        )
        with Window(stream, silence_s=silence_s) as window:
            async with stream:
                while piece := await asyncio.to_thread(source.read):
                    await window.room()
                    window.sent += len(piece)
                    await stream.write(piece)
                    if progress is not None:
                        progress(window.sent, source.size)
                sha256 = source.digest.hexdigest()
                await stream.close(size=window.sent, sha256=sha256)
            await window.settled()
            return Uploaded(window.sent, sha256, stream.id, window.confirmed)
    finally:
        await asyncio.to_thread(source.close)


async def save(stream: Stream, path: str | os.PathLike[str], *, progress: Progress | None = None) -> Saved:
    """Write a stream to a file, which is there only once all of it is: a file that was there before is replaced.

    Returns when the stream is closed as `complete`, with the size and the checksum that its close says, if any.
    `path` is the caller's alone: `safe_name` makes a name of what the sender says, for who wants that.

    Raises:
        StreamBroken: the stream ended in another way, or some of it was lost; there is no file.
        Corrupt: it came to its end, and is not what was sent; there is no file.
        OSError: the file cannot be written.
    """
    reader, landing, acknowledging = aiter(stream), PartialFile(Path(path)), Acknowledging(stream)
    size = stream.fields.get("size")
    total = size if type(size) is int else None
    try:
        await asyncio.to_thread(landing.begin)
        acknowledging.received(0)
        while pieces := await reader.gather(ACK_EVERY_BYTES):
            await asyncio.to_thread(landing.put, pieces)
            acknowledging.received(landing.size)
            if progress is not None:
                progress(landing.size, total)
        verified = _verify(stream, landing)
        await asyncio.to_thread(landing.finish)
    except BaseException as error:
        acknowledging.failed(type(error).__name__)
        await asyncio.to_thread(landing.abandon)
        raise
    finally:
        reader.close()
    await acknowledging.done()
    return Saved(landing.size, landing.digest.hexdigest(), verified)


def safe_name(stream: Stream, default: str = "download") -> str:
    """What the sender calls the file, as a name that is harmless in any folder and on any system.

    No path, nothing hidden, nothing that cannot be seen, no device, at most 200 bytes; it may still be the name of a
    file that is there.
    """
    said = stream.fields.get("name")
    last = re.split(r"[/\\]", said if isinstance(said, str) else "")[-1]
    seen = "".join(
        char for char in unicodedata.normalize("NFC", last) if char.isprintable() and char not in _FORBIDDEN
    )
    name = seen.strip(" .")
    if _DEVICES.fullmatch(name.partition(".")[0].rstrip()):
        name = f"_{name}"
    stem, dot, ending = name.rpartition(".")
    ending = f"{dot}{ending}" if stem and len(ending.encode()) <= 16 else ""
    stem = name.removesuffix(ending) if ending else name
    kept = stem.encode()[: _NAME_BYTES_MAX - len(ending.encode())].decode(errors="ignore").strip(" .")
    return f"{kept}{ending}" if kept else default


def _verify(stream: Stream, landing: "PartialFile") -> bool:
    """Whether a checksum was given, and is right.

    Raises:
        StreamBroken: the stream did not come to its end.
        Corrupt: what arrived is something else.
    """
    if stream.close_reason != "complete":
        raise StreamBroken(f"stream {stream.id} was closed before its end: {stream.close_reason}")
    size, sha256 = stream.close_fields.get("size"), stream.close_fields.get("sha256")
    if size is not None and size != landing.size:
        raise Corrupt(f"stream {stream.id} had {size} bytes, {landing.size} arrived")
    if sha256 is not None and sha256 != landing.digest.hexdigest():
        raise Corrupt(f"stream {stream.id} arrived with SHA-256 {landing.digest.hexdigest()}, not {sha256}")
    return sha256 is not None


class _Source:
    """A file to be read once. Its methods wait for the disk."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.digest = hashlib.sha256()
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise ValueError(f"{path} is no regular file")
        self.size = self._left = status.st_size

    def read(self) -> bytes:
        piece = self._file.read(min(FRAME_BYTES_MAX, self._left))
        self._left -= len(piece)
        self.digest.update(piece)
        return piece

    def close(self) -> None:
        self._file.close()


class PartialFile:
    """A file that grows beside its place and is put there when it is whole. Its methods wait for the disk.

    Who was cancelled while one of them ran in a thread may `abandon` it at once.
    """

    def __init__(self, path: Path) -> None:
        self.size = 0
        self.digest = hashlib.sha256()
        self._path = path
        self._beside = path.with_name(f".{secrets.token_hex(8)}.part")
        self._file: BinaryIO | None = None
        self._over = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            if not self._over:
                self._file = self._beside.open("xb")

    def put(self, pieces: list[bytes]) -> None:
        with self._lock:
            if self._file is not None:
                for piece in pieces:
                    self._file.write(piece)
                    self.digest.update(piece)
                    self.size += len(piece)

    def finish(self) -> None:
        """Into its place, at once and whole, even if the machine fails the next moment."""
        with self._lock:
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._beside.replace(self._path)
                self._file, self._over = None, True

    def abandon(self) -> None:
        """Leave no trace."""
        with self._lock:
            self._over = True
            if self._file is not None:
                self._file.close()
                self._beside.unlink(missing_ok=True)
                self._file = None
