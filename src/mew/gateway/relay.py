"""Stream frames (§3.10.3): they pass by the log, but overtake no entry that came before them."""

from collections import deque
from collections.abc import Callable
from datetime import datetime

from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import stream_of
from mew.space import Refused, Space

from .intake import Intake
from .outbox import Outboxes
from .ports import Counts, Guest
from .websocket import binary_frame, text_frame

__all__ = ["Relay"]


class Relay:
    """Asks the space where a frame goes, and hands it to those outboxes unchanged."""

    def __init__(
        self,
        space: Space,
        intake: Intake,
        outboxes: Outboxes,
        counts: Counts,
        now: Callable[[], datetime],
        turn_away: Callable[[Guest, Refused], None],
    ) -> None:
        self._space = space
        self._intake = intake
        self._outboxes = outboxes
        self._counts = counts
        self._now = now
        self._turn_away = turn_away
        self.waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def take(self, guest: Guest, frame: bytes, *, text: bool, bytes_max: int) -> None:
        """A frame came. An entry on its way may change where it goes, so it waits for those."""
        if len(frame) > bytes_max:
            self._turn_away(guest, Refused(Refusal.TOO_LARGE, f"a frame may have {bytes_max} bytes"))
        elif self._intake.applied < self._intake.appended:
            self.waiting.append((self._intake.appended, lambda: self._forward(guest, frame, text=text)))
        else:
            self._forward(guest, frame, text=text)

    def catch_up(self) -> None:
        """Forward those that came before the next entry: a close sent behind a frame does not overtake it."""
        while self.waiting and self.waiting[0][0] <= self._intake.applied:
            self.waiting.popleft()[1]()

    def _forward(self, guest: Guest, frame: bytes, *, text: bool) -> None:
        try:
            route = self._space.route(self._now(), guest.who, stream_of(frame))
        except ProtocolError as error:
            route = Refused(error.refusal, str(error))
        if isinstance(route, Refused):
            self._turn_away(guest, route)
            return
        self._counts.frames += 1
        wrapped = text_frame(frame) if text else binary_frame(frame)
        own = self._space.connections_of((guest.who,))
        if guest.lenient:  # those clients expect to hear themselves
            own = [connection for connection in own if connection != guest.id]
        if route.targets is None:
            self._outboxes.to_all_but(own, wrapped)
        else:
            targets = self._space.connections_of(route.targets)
            self._outboxes.to((connection for connection in targets if connection not in own), wrapped)
