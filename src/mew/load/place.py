"""PURE. Where a gateway is, who one may be there, and the requests that open its two doors."""

from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct, field

__all__ = ["Place", "Seat"]

_PORTS = {"ws": 80, "http": 80, "wss": 443, "https": 443}
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # anybody's: what it is good against, proxies that cache, is not in the way here


class Seat(Struct, frozen=True):
    """Somebody one may be."""

    who: str
    token: str = field(default="")

    def __repr__(self) -> str:
        return f"Seat({self.who!r})"


class Place(Struct, frozen=True):
    """A space of a gateway; None where it has a single one."""

    host: str
    port: int
    space: str | None = None
    secure: bool = False
    path: str = ""

    @classmethod
    def at(cls, url: str, space: str | None = None) -> "Place":
        """From the URL of a gateway, with `/ws` at its end or not.

        Raises:
            ValueError: it is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a gateway; it looks like ws://127.0.0.1:8080")
        path = parts.path.rstrip("/").removesuffix("/ws")
        secure = parts.scheme in ("wss", "https")
        return cls(parts.hostname, parts.port or _PORTS[parts.scheme], space, secure, path)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def upgrade(self, seat: Seat) -> bytes:
        """The request for a WebSocket."""
        return (
            f"GET {self.path}/ws{self._query} HTTP/1.1\r\nHost: {self.authority}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {_KEY}\r\n"
            f"Authorization: Bearer {seat.token}\r\n\r\n"
        ).encode()

    def post(self, seat: Seat, body_bytes: int) -> bytes:
        """The head of a request that injects an envelope of this size (§5.3)."""
        return (
            f"POST {self.path}/participants/{quote(seat.who, safe='')}/messages{self._query} HTTP/1.1\r\n"
            f"Host: {self.authority}\r\nAuthorization: Bearer {seat.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
        ).encode()

    @property
    def _query(self) -> str:
        return "" if self.space is None else f"?{urlencode({'space': self.space})}"
