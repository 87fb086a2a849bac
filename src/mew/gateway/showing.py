"""What was accepted: into the history, and on its way to those it is for."""

from mew.space import Space

from .deliveries import text_frames
from .history import History
from .outbox import Outboxes
from .pages import Record
from .ports import Counts
from .trace import Trace
from .websocket import text_frame

__all__ = ["Showing"]


class Showing:
    """For one room. Nothing leaves before its outboxes are flushed."""

    def __init__(
        self,
        space: Space,
        history: History,
        outboxes: Outboxes,
        counts: Counts,
        trace: Trace | None,
    ) -> None:
        self._space = space
        self._history = history
        self._outboxes = outboxes
        self._counts = counts
        self._trace = trace

    def show(self, record: Record) -> None:
        self._history.append(record)
        frame = text_frame(record.raw)
        if record.only is None:
            self._counts.delivered += len(self._outboxes)
            self._outboxes.to_all(frame)
        else:
            self._counts.delivered += self._outboxes.to(self._space.connections_of(record.only), frame)
        if self._trace is not None:
            state, only = self._space.state, record.only
            shown = [who for who in state.members if only is None or who in only]
            self._trace.delivered(state.rules.id, record.envelope, shown)

    def show_run(self, records: list[Record], *, addressed: bool) -> None:
        """Show these as one; not `addressed`: they are for everyone. Nothing of it is traced."""
        self._history.extend(records)
        if addressed:
            self._counts.delivered += self._outboxes.to_each(records, self._space.state.connected)
        else:
            self._counts.delivered += len(records) * len(self._outboxes)
            self._outboxes.to_all(text_frames(records))
