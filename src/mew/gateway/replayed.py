"""A recording that happens again in a space of its own, for who wants to watch.

Every entry keeps its number and its time, so the space decides as it did then, and the gateway's own envelopes have
the ids they had. Those who watch are not in the space: no entry tells of them.
"""

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from mew.log.base import LogUnavailable, Mark, Past
from mew.log.database import Damaged
from mew.log.memory import MemoryLog
from mew.protocol.codec import envelope_id_in
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.frames import MARK
from mew.protocol.json import encode_json
from mew.space import Answer, Configured, Entry, Event, Refused, Rules, Sent, TimePassed
from mew.space.presence import welcome
from mew.space.state import Invitation, SpaceState

from .ports import Accepted, Guest, Shell
from .room import Room
from .server import Gateway
from .settings import Config, Limits, ParticipantConfig, ServerConfig, SpaceConfig
from .tokens import token_path

__all__ = ["OBSERVER", "Stage"]

OBSERVER: Final = ParticipantId("_observer")
"""Who watches. No participant can have such an id, so none of a recording has it."""

_LOOPBACK: Final = "127.0.0.1"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_LIMITS: Final = Limits(history_envelopes=100_000, history_bytes=256 << 20)
_ONLY_WATCHING: Final = Refused(
    Refusal.NOT_A_MEMBER, "this is a recording: you can watch it, and send nothing"
)


class Stage:
    """A gateway on this machine with one space, to which happens what it is told. An async context.

    `token_file` has what an observer needs to connect; nobody else can.
    """

    def __init__(
        self,
        space: str,
        state: SpaceState,
        past: Iterable[Entry],
        *,
        folder: Path,
        port: int,
    ) -> None:
        """The space begins with this state, and with what has happened before anyone can watch.

        The token is kept in the folder.
        """
        self._log = _Recorded(state, past)
        config = _config(space, folder, port)
        self.token_file = token_path(config, space, OBSERVER)
        self._gateway = Gateway(config, {}, open_room=self._open_room, now=self._log.now)

    async def __aenter__(self) -> "Stage":
        await self._gateway.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._gateway.__aexit__(*exc)

    @property
    def url(self) -> str:
        return self._gateway.url

    def perform(self, entry: Entry) -> None:
        """It happens now."""
        self._log.put(entry)

    def _open_room(self, rules: Rules, limits: Limits, shell: Shell) -> Room:
        return _ReplayedRoom(rules, limits, self._log, shell)


class _Recorded(MemoryLog):
    """What was recorded, as it is put. It takes nothing else: those who watch were not there then."""

    def __init__(self, state: SpaceState, past: Iterable[Entry]) -> None:
        super().__init__()
        self._begin = _to_watch_from(state) if state.seq else b""
        self._seq = state.seq
        self._past = past
        self._at = _LONG_AGO

    def now(self) -> datetime:
        """When the last entry happened: here it is no later."""
        return self._at

    def put(self, entry: Entry) -> None:
        super().append(entry.at, _to_watch(entry).event)
        assert self._seq == entry.seq, f"entry {entry.seq} would become {self._seq}"
        self._at = entry.at

    def append(self, at: datetime, event: Event) -> None:
        pass

    def recall(self) -> Past:
        # what is shown here is not all there was, at whatever time
        mark = Mark(self._seq, _NEVER, 1, 1) if self._seq else None
        return Past(mark, self._begin, self._recalled())

    def _recalled(self) -> Iterator[Entry]:
        try:
            for entry in self._past:
                self._seq, self._at = entry.seq, entry.at
                yield _to_watch(entry)
        except Damaged as error:
            raise LogUnavailable(str(error)) from error


class _ReplayedRoom(Room):
    """A room that shows, and does not listen."""

    async def enter(self, guest: Guest) -> None:
        if self.dismissed:
            raise LogUnavailable("the gateway is stopping")
        self.guests[guest.id] = guest
        here = Entry(self.space.seq, self._shell.now(), TimePassed())
        resumed = None if guest.after is None else self.history.knows(guest.after)
        greeting = _greeting(self.space.state, here, guest, resumed=resumed)
        self._answer(here, Answer(guest.who, greeting, guest.id))
        self.flush()

    def _take(self, guest: Guest, _opcode: int, data: bytes) -> None:
        if data.startswith(MARK):
            self.turn_away(guest, _ONLY_WATCHING)
        else:
            self.counts.received += 1
            self.turn_away(guest, _ONLY_WATCHING, envelope_id_in(data))

    async def inject(self, who: ParticipantId, received: bytes) -> Accepted | Refused:
        self.counts.received += 1
        self.counts.refused += 1
        return _ONLY_WATCHING


def _to_watch(entry: Entry) -> Entry:
    """The same, so that an observer may see all of it and nobody can come in with a token of then."""
    event = entry.event
    if isinstance(event, Configured):
        return replace(entry, event=replace(event, rules=_watched(event.rules)))
    if isinstance(event, Sent) and event.token_hash:
        return replace(entry, event=replace(event, token_hash=""))
    return entry


def _to_watch_from(state: SpaceState) -> bytes:
    kept = SpaceState.restore(state.snapshot())
    kept.rules = _watched(kept.rules)
    kept.invited = {who: Invitation(one.by, "") for who, one in kept.invited.items()}
    return kept.snapshot()


def _watched(rules: Rules) -> Rules:
    return replace(rules, profiles={**rules.profiles, OBSERVER: ()}, delivery="everyone")


def _greeting(state: SpaceState, here: Entry, guest: Guest, *, resumed: bool | None) -> Envelope:
    """A welcome that is in no log; its id is none that the recording has."""
    made = welcome(state, here, guest.who, resumed=resumed)
    content = {**made.content, "you": {"id": guest.who, "capabilities": []}}
    return replace(made, id=str(uuid.uuid4()), payload=Raw(encode_json(content)))


def _config(space: str, folder: Path, port: int) -> Config:
    observer = ParticipantConfig(id=OBSERVER, capabilities=())
    watched = SpaceConfig(
        id=space, name=space, participants=MappingProxyType({OBSERVER: observer}), limits=_LIMITS
    )
    return Config(
        file=folder / "space.yaml",
        spaces=MappingProxyType({space: watched}),
        server=ServerConfig(host=_LOOPBACK, port=port),
    )
