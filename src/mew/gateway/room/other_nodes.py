"""The other nodes that serve a space, as the space itself knows them: by the names of their connections."""

from hashlib import sha256
from typing import Final

from mew.journal.port import SharedJournal
from mew.space import Space

__all__ = ["OtherNodes"]

_STEP_S: Final = 0.25
_LEAST_S: Final = 0.05  # a timer that rings a little early must not ring all the time


class OtherNodes:
    """Who else serves a space, over a journal that is shared with them."""

    def __init__(self, journal: SharedJournal, space: Space) -> None:
        self.journal = journal
        self.is_caught_up = False
        """Whether what is decided now was received before the last commit began: nothing earlier is unknown here."""
        self._space = space
        self._prefix = f"{journal.node}."
        self._looked_at = -1
        self._are_connected = False

    @property
    def may_know_better(self) -> bool:
        """Whether an entry that is not known here yet could turn a refusal into its opposite."""
        return self.journal.in_flight or not self.is_caught_up

    def are_connected(self) -> bool:
        """Whether somebody is connected to another node."""
        state = self._space.state
        if state.changed_at != self._looked_at:
            self._looked_at = state.changed_at
            self._are_connected = any(not one.startswith(self._prefix) for one in state.connections)
        return self._are_connected

    def timer_delay_s(self) -> float:
        """How long to leave it to other nodes to say that a moment has come; no two nodes wait equally long."""
        state = self._space.state
        names = {one.partition(".")[0] for one in state.connections} - {self.journal.node}
        rank = sum(_order(state.rules.id, name) < _order(state.rules.id, self.journal.node) for name in names)
        return _LEAST_S + _STEP_S * rank


def _order(space: str, node: str) -> bytes:
    return sha256(f"{space} {node}".encode()).digest()
