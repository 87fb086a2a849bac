"""Streams that the kit opens: asked for, written to, closed, and what others receive of them (§3.10)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .matching import answers
from .stage import Stage
from .verdicts import demand
from .wire import Actor

__all__ = ["Stream", "in_bytes", "open_of", "opened"]


@dataclass(frozen=True, slots=True)
class Stream:
    """An open stream: who asked for it, how, and what the gateway answered."""

    actor: Actor
    request: Mapping[str, Any]
    opened: Mapping[str, Any]
    id: str

    def frame(self, data: str | bytes) -> str | bytes:
        return f"#{self.id}#{data}" if isinstance(data, str) else b"#%b#%b" % (self.id.encode(), data)

    async def write(self, data: str | bytes) -> None:
        """A frame, text or binary as the data is."""
        frame = self.frame(data)
        if isinstance(frame, str):
            await self.actor.send_text(frame)
        else:
            await self.actor.send_binary(frame)

    async def carries(self, data: str | bytes, *hearers: Actor) -> None:
        """Write it, and all these receive it, bare and with every byte.

        Raises:
            Violation: somebody does not.
        """
        await self.write(data)
        await self.reaches(data, *hearers)

    async def reaches(self, data: str | bytes, *hearers: Actor) -> None:
        """All these receive this frame, which was written."""
        frame = in_bytes(self.frame(data))
        for hearer in hearers:
            what = f"the frame {frame[:80]!r} ({len(frame)} bytes) of {self.actor.name}, bare (§3.10.3)"
            await hearer.hear_frame(lambda heard: in_bytes(heard) == frame, what)

    def received_by(self, hearer: Actor) -> list[bytes]:
        """The data of its frames so far, in order."""
        start = in_bytes(self.frame(b""))
        frames = map(in_bytes, hearer.frames)
        return [frame[len(start) :] for frame in frames if frame.startswith(start)]

    async def close(self, reason: str = "complete") -> dict[str, Any]:
        payload = {"stream_id": self.id, "reason": reason}
        return await self.actor.send("stream/close", payload, correlation_id=[self.opened["id"]])


async def opened(
    stage: Stage, actor: Actor, *, to: Any = ("gateway",), correlation_id: Any = ..., **payload: Any
) -> Stream:
    """A stream that this actor asks for; closed when the check is over.

    Raises:
        Violation: the gateway opens none.
    """
    request = {"direction": "upload", **payload}
    sent = await actor.send(
        "stream/request", request, to=list(to) if isinstance(to, tuple) else to, correlation_id=correlation_id
    )
    return await open_of(stage, actor, sent)


async def open_of(stage: Stage, actor: Actor, request: Mapping[str, Any]) -> Stream:
    """The stream that was asked for with this request.

    Raises:
        Violation: the gateway opens none.
    """

    def fits(envelope: Mapping[str, Any]) -> bool:
        kind, named = envelope.get("kind"), answers(envelope, request)
        if kind == "system/error":
            return named  # one that names nothing may be about a frame
        return kind == "stream/open" and (named or not envelope.get("correlation_id"))

    answer = await actor.hear(fits, f"a stream/open for its stream/request {request['id']} (§3.10.1)")
    payload = answer.get("payload")
    demand(answer.get("kind") == "stream/open", f"a stream/request was refused: {payload}")
    stream_id = payload.get("stream_id") if isinstance(payload, dict) else None
    demand(
        isinstance(stream_id, str) and stream_id and "#" not in stream_id,
        f"a stream/open has a stream_id that can stand between two '#'; this one has {stream_id!r}",
    )
    stream = Stream(actor, request, answer, str(stream_id))
    stage.afterwards(stream.close)
    return stream


def in_bytes(frame: str | bytes) -> bytes:
    """A frame as it went over the wire: text and binary ones may be forwarded as either, if no byte is lost."""
    return frame.encode() if isinstance(frame, str) else frame
