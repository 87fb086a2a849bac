"""PURE. Members of a TOML text read, set and removed; comments and everything else stay as they are."""

from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .jsonc import InvalidJson

__all__ = ["toml_member", "toml_with", "toml_without"]


def toml_member(text: str, path: Sequence[str]) -> Any:
    """The value at the path; None if there is none.

    Raises:
        InvalidJson: the text is no TOML.
    """
    at: Any = _read(text).unwrap()
    for key in path:
        at = at.get(key) if isinstance(at, dict) else None
    return at


def toml_with(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at the path; tables on the way are made.

    Raises:
        InvalidJson: the text is no TOML, or something that is no table is in the way.
    """
    document = _read(text)
    at: Any = document
    for key in path[:-1]:
        if key not in at:
            at[key] = tomlkit.table(is_super_table=key == path[0])
        at = at[key]
        if not isinstance(at, dict):
            raise InvalidJson(f"{key!r} is no table")
    at[path[-1]] = value
    return tomlkit.dumps(document)


def toml_without(text: str, path: Sequence[str]) -> str:
    """The text without what is at the path.

    Raises:
        InvalidJson: the text is no TOML.
    """
    document = _read(text)
    at: Any = document
    for key in path[:-1]:
        at = at.get(key) if isinstance(at, dict) else None
    if isinstance(at, dict) and path[-1] in at:
        del at[path[-1]]
    return tomlkit.dumps(document)


def _read(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidJson(f"not TOML: {error}") from None
