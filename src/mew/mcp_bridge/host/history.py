"""What was said in the space, for a host: as a resource, `mew:history`, and for its model, as a tool."""

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from msgspec import UNSET

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.protocol.envelope import Envelope
from mew.protocol.errors import InvalidCapability
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind

__all__ = ["history_resource", "history_template", "is_history", "read_history", "recent"]

_HISTORY: Final = "mew:history"
_COUNT: Final = 50
_COUNT_MAX: Final = 1_000
_BYTES_MAX: Final = 256 * 1024
_ASKED: Final = ("count", "kind", "participant")
_INVALID_PARAMS: Final = -32602
_JSON: Final = "application/json"
_PAYLOAD_BYTES_MAX: Final = 64 * 1024
_PRIVATE: Final = frozenset({Kind.INVITE_ACK, Kind.WELCOME})  # the former has a token in it


def history_resource(space: str) -> dict[str, Any]:
    """As it is listed."""
    return {
        "uri": _HISTORY,
        "name": "history",
        "title": f"What was said in the space {space}",
        "description": f"The last {_COUNT} envelopes that everyone in the space was shown, oldest first.",
        "mimeType": _JSON,
    }


def history_template(space: str) -> dict[str, Any]:
    """The same, by how many and of which kind."""
    return {
        "uriTemplate": f"{_HISTORY}{{?count,kind,participant}}",
        "name": "history",
        "title": f"What was said in the space {space}, some of it",
        "description": (
            f"The last `count` envelopes (at most {_COUNT_MAX:,}) of a `kind`, such as `chat` or `mcp/*`, "
            "that `participant` sent."
        ),
        "mimeType": _JSON,
    }


def is_history(uri: str) -> bool:
    return uri.partition("?")[0] == _HISTORY


async def read_history(me: Client, uri: str) -> dict[str, Any]:
    """The result of reading it.

    Raises:
        RpcError: the URI asks for what there is not.
        ConnectError, Disconnected: the gateway cannot be asked.
    """
    asked = parse_qs(urlsplit(uri).query, keep_blank_values=False)
    for name, values in asked.items():
        if name not in _ASKED or len(values) != 1:
            raise RpcError(_INVALID_PARAMS, f"{_HISTORY} takes {', '.join(_ASKED)}, each once")
    count = asked.get("count", [str(_COUNT)])[0]
    if not (count.isascii() and count.isdecimal() and len(count) < 6):
        raise RpcError(_INVALID_PARAMS, "count is a number")
    found = await recent(me, int(count), _one(asked, "kind"), _one(asked, "participant"))
    return {"contents": [{"uri": uri, "mimeType": _JSON, "text": encode_json(found).decode()}]}


async def recent(
    me: Client, count: int = _COUNT, kind: str | None = None, participant: str | None = None
) -> list[dict[str, Any]]:
    """The last so many envelopes that fit, oldest first, of about 256 KiB in all; a long payload is told by its size.

    Raises:
        RpcError: the kind is no pattern.
        ConnectError, Disconnected: the gateway cannot be asked.
    """
    limit = max(1, min(count, _COUNT_MAX))
    try:
        history = me.history(limit=limit, kind=kind, participant=participant, newest_first=True)
    except InvalidCapability as error:
        raise RpcError(_INVALID_PARAMS, f"kind: {error}") from None
    found: list[dict[str, Any]] = []
    size_bytes = 0
    async for envelope in history:
        if envelope.kind in _PRIVATE:
            continue
        told = _told(envelope)
        size_bytes += len(encode_json(told))
        if size_bytes > _BYTES_MAX and found:
            break
        found.append(told)
    return found[::-1]


def _told(envelope: Envelope) -> dict[str, Any]:
    size = len(bytes(envelope.payload))
    payload = {"payload": envelope.content} if size <= _PAYLOAD_BYTES_MAX else {"payload_bytes": size}
    told = {
        "id": envelope.id,
        "ts": None if envelope.ts is UNSET else envelope.ts.isoformat(),
        "from": envelope.sender,
        "to": list(envelope.to),
        "kind": envelope.kind,
        "correlation_id": list(envelope.correlation_id),
        **payload,
    }
    return {name: value for name, value in told.items() if value not in (None, [])}


def _one(asked: dict[str, list[str]], name: str) -> str | None:
    return asked[name][0] if name in asked else None
