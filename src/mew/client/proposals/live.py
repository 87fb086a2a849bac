"""Keeps the book of a connection current."""

from datetime import UTC, datetime
from typing import Any, Final

from mew.client.wire.connection import Connection
from mew.proposals.book import ProposalBook
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

__all__ = ["keep_current"]

_HEARD: Final = (
    Kind.MCP_PROPOSAL,
    Kind.MCP_REQUEST,
    Kind.MCP_RESPONSE,
    Kind.MCP_REJECT,
    Kind.MCP_WITHDRAW,
    Kind.CHAT,
)


def keep_current(connection: Connection, book: ProposalBook) -> None:
    """Apply every envelope that arrives from now on; listeners added later find the book up to date."""

    def listen(envelope: Envelope, payload: Any) -> None:
        book.apply_all(envelope, datetime.now(UTC))

    connection.listen(listen, _HEARD)
