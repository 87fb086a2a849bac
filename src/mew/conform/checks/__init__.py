"""The checks of gateways, a module for each part of the specification; importing them registers them."""

from . import (
    access,
    capabilities,
    control,
    delivery,
    envelopes,
    grants,
    http_api,
    members,
    patterns,
    presence,
    proposals,
    senders,
    spaces,
    streams,
    talk,
)

__all__ = [
    "access",
    "capabilities",
    "control",
    "delivery",
    "envelopes",
    "grants",
    "http_api",
    "members",
    "patterns",
    "presence",
    "proposals",
    "senders",
    "spaces",
    "streams",
    "talk",
]
