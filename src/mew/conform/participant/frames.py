"""PURE. What a participant sent or was shown, frame by frame, and what is wrong with one that is no envelope."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

__all__ = ["Frame", "Way", "read_frame", "stream_of"]

MARK: Final = "#"
_NESTING_MAX: Final = 64


class Way(StrEnum):
    """Which way a frame went, as the participant sees it."""

    SENT = "sent"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `envelope` is None where it is none, and `fault` says why, unless it is a frame of a stream."""

    place: int
    way: Way
    at_s: float
    data: str | bytes
    envelope: dict[str, Any] | None = None
    fault: str = ""


def read_frame(place: int, way: Way, at_s: float, data: str | bytes) -> Frame:
    """The frame with what can be read of it."""
    if stream_of(data) is not None:
        return Frame(place, way, at_s, data)
    if isinstance(data, bytes):
        return Frame(place, way, at_s, data, fault="a binary frame that is no stream frame")
    try:
        value = json.loads(data, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Frame(place, way, at_s, data, fault=f"no JSON: {error}")
    if not isinstance(value, dict):
        return Frame(place, way, at_s, data, fault=f"no JSON object, but {_named(value)}")
    fault = "" if _depth(value) <= _NESTING_MAX else f"nested deeper than {_NESTING_MAX} levels"
    repeated = value.pop(_REPEATED, None)
    if repeated is not None:
        fault = f"the field {repeated!r} occurs twice"
    return Frame(place, way, at_s, data, value, fault)


def stream_of(data: str | bytes) -> tuple[str, bytes] | None:
    """The stream id and the data of `#id#data`; None where it is none."""
    raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if not raw.startswith(MARK.encode()):
        return None
    name, mark, content = raw[1:].partition(MARK.encode())
    return None if not mark else (name.decode(errors="replace"), content)


_REPEATED: Final = "\0repeated"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        fields[_REPEATED] = next(name for name in names if names.count(name) > 1)
    return fields


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not in JSON")


def _depth(value: Any) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, items), default=0) if isinstance(value, dict | list) else 0


def _named(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "an array" if isinstance(value, list) else "a string" if isinstance(value, str) else "a number"
