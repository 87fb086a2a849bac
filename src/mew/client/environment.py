"""Where a program is to connect that was not told: what whoever started it says in its environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Address", "address"]


class Address(NamedTuple):
    """Where to connect, and as whom."""

    url: str
    space: str | None
    token: str | Path | None
    participant: str | None = None


def address(
    url: str | None,
    space: str | None,
    token: str | Path | None,
    participant: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """What was given; without a URL, what is missing comes from `MEW_GATEWAY`, `MEW_SPACE`, `MEW_AS`, and
    `MEW_TOKEN_FILE` or `MEW_TOKEN`, as `mew up` sets them.

    Raises:
        ValueError: there is no URL, and none in the environment.
    """
    if url is not None:
        return Address(url, space, token, participant)
    there = environ.get("MEW_GATEWAY")
    if not there:
        raise ValueError("no URL was given, and MEW_GATEWAY is not set: give one, or start it with 'mew up'")
    if token is None:
        file = environ.get("MEW_TOKEN_FILE")
        token = Path(file) if file else environ.get("MEW_TOKEN")
    return Address(there, space or environ.get("MEW_SPACE"), token, participant or environ.get("MEW_AS"))
