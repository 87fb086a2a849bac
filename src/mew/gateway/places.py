"""PURE. Places in what was shown: between two envelopes, whether there is one of them to name or not.

As a cursor a place looks like an id of the gateway's, so no envelope of a participant can have it.
"""

import re
from typing import Final, NamedTuple

from mew.space.state import GATEWAY_ID_PREFIX

__all__ = ["Place", "cursor", "place_in"]

_EPOCH: Final = "at"  # no life of a space is called so
_CURSOR: Final = re.compile(
    rf"{GATEWAY_ID_PREFIX}{_EPOCH}-(\d{{1,18}})\.(\d{{1,9}})(?:-([0-9a-f]{{1,16}}))?", re.ASCII
)


class Place(NamedTuple):
    """Before the envelope that is the `n`-th, from 0 on, of those that an entry showed."""

    seq: int
    n: int


def cursor(place: Place, life: str = "") -> str:
    """What goes into `after` or `before` to go on from there.

    `life` names the process whose entries are counted so, where they end with it.
    """
    written = f"{GATEWAY_ID_PREFIX}{_EPOCH}-{place.seq}.{place.n}"
    return f"{written}-{life}" if life else written


def place_in(written: str, life: str = "") -> Place | None:
    """The place that a cursor stands for; None: it is the id of an envelope, or a cursor of another life."""
    found = _CURSOR.fullmatch(written)
    if found is None or (found[3] or "") != life:
        return None
    return Place(int(found[1]), int(found[2]))
