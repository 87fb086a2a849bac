"""Ids of envelopes that nobody can guess: who could, might use the next one first."""

import secrets
from collections.abc import Iterator
from typing import Final

__all__ = ["fresh_ids"]

_ID_BYTES: Final = 16
_AT_ONCE: Final = 256  # chance has its price


def fresh_ids() -> Iterator[str]:
    """One after another, without end."""
    while True:
        several = secrets.token_hex(_ID_BYTES * _AT_ONCE)
        for start in range(0, len(several), 2 * _ID_BYTES):
            yield several[start : start + 2 * _ID_BYTES]
