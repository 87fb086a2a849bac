"""Resources that hosts want to hear of: subscribed to at the participant once, however many hosts there are."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Self

from msgspec import UNSET

from mew.client.client import Client
from mew.client.errors import MewError, RpcError
from mew.mcp_bridge.host.offers.discovery import OfferKind
from mew.mcp_bridge.host.offers.offers import HostOffers
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import McpRequest, Presence
from mew.protocol.visible import named, visible

from .history import is_history
from .settings import HostSettings

__all__ = ["HostSubscriptions"]

_log = logging.getLogger(__name__)

_SUBSCRIBE_S: Final = 10.0
_SUBSCRIPTIONS_MAX: Final = 10_000
_HISTORY_EVERY_S: Final = 1.0
_NOT_FOUND: Final = -32002
_UPDATED: Final = "notifications/resources/updated"


class HostSubscriptions:
    """`updated` is told the URI, as hosts have it, of what changed. A context: inside, it listens."""

    def __init__(
        self, me: Client, settings: HostSettings, offers: HostOffers, updated: Callable[[str], None]
    ) -> None:
        self._me = me
        self._takes_part = settings.takes_part
        self._offers = offers
        self._updated = updated
        self._wanted: Counter[str] = Counter()
        self._history_due: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._me.connection.listen(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self._me.connection.unlisten(self._listen)
        if self._history_due is not None:
            self._history_due.cancel()

    async def add(self, uri: str) -> None:
        """One more host wants it.

        Raises:
            RpcError: there is no such resource, or the participant says no.
            Absent, Unanswered, Refused, Disconnected: as `request`.
        """
        if len(self._wanted) >= _SUBSCRIPTIONS_MAX:
            raise RpcError(_NOT_FOUND, f"more than {_SUBSCRIPTIONS_MAX:,} subscriptions")
        self._wanted[uri] += 1
        try:
            if self._wanted[uri] == 1:
                await self._say("resources/subscribe", uri)
        except BaseException:
            self._forget(uri)
            raise

    async def remove(self, uri: str) -> None:
        """One host wants it no longer."""
        if self._forget(uri):
            try:
                await self._say("resources/unsubscribe", uri)
            except MewError:
                return  # what is still told is told to nobody

    def _forget(self, uri: str) -> bool:
        """Whether nobody wants it now, and somebody did."""
        if uri not in self._wanted:
            return False
        self._wanted[uri] -= 1
        if self._wanted[uri] > 0:
            return False
        del self._wanted[uri]
        return True

    async def _say(self, method: str, uri: str) -> None:
        if self._is_history(uri):
            return
        meant = self._offers.meant(OfferKind.RESOURCES, uri)
        if meant is None:
            raise RpcError(_NOT_FOUND, f"no resource {visible(uri)}", {"uri": uri})
        participant, own = meant
        await self._me.request(participant, method, {"uri": own}, timeout_s=_SUBSCRIBE_S)

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if not self._wanted:
            return
        match payload:
            case McpRequest(method=method, id=request_id, params=dict(params)):
                if method == _UPDATED and request_id is UNSET and isinstance(params.get("uri"), str):
                    self._heard(envelope, params["uri"])
            case Presence(event="join", participant=participant):
                self._renew(participant.id)
        if any(map(self._is_history, self._wanted)) and self._history_due is None:
            loop = asyncio.get_running_loop()
            self._history_due = loop.call_later(_HISTORY_EVERY_S, self._history_changed)

    def _heard(self, envelope: Envelope, uri: str) -> None:
        outward = self._offers.uris.outward(envelope.sender, uri)
        if outward in self._wanted and (not envelope.to or self._me.id in envelope.to):
            self._updated(outward)

    def _history_changed(self) -> None:
        """Not for each envelope: some spaces are lively."""
        self._history_due = None
        for uri in filter(self._is_history, tuple(self._wanted)):
            self._updated(uri)

    def _is_history(self, uri: str) -> bool:
        """Where the space itself is not shown, one that is called so is a participant's as any other."""
        return self._takes_part and is_history(uri)

    def _renew(self, participant: str) -> None:
        """Who comes back may have forgotten it."""
        for uri in tuple(self._wanted):
            meant = None if self._is_history(uri) else self._offers.meant(OfferKind.RESOURCES, uri)
            if meant is not None and meant[0] == participant:
                self._me.connection.spawn(self._subscribe_again(participant, meant[1]))

    async def _subscribe_again(self, participant: str, uri: str) -> None:
        try:
            await self._me.request(participant, "resources/subscribe", {"uri": uri}, timeout_s=_SUBSCRIBE_S)
        except MewError as error:
            _log.warning("%s does not tell of %s: %s", named(participant), visible(uri), visible(str(error)))
