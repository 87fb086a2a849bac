"""The checks of participants, in the order in which they are played; importing them registers them."""

# ruff: noqa: I001 - that order: whom endings end does not come back, and audits look at all that was sent
from . import (
    standing,
    requests,
    contexts,
    validation,
    control,
    memory,
    compaction,
    chats,
    reasonings,
    proposals,
    fulfilling,
    streams,
    endings,
    audits,
)

__all__ = [
    "audits",
    "chats",
    "compaction",
    "contexts",
    "control",
    "endings",
    "fulfilling",
    "memory",
    "proposals",
    "reasonings",
    "requests",
    "standing",
    "streams",
    "validation",
]
