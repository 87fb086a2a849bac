"""How long something lasts, as people write it: 90, 90s, 15m, 2h, 1d."""

import re
from typing import Annotated, Final

import typer

from mew.cli.locate.journal import Failed

__all__ = ["Lasting", "seconds_of"]

Lasting = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="For how long: 90s, 15m, 2h or 1d; else for good.")
]

_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, None: 1}


def seconds_of(written: str | None) -> float | None:
    """So many seconds; None where nothing was written.

    Raises:
        Failed: it is no time.
    """
    if written is None:
        return None
    found = _TIME.fullmatch(written.strip())
    if found is None:
        raise Failed(f"--for {written!r} is no time; write 90s, 15m, 2h or 1d")
    return float(found[1]) * _SECONDS[found[2]]
