"""Envelopes that fit a filter, for who iterates over them."""

import weakref
from typing import Any

from mew.protocol.envelope import Envelope

from .connection import Connection
from .feed import Feed
from .filters import Filter

__all__ = ["subscribe"]


def subscribe(connection: Connection, wanted: Filter) -> Feed[Envelope]:
    """The envelopes from now on that fit, for as long as somebody holds the feed."""
    feed: Feed[Envelope] = connection.feed()
    held = weakref.ref(feed)

    def listen(envelope: Envelope, payload: Any) -> None:
        feed = held()
        if feed is None or feed.closed:
            connection.unlisten(listen)
        elif wanted.fits(envelope):
            feed.offer(envelope, memoryview(envelope.payload).nbytes)

    connection.listen(listen)
    return feed
