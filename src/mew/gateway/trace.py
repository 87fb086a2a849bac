"""`--trace FILE`: a JSON line for each envelope received, refused and delivered. Costs nothing when off."""

import asyncio
import logging
import os
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mew.protocol.envelope import ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.json import encode_json
from mew.space import Audiences, RefusalDetails

__all__ = ["Trace"]

_log = logging.getLogger(__name__)


class Trace:
    """Trace headers and missing capabilities; never payloads or tokens.

    Flushes once per pass of the event loop. A write error ends the trace and nothing else.
    """

    def __init__(self, file: Path) -> None:
        """Open the file for appending.

        Raises:
            OSError: it cannot be opened.
        """
        self._file = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
        self._lines: list[bytes] = []
        self._ended = False

    def received(self, space: str, envelopes: Envelopes) -> None:
        for place in range(len(envelopes)):
            self._write("received", space, **_header(envelopes, place))

    def refused(
        self, space: str, who: ParticipantId, envelope_id: str, kind: str, refused: RefusalDetails
    ) -> None:
        lacked = {} if refused.lacked is None else {"lacked": refused.lacked}
        self._write("refused", space, id=envelope_id, sender=who, kind=kind, error=refused.refusal, **lacked)

    def delivered(
        self, space: str, envelopes: Envelopes, only: Audiences | None, members: Collection[ParticipantId]
    ) -> None:
        for place in range(len(envelopes)):
            audience = None if only is None else only[place]
            to = [who for who in members if audience is None or who in audience]
            self._write("delivered", space, delivered_to=to, **_header(envelopes, place))

    def close(self) -> None:
        self._flush()
        self._end()

    def _write(self, event: str, space: str, **fields: Any) -> None:
        if self._ended:
            return
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        line = {"at": datetime.now(UTC), "event": event, "space": space, **fields}
        self._lines.append(encode_json(line) + b"\n")

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if self._ended or not lines:
            return
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError as error:
            _log.error("trace ended: the file cannot be written", extra={"error": error.strerror})
            self._end()

    def _end(self) -> None:
        self._ended = True
        with suppress(OSError):  # what could not be written is tried once more, and has been told of
            self._file.close()


def _header(envelopes: Envelopes, place: int) -> dict[str, Any]:
    return {
        "id": envelopes.ids[place],
        "sender": envelopes.senders[place],
        "to": envelopes.to[place],
        "kind": envelopes.kinds[place],
        "correlation_id": envelopes.correlation_ids[place],
    }
