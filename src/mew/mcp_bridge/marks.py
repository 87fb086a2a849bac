"""PURE. The marks that are ours alone (decision 0010, 7): what anybody else says under such a name is taken out."""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["CHANGED", "unmarked", "unmarked_fields"]

CHANGED: Final = "mew/changed"
_OURS: Final = "mew/"


def unmarked(said: dict[str, Any]) -> dict[str, Any]:
    """A result, a notification's params, or something that is listed, without our marks in its `_meta`."""
    meta = said.get("_meta")
    if not isinstance(meta, dict) or not any(name.startswith(_OURS) for name in meta):
        return said
    return {**said, "_meta": unmarked_fields(meta)}


def unmarked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A `_meta`, or the `data` of an error, without our marks."""
    return {name: value for name, value in fields.items() if not name.startswith(_OURS)}
