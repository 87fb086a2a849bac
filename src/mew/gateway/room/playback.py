"""A recording that happens again in a space of its own, for whoever wants to watch.

Every entry keeps its number and its time, so the space decides as it did then, and the gateway's own envelopes have the
ids they had. Those who watch are not in the space: no entry tells of them.
"""

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from mew.gateway.auth.tokens import token_path
from mew.gateway.config.settings import Config, Limits, ParticipantConfig, ServerConfig, SpaceConfig
from mew.gateway.server import Gateway
from mew.journal.files.database import Damaged
from mew.journal.memory import MemoryJournal
from mew.journal.port import CommitCallback, Delivered, Follower, Journal, JournalContents, JournalUnavailable
from mew.journal.record import Record
from mew.protocol.envelope import ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.space import (
    Configured,
    Decision,
    Entry,
    Event,
    Joined,
    Judgement,
    Left,
    RefusalDetails,
    Reply,
    Rules,
    Sent,
    Space,
)
from mew.space.presence import welcome
from mew.space.state import Invitation, SpaceState
from mew.space.streams import FrameRoute

from .ports import RoomEnvironment
from .room import Room
from .turns import Turns

__all__ = ["OBSERVER", "Playback"]

OBSERVER: Final = ParticipantId("_observer")
"""Who watches. No participant can have such an id, so none of a recording has it."""

_LOOPBACK: Final = "127.0.0.1"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_LIMITS: Final = Limits(history_envelopes=100_000, history_bytes=256 << 20)
_ONLY_WATCHING: Final = RefusalDetails(
    Refusal.NOT_A_MEMBER, "this is a recording: you can watch it, and send nothing"
)


class Playback:
    """A gateway on this machine with one space, to which happens what it is told. An async context.

    `token_file` has what an observer needs to connect; nobody else can.
    """

    def __init__(
        self, space: str, state: SpaceState, past: Iterable[Record], *, folder: Path, port: int
    ) -> None:
        """The space begins with this state, and with what has happened before anyone can watch.

        The token is kept in the folder.
        """
        config = _config(space, folder, port)
        self.token_file = token_path(config, space, OBSERVER)
        self._recorded = _Recorded(state, past)
        self._room: Room | None = None
        self._gateway = Gateway(
            config, {}, open_room=self._open_room, journals=self._recorded, now=self._recorded.now
        )

    async def __aenter__(self) -> "Playback":
        await self._gateway.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._gateway.__aexit__(*exc)

    @property
    def url(self) -> str:
        return self._gateway.url

    def perform(self, entry: Entry) -> None:
        """It happens now."""
        assert self._room is not None, "nothing happens before it is open"
        self._room.enqueue(partial(self._recorded.put, entry))

    def _open_room(self, rules: Rules, limits: Limits, turns: Turns, world: RoomEnvironment) -> Room:
        self._room = Room(rules, limits, turns, world, space_type=_RecordedSpace)
        return self._room


class _Recorded(MemoryJournal):
    """What was recorded, as it is put. It takes nothing else: those who watch were not there then."""

    def __init__(self, state: SpaceState, past: Iterable[Record]) -> None:
        super().__init__(lambda entry: (), state.seq)
        self._state = _to_watch_from(state) if state.seq else None
        self._begin = state.seq
        self._past = past
        self._at = _LONG_AGO
        self._delivered: list[Delivered] = []

    def now(self) -> datetime:
        """When the last entry happened: here it is no later."""
        return self._at

    def put(self, entry: Entry) -> None:
        self._at = entry.at
        super().append(entry.at, _to_watch(entry.event))
        assert self._seq == entry.last, f"entry {entry.last} would become {self._seq}"

    def append(self, at: datetime, event: Event) -> None:
        if isinstance(event, Joined | Left):
            self._follower(Entry(self._seq, at, event))

    # As the storage of the one space.

    is_shared = False

    async def prepare(self, spaces: Iterable[str]) -> None:
        """There is nothing to read."""

    def open(self, space: str, follower: Follower) -> tuple[Journal, JournalContents]:
        self._follower = follower
        past = JournalContents(self._state, None, self._begin, self._entries(), self._newest_first())
        return self, past

    def commit(self, done: CommitCallback) -> None:
        done(None)

    def _entries(self) -> Iterator[Entry]:
        try:
            for record in self._past:
                entry = record.entry
                self._seq, self._at = entry.last, entry.at
                self._delivered.append(replace(record.delivered, only=None))
                yield replace(entry, event=_to_watch(entry.event))
        except Damaged as error:
            raise JournalUnavailable(str(error)) from error

    def _newest_first(self) -> Iterator[Delivered]:
        yield from reversed([delivered for delivered in self._delivered if delivered.ids])


class _RecordedSpace(Space):
    """A space in which observers come and go unnoticed, and can say nothing."""

    __slots__ = ()

    def judge(self, at: datetime, envelopes: Envelopes, lenient: bool = False) -> Judgement:  # noqa: FBT001, FBT002
        return 0, _ONLY_WATCHING

    def route(self, at: datetime, writer: ParticipantId, stream_id: str) -> FrameRoute | RefusalDetails:
        return _ONLY_WATCHING

    def apply(self, entry: Entry) -> list[Decision]:
        event = entry.event
        if entry.seq == self.state.seq:
            return [_greeting(self.state, entry, event)] if isinstance(event, Joined) else []
        return super().apply(entry)


def _to_watch(event: Event) -> Event:
    """The same, so that an observer may see all of it and nobody can come in with a token of then."""
    if isinstance(event, Configured):
        return replace(event, rules=_watched(event.rules))
    if isinstance(event, Sent) and event.token_hash:
        return replace(event, token_hash="")
    return event


def _to_watch_from(state: SpaceState) -> bytes:
    kept = SpaceState.restore(state.snapshot())
    kept.rules = _watched(kept.rules)
    kept.invited = {who: Invitation(one.by, "") for who, one in kept.invited.items()}
    return kept.snapshot()


def _watched(rules: Rules) -> Rules:
    return replace(rules, profiles={**rules.profiles, OBSERVER: ()}, delivery="everyone")


def _greeting(state: SpaceState, here: Entry, joined: Joined) -> Reply:
    """A welcome that is in no journal; its id is none that the recording has."""
    made = welcome(state, here, joined.who, resumed=joined.resumed)
    content = {**made.content, "you": {"id": joined.who, "capabilities": []}}
    envelope = replace(made, id=str(uuid.uuid4()), payload=Raw(encode_json(content)))
    return Reply(joined.who, envelope, joined.connection)


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
