"""Tells the stages of a proposal to those who wait for it: each once, and none after the last."""

import logging
from weakref import WeakSet

from mew.client.wire.connection import Connection
from mew.client.wire.feed import Feed

from .stages import OnStage, Stage

__all__ = ["Telling"]

_log = logging.getLogger(__name__)


class Telling:
    """Of one proposal."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._told: Stage | None = None
        self._watchers: list[OnStage] = []
        self._feeds: WeakSet[Feed[Stage]] = WeakSet()

    def watch(self, watcher: OnStage) -> None:
        """Tell it each stage from now on."""
        self._watchers.append(watcher)

    def stages(self, now: Stage) -> Feed[Stage]:
        """The present stage and those that follow, for as long as somebody holds the feed."""
        feed: Feed[Stage] = self._connection.feed()
        feed.offer(now)
        if now.outcome is None:
            self._feeds.add(feed)
        else:
            feed.close()
        return feed

    def tell(self, stage: Stage) -> None:
        """It is at this stage now. One who fails at being told keeps no other from it."""
        if stage == self._told or (self._told is not None and self._told.outcome is not None):
            return
        self._told = stage
        for watcher in self._watchers:
            try:
                watcher(stage)
            except Exception:
                _log.exception("on_stage failed")
        for feed in tuple(self._feeds):
            feed.offer(stage)
            if stage.outcome is not None:
                feed.close()
