"""PURE. Where a Redis is, from its URL. Needs no client library, so that a configuration can be read without one."""

from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

__all__ = ["RedisAddress"]

_PORT: Final = 6379
_EXPECTED: Final = "expected redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH, is another text"


class RedisAddress(Struct, frozen=True):
    """Where a Redis is and how to sign in; its text has no secret in it."""

    host: str = ""
    port: int = _PORT
    path: str = ""
    tls: bool = False
    username: str = ""
    password: str = ""
    database: int = 0

    @classmethod
    def parse(cls, url: str) -> "RedisAddress":
        """Read `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://…` for TLS, or `unix:///PATH`.

        Raises:
            ValueError: it is none of these; the message does not repeat it, for it may have a password in it.
        """
        try:
            parts = urlsplit(url)
            if parts.scheme == "unix" and parts.path:
                return cls(path=parts.path, **_login(parts))
            if parts.scheme in ("redis", "rediss") and parts.hostname:
                database = int(parts.path.strip("/") or 0)
                is_tls = parts.scheme == "rediss"
                port = parts.port or _PORT
                return cls(parts.hostname, port, tls=is_tls, database=database, **_login(parts))
        except ValueError:
            pass  # a port, an address or a database that is none
        raise ValueError(_EXPECTED)

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}"


def _login(parts: SplitResult) -> dict[str, Any]:
    return {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
