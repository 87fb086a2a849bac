"""The checks of participants, in the order in which they are played; importing them registers them."""

# ruff: noqa: I001 - that order: whom shutdown ends does not come back, and audits look at all that was sent
from . import (
    connection,
    requests,
    validation,
    control,
    memory,
    chats,
    reasoning,
    proposals,
    streams,
    shutdown,
    audits,
)

__all__ = [
    "audits",
    "chats",
    "connection",
    "control",
    "memory",
    "proposals",
    "reasoning",
    "requests",
    "shutdown",
    "streams",
    "validation",
]
