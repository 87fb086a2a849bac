"""PURE. Ids as people see and type them: the first eight characters are shown, either end of an id may be typed."""

from collections.abc import Iterable
from typing import Final

from mew.protocol.visible import visible

__all__ = ["ID_CHARS", "PART_CHARS_MIN", "matching", "short"]

ID_CHARS: Final = 8
"""How much of an id every surface shows."""
PART_CHARS_MIN: Final = 3
"""How much of an id somebody must type."""


def short(id: str) -> str:
    """The name of an envelope for people: the first characters of its id."""
    return visible(id[:ID_CHARS])


def matching(written: str, ids: Iterable[str]) -> list[str]:
    """The ids that somebody may mean: those that begin or end with `written`, with or without a `#` before it.

    The whole id, if it is longer than what is shown of one, means that id alone. A shorter one does not: participants
    choose their ids, and one could be the name under which another's proposal is shown.
    """
    wanted, known = written.removeprefix("#"), list(dict.fromkeys(ids))
    if wanted in known and len(wanted) > ID_CHARS:
        return [wanted]
    if len(wanted) < PART_CHARS_MIN:
        return [id for id in known if id == wanted]
    return [id for id in known if id.startswith(wanted) or id.endswith(wanted)]
