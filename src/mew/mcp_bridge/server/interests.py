"""PURE. Who wants to hear what of a server: resources subscribed to, and how severe a line of the log must be."""

from typing import Any, Final, get_args

from mew.client.errors import RpcError
from mew.client.mcp.call import Level

__all__ = ["Interests"]

_LEVELS: Final[tuple[Level, ...]] = get_args(Level)
_DEFAULT: Final = _LEVELS.index("info")
_INVALID_PARAMS: Final = -32602
_SUBSCRIPTIONS_MAX: Final = 1_024  # of one participant
_URI_CHARS_MAX: Final = 4_096


class Interests:
    """To the server we are one client: it hears of the first who wants something, and when nobody does any more."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, dict[str, None]] = {}
        self._levels: dict[str, Level] = {}

    @property
    def uris(self) -> tuple[str, ...]:
        """All that anyone is subscribed to, each once."""
        return tuple({uri: None for uris in self._subscriptions.values() for uri in uris})

    @property
    def level(self) -> Level | None:
        """The least severe that anyone wants; None: nobody said."""
        return min(self._levels.values(), key=_LEVELS.index, default=None)

    def is_wanted(self, uri: str) -> bool:
        return any(uri in uris for uris in self._subscriptions.values())

    def subscribe(self, who: str, uri: str) -> None:
        self._subscriptions.setdefault(who, {})[uri] = None

    def unsubscribe(self, who: str, uri: str) -> None:
        uris = self._subscriptions.get(who, {})
        uris.pop(uri, None)
        if not uris:
            self._subscriptions.pop(who, None)

    def subscribers(self, uri: str) -> tuple[str, ...]:
        """Who wants to know of a change here; what is below a URI belongs to it, as a server may see it."""
        exact = tuple(who for who, uris in self._subscriptions.items() if uri in uris)
        return exact or tuple(
            who
            for who, uris in self._subscriptions.items()
            if any(uri.startswith(f"{above.rstrip('/')}/") for above in uris)
        )

    def listeners(self, level: Any, callers: tuple[str, ...]) -> tuple[str, ...]:
        """Who gets a line of the log: who said how severe it must be, and of the callers also who did not."""
        if level not in _LEVELS:
            return ()
        severity = _LEVELS.index(level)
        wanted = {who: _LEVELS.index(least) for who, least in self._levels.items()}
        return tuple(
            who
            for who in {**dict.fromkeys(wanted), **dict.fromkeys(callers)}
            if severity >= wanted.get(who, _DEFAULT)
        )

    def level_of(self, who: str) -> Level | None:
        return self._levels.get(who)

    def set_level(self, who: str, level: Level | None) -> None:
        if level is None:
            self._levels.pop(who, None)
        else:
            self._levels[who] = level

    def forget(self, who: str) -> tuple[str, ...]:
        """Somebody left. Returns the URIs that nobody wants any more."""
        self._levels.pop(who, None)
        left = self._subscriptions.pop(who, {})
        return tuple(uri for uri in left if not self.is_wanted(uri))

    def checked_uri(self, who: str, params: dict[str, Any]) -> str:
        """
        Raises:
            RpcError: no URI, too long a one, or too many.
        """
        uri = params.get("uri")
        if not isinstance(uri, str) or not uri:
            raise RpcError(_INVALID_PARAMS, "params: expected a `uri`")
        if len(uri) > _URI_CHARS_MAX:
            raise RpcError(_INVALID_PARAMS, f"a URI of more than {_URI_CHARS_MAX} characters")
        if len(self._subscriptions.get(who, ())) >= _SUBSCRIPTIONS_MAX:
            raise RpcError(_INVALID_PARAMS, f"more than {_SUBSCRIPTIONS_MAX} subscriptions")
        return uri

    def checked_level(self, params: dict[str, Any]) -> Level:
        """
        Raises:
            RpcError: no such level.
        """
        level = params.get("level")
        if level not in _LEVELS:
            raise RpcError(_INVALID_PARAMS, f"params: expected a `level`, one of {', '.join(_LEVELS)}")
        return _LEVELS[_LEVELS.index(level)]
