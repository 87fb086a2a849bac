"""`--trace FILE`: a JSON line for each envelope received, refused and delivered. Costs nothing when off."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mew.protocol.codec import encode_json
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import Refusal
from mew.space import Refused

__all__ = ["Trace"]


class Trace:
    """Headers only: a trace holds no payload and no token."""

    def __init__(self, file: Path) -> None:
        self._file = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")

    def received(self, space: str, envelope: Envelope) -> None:
        self._write("received", space, **_header(envelope))

    def refused(self, space: str, who: ParticipantId, envelope_id: str, kind: str, refused: Refused) -> None:
        lacking = {"lacked": kind} if refused.refusal is Refusal.CAPABILITY_VIOLATION else {}
        self._write(
            "refused",
            space,
            id=envelope_id,
            sender=who,
            kind=kind,
            error=refused.refusal,
            message=refused.message,
            **lacking,
        )

    def delivered(self, space: str, envelope: Envelope, to: list[ParticipantId]) -> None:
        self._write("delivered", space, delivered_to=to, **_header(envelope))

    def close(self) -> None:
        self._file.close()

    def _write(self, event: str, space: str, **fields: Any) -> None:
        line = {"at": datetime.now(UTC), "event": event, "space": space, **fields}
        self._file.write(encode_json(line) + b"\n")
        self._file.flush()


def _header(envelope: Envelope) -> dict[str, Any]:
    return {
        "id": envelope.id,
        "sender": envelope.sender,
        "to": envelope.to,
        "kind": envelope.kind,
        "correlation_id": envelope.correlation_id,
    }
