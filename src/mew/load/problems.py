"""What keeps a load from measuring: a gateway that says no, connections that end, envelopes that do not arrive."""

from typing import Final

from mew.protocol.errors import CloseCode, Refusal

__all__ = ["LoadFailed", "NotLetIn", "RateLimited", "Refused", "was_closed", "was_refused"]

_RATE: Final = "limits.envelopes_per_second and limits.burst"


class LoadFailed(Exception):
    """There is no figure, and why."""


class NotLetIn(LoadFailed):
    """The door stayed shut: `code` is the gateway's own word for it, where it has one."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Refused(LoadFailed):
    """A rule of the gateway says no to what is sent."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class RateLimited(Refused):
    """More was sent than the gateway takes of one: it is not the gateway's speed that would be measured."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Refusal.RATE_LIMITED)


def was_refused(code: str, message: str) -> Refused:
    """For a `system/error`, or a problem over HTTP."""
    if code == Refusal.RATE_LIMITED:
        return RateLimited(
            "the gateway allows a sender fewer envelopes than it could take: what would be measured is that limit;"
            f" raise {_RATE} in its space.yaml, or stay below them (mew bench --rate)"
        )
    return Refused(f"the gateway refused what was sent: {code}: {message}", code)


def was_closed(code: int, reason: str) -> LoadFailed:
    """For a connection that the gateway closed."""
    if code == CloseCode.FLOODING:
        return RateLimited(
            f"the gateway closed a connection for sending too much ({reason}): raise {_RATE} in its space.yaml"
        )
    if code == CloseCode.SLOW_READER:
        return LoadFailed(
            "the gateway closed a connection for reading too slowly: raise limits.outbox_bytes, or send less at once"
        )
    said = f"{code}: {reason}" if reason else str(code)
    return LoadFailed(f"the gateway closed a connection in the middle ({said})")
