"""PURE. Pagination cursors: positions between delivered envelopes.

A cursor looks like an id of the gateway's, so no envelope of a participant can have it.
"""

import re
from typing import Final, NamedTuple

from mew.space.state import GATEWAY_ID_PREFIX

__all__ = ["Cursor", "parse_cursor"]

_EPOCH: Final = "at"  # no life of a space is called so
_CURSOR: Final = re.compile(
    rf"{GATEWAY_ID_PREFIX}{_EPOCH}(?:_([0-9a-f]{{1,16}}))?-(\d{{1,18}})\.(\d{{1,9}})", re.ASCII
)


class Cursor(NamedTuple):
    """Before the envelope that is the `n`-th, from 0 on, of those delivered because of the entry `seq`."""

    seq: int
    n: int

    def text(self, life: str = "") -> str:
        """What goes into `after` or `before` to go on from there.

        `life` names the process that numbered the entries, if they end with it.
        """
        return f"{GATEWAY_ID_PREFIX}{_EPOCH}{'_' if life else ''}{life}-{self.seq}.{self.n}"


def parse_cursor(text: str, life: str = "") -> Cursor | None:
    """The position that a text stands for; None: it is the id of an envelope, or a cursor of another life."""
    found = _CURSOR.fullmatch(text)
    if found is None or (found[1] or "") != life:
        return None
    return Cursor(int(found[2]), int(found[3]))
