"""All proposals that are known: those made before one came, as far as the gateway keeps them, and those that come."""

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET

from mew.cli.errors import CommandError, ExitCode
from mew.cli.render.ids import matching, pick_id
from mew.client.client import Client
from mew.client.errors import ConnectError, MewError
from mew.client.mcp.requests import Requests, operation
from mew.client.proposals.review import Review, Reviews
from mew.client.proposals.tracker import keep_current
from mew.proposals.book import ProposalBook
from mew.proposals.record import ProposalRecord, names_in
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind
from mew.protocol.visible import named

__all__ = ["ReviewSession"]

_PAST_MAX: Final = 2_000
_PAST_BYTES_MAX: Final = 64 << 20
_MEANWHILE_MAX: Final = 16_384
_LISTING_S: Final = 3.0
_HEARD: Final = (
    Kind.MCP_PROPOSAL,
    Kind.MCP_REQUEST,
    Kind.MCP_RESPONSE,
    Kind.MCP_REJECT,
    Kind.MCP_WITHDRAW,
    Kind.CHAT,
)


class ReviewSession:
    """Made by `ReviewSession.open`; from then on, `book` is kept current."""

    def __init__(self, me: Client, book: ProposalBook, via: str) -> None:
        self.me = me
        self.book = book
        keep_current(me.connection, book)
        self._reviews = Reviews(me.connection, book, Requests(me.connection, me.streams), via=via)

    @classmethod
    async def open(cls, me: Client, about: str = "", *, via: str = "terminal") -> "ReviewSession":
        """With what was said of proposals in the last 2,000 envelopes of MCP, and with everything `about` one.

        `via` is how decisions are made here, for the record.

        Raises:
            ConnectError: the gateway does not tell.
        """
        meanwhile: deque[Envelope] = deque(maxlen=_MEANWHILE_MAX)

        def listen(envelope: Envelope, payload: Any) -> None:
            meanwhile.append(envelope)

        me.connection.listen(listen, _HEARD)
        try:
            past = [*await _about(me, about), *await _last(me)]
        finally:
            me.connection.unlisten(listen)
        book = ProposalBook()
        for envelope in (*past, *meanwhile):
            book.apply_all(envelope, datetime.now(UTC) if envelope.ts is UNSET else envelope.ts)
        return cls(me, book, via)  # which listens itself: nothing was waited for in between

    def waiting(self) -> list[ProposalRecord]:
        """What one can still decide: open and not rejected by oneself; those whose proposer has left come last."""
        mine = [
            record
            for record in self.book.open(datetime.now(UTC))
            if all(rejection.by != self.me.id for rejection in record.rejections)
        ]
        return sorted(mine, key=self.has_left)

    def has_left(self, record: ProposalRecord) -> bool:
        """Whether its proposer is no longer here to use the result."""
        return record.proposer not in self.me.participants

    async def look_at_tools(self, records: Iterable[ProposalRecord]) -> None:
        """See what the tools are that would be called, where nobody asked for it before: a moment is all it takes."""
        targets = {
            name: None
            for record in records
            if record.tool_name is not None
            for name in names_in(record.target)
            if self.book.catalogue.tool(name, record.tool_name) is None and name in self.me.participants
        }
        listing = operation("tools/list", {})
        may = [name for name in targets if self.me.can_send(Kind.MCP_REQUEST, listing, to=name)]

        async def look(name: str) -> None:
            with suppress(MewError, TimeoutError):
                async with asyncio.timeout(_LISTING_S):
                    await self.me.tools(name)

        async with asyncio.TaskGroup() as tasks:
            for name in may:
                tasks.create_task(look(name))

    def hindrance(self, record: ProposalRecord) -> str:
        """Why one could not approve it now; nothing where one could."""
        if not record.is_open(datetime.now(UTC)):
            return ""
        if record.proposer == self.me.id:
            return "it is yours, for somebody else to decide"
        targets = names_in(record.target)
        if not self._may_ask(record, targets or tuple(self.me.participants)):
            return "you may not approve it, for you may not do it yourself"
        away = [name for name in targets if name not in self.me.participants]
        if away:
            return f"{' and '.join(map(named, away))} is not here to do it"
        return f"! its proposer {named(record.proposer)} has left" if self.has_left(record) else ""

    def check_may_approve(self, record: ProposalRecord, target: str | None) -> None:
        """Say no before anybody is asked.

        Raises:
            CommandError: one may not do oneself what is proposed.
        """
        targets = names_in(record.target) or (() if target is None else (target,))
        if not self._may_ask(record, targets or tuple(self.me.participants)):
            what = f"{Kind.MCP_REQUEST}:{record.method}" + (
                f":{record.tool_name}" if record.tool_name else ""
            )
            raise CommandError(
                f"you may not do this yourself, so you cannot approve it: it takes {what}", ExitCode.NO
            )

    def _may_ask(self, record: ProposalRecord, targets: Iterable[str]) -> bool:
        payload = {"jsonrpc": "2.0", "id": 0, **operation(record.method, record.params or None)}
        return any(self.me.can_send(Kind.MCP_REQUEST, payload, to=target) for target in targets)

    def review(self, written: str) -> Review:
        """The proposal that is meant, to decide it.

        Raises:
            CommandError: there is none, or several could be meant.
        """
        return self._reviews.review(self.find(written).id)

    def find(self, written: str) -> ProposalRecord:
        """The proposal whose id begins or ends so; if several do, the one that is open.

        Raises:
            CommandError: there is none, or several could be meant.
        """
        now = datetime.now(UTC)
        fits = [self.book[id] for id in matching(written, (one.id for one in self.book))]
        meant = [one.id for one in fits if one.is_open(now)] or [one.id for one in fits]
        unknown = f"no proposal {written!r} is known here; 'mew proposals' lists those there are"
        return self.book[pick_id(written, meant, what="proposal", unknown=unknown)]


async def _last(me: Client) -> list[Envelope]:
    newest_first: list[Envelope] = []
    size_bytes = 0
    async for envelope in me.history(kind="mcp/*", limit=_PAST_MAX, newest_first=True):
        newest_first.append(envelope)
        size_bytes += memoryview(envelope.payload).nbytes
        if size_bytes > _PAST_BYTES_MAX:
            break
    return newest_first[::-1]


async def _about(me: Client, id: str) -> list[Envelope]:
    """What hangs together with an envelope; nothing where it is not the id of one."""
    if not id:
        return []
    try:
        return await me.history(correlation=id).list()
    except ConnectError as error:
        if error.status is None:
            raise
        return []
