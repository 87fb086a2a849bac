"""Envelopes for what a client reads."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import UNSET, Raw

from mew.protocol.envelope import PROTOCOL, Envelope
from mew.protocol.json import encode_json

__all__ = ["AT", "after", "envelope"]

AT = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def envelope(
    kind: str,
    sender: str,
    payload: Any = None,
    *,
    id: str = "e0",
    to: str | Sequence[str] = (),
    correlation_id: str | Sequence[str] = (),
    context: str | None = None,
) -> Envelope:
    """An envelope; `payload` is JSON, or the bytes of it. One name may stand for a list of one."""
    raw = payload if isinstance(payload, bytes) else encode_json({} if payload is None else payload)
    return Envelope(
        protocol=PROTOCOL,
        id=id,
        sender=sender,
        to=(to,) if isinstance(to, str) else tuple(to),
        kind=kind,
        correlation_id=(correlation_id,) if isinstance(correlation_id, str) else tuple(correlation_id),
        context=UNSET if context is None else context,
        payload=Raw(raw),
    )
