"""What was shown before, page after page: the gateway says where each goes on."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Raw

from mew.client.errors import ConnectError

from .transport import Transport

__all__ = ["Walk", "recall"]

_PAGE_ENVELOPES: Final = 500


class Walk:
    """One way through the past, in the order asked for. After an error it can go on where it was."""

    def __init__(
        self, transport: Transport, query: Mapping[str, str], *, limit: int | None = None, space: str = ""
    ) -> None:
        """`query` as in `GET /spaces/{space}/envelopes`, `limit` of all pages together."""
        self._transport = transport
        self._query = dict(query)
        self._left = limit
        self._space = space
        self.complete = True
        """Whether the gateway still had all that may have been asked for, as far as this came."""
        self.over = False

    async def page(self) -> Sequence[Raw]:
        """The next envelopes; there may be none on a page, until it is over.

        Raises:
            ConnectError: the gateway cannot be reached, or does not tell.
        """
        at_most = _PAGE_ENVELOPES if self._left is None else min(self._left, _PAGE_ENVELOPES)
        page = await self._transport.page({**self._query, "limit": str(at_most)}, self._space)
        envelopes = page.envelopes if self._left is None else page.envelopes[: self._left]
        if self._left is not None:
            self._left -= len(envelopes)
        self.complete = self.complete and page.complete
        where = "before" if self._query.get("order") == "desc" else "after"
        stands = page.next is not None and page.next == self._query.get(where)
        self.complete = self.complete and not stands
        self.over = page.next is None or stands or self._left == 0
        if page.next is not None:
            self._query[where] = page.next
        return envelopes


async def recall(transport: Transport, limit: int) -> list[Raw]:
    """The last envelopes of the space, oldest first; none where the gateway does not tell.

    Raises:
        ConnectError: the gateway cannot be reached.
    """
    walk = Walk(transport, {"order": "desc"}, limit=limit)
    newest_first: list[Raw] = []
    try:
        while not walk.over:
            newest_first += await walk.page()
    except ConnectError as error:
        if error.status is None:
            raise
        # another make of gateway, or one that will say at the door what is wrong
    return newest_first[::-1]
