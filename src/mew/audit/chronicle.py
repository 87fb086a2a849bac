"""What a space showed, told again from its journal and its index, without going through the space.

The journal has what participants sent; the index what was refused of that, what the gateway itself said, and to whom.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

import msgspec

from mew.log.reading import JournalReader, entry_of
from mew.log.record import Row
from mew.log.seeking import Seeker
from mew.protocol.codec import decode
from mew.protocol.envelope import ParticipantId
from mew.protocol.json import encode_json
from mew.space import Deliver, Entry, Sent
from mew.space.state import is_gateway_id

from .facts import CONFIGURED
from .index import Index

__all__ = ["Chronicle", "Part", "Told"]

Told = tuple[Entry, list[Deliver]]
"""An entry and what was shown because of it, in order, each with its bytes."""

_NOTES: Final = """
SELECT seq, n, refusal, made, only_for FROM facts
WHERE seq BETWEEN ? AND ? AND (n <> 0 OR refusal <> '') ORDER BY seq, n
"""
_PASSED: Final = 10  # so many are searched for a text while one is read
_ADDRESSED: Final = "delivery: addressed"
_CONFIGURED: Final = f"kind = '{CONFIGURED}' AND refusal = ''"  # somebody may have tried to send such a kind
_RULES: Final = f"""
SELECT seq, note FROM facts WHERE {_CONFIGURED} AND seq <= ?2
    AND seq >= coalesce((SELECT max(seq) FROM facts WHERE {_CONFIGURED} AND seq <= ?1), 0) ORDER BY seq DESC
"""
_HAVING: Final = "SELECT seq FROM facts WHERE id = ? AND refusal = '' AND seq <= ? ORDER BY seq DESC LIMIT 1"


class Part(NamedTuple):
    """A part of the way: what is told of it, up to which entry that goes, and what it took to come by it.

    `effort`: as many entries could be read instead.
    """

    told: Iterator[Told]
    reached: int
    effort: int


class Chronicle:
    """The chronicle of one space, also while a gateway writes it. A context: leave it to close its files.

    All methods raise `LogUnavailable` where the system says no, and `Damaged` at what cannot be read. What they tell
    is right for entries whose facts the index has: those in `covered`.
    """

    def __init__(self, folder: Path) -> None:
        with ExitStack() as files:
            self._journal = files.enter_context(JournalReader(folder))
            self.index = files.enter_context(Index(folder))
            self._files = files.pop_all()
        self._seeker = Seeker(self._journal)

    def __enter__(self) -> "Chronicle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    @property
    def begin(self) -> int:
        """The number of the last entry that is no longer kept; 0: all are."""
        return self._journal.begin.seq

    def covered(self, after: int, until: int) -> list[tuple[int, int]]:
        """Of the entries after one number, up to and with another: those that can be told, as such pairs."""
        covered: list[tuple[int, int]] = []
        after = max(after, self.begin)
        for begin, end in self.index.gaps(after, until):
            covered.append((after, begin))
            after = end
        covered.append((after, until))
        return [(begin, end) for begin, end in covered if begin < end]

    def forwards(self, after: int, until: int, texts: Sequence[bytes] = ()) -> Iterator[Part]:
        """The entries after one number, up to and with another, the oldest first.

        `texts`: those that hold none of them may be left out.
        """
        while after < until:
            stretch = self._seeker.some_after(after, until, texts)
            after = stretch.reached
            yield Part(self._told(stretch.rows), after, stretch.passed // _PASSED)

    def backwards(self, after: int, until: int, texts: Sequence[bytes] = ()) -> Iterator[Part]:
        """The same, the newest first."""
        while after < until:
            stretch = self._seeker.some_before(until + 1, after, texts)
            until = stretch.reached
            yield Part(self._told(stretch.rows), until, stretch.passed // _PASSED)

    def each(self, numbers: Iterable[int]) -> Iterator[Told]:
        """The entries with these numbers, those that are kept."""
        for number in numbers:
            yield from self._told(self._seeker.some_after(number - 1, number).rows)

    def first_since(self, moment: datetime) -> int:
        """The number of the first entry at or after a moment; of the next to come, if there is none."""
        return self._seeker.first_since(moment)

    def find(
        self, envelope_id: str, until: int, is_over: Callable[[], bool] = lambda: False
    ) -> tuple[int, int] | None:
        """The last envelope of this id shown up to this entry: its entry, and its place among what that showed.

        Talk is searched for in the journal itself, a second for a million entries if they are not on a slow disk. An
        id that its sender wrote with escapes is not found so.

        Raises:
            TookTooLong: it is over before that.
        """
        for (number,) in self.index.rows(_HAVING, (envelope_id, until)):
            if number <= self.begin:
                return number, 0
            for told in self.each((number,)):
                return _place(told, envelope_id)
        if is_gateway_id(envelope_id):
            return None
        for row in self._seeker.holding(encode_json(envelope_id), until, is_over):
            for told in self._told([row]):
                place = _place(told, envelope_id)
                if place is not None:
                    return place
        return None

    def _told(self, rows: Sequence[Row]) -> Iterator[Told]:
        """Of rows in order, from first to last or from last to first; each is read when it is asked for."""
        if not rows:
            return
        first, last = sorted((rows[0].seq, rows[-1].seq))
        notes: dict[int, list[Sequence[Any]]] = {}
        for seq, *note in self.index.rows(_NOTES, (first, last)):
            notes.setdefault(seq, []).append(note)
        changes = self._delivery(first, last)
        for row in rows:
            entry = entry_of(row)
            addressed = next((to_some for seq, to_some in changes if seq <= row.seq), True)
            yield entry, _shown(entry, notes.get(row.seq, ()), addressed=addressed)

    def _delivery(self, first: int, last: int) -> list[tuple[int, bool]]:
        """From which entry on what has addressees was for them alone, or for all, the last change first.

        Where nobody knows any more, it was for them alone.
        """
        changes = self.index.rows(_RULES, (first, last))
        return [(seq, note == _ADDRESSED) for seq, note in changes]


def _shown(entry: Entry, notes: Sequence[Sequence[Any]], *, addressed: bool) -> list[Deliver]:
    sent = entry.event if isinstance(entry.event, Sent) else None
    if not notes:
        return [] if sent is None else [_own(sent, addressed=addressed)]
    before, after = (
        [_made(made, only) for n, _, made, only in notes if made is not None and (n < 0) is is_before]
        for is_before in (True, False)
    )
    refused = any(refusal for n, refusal, _, _ in notes if n == 0)
    own = [] if sent is None or refused else [_own(sent, addressed=addressed)]
    return before + own + after


def _own(sent: Sent, *, addressed: bool) -> Deliver:
    envelope = sent.envelope
    if not (addressed and envelope.to):
        return Deliver(envelope, sent.raw)
    return Deliver(envelope, sent.raw, _names((*envelope.to, envelope.sender)))


def _made(made: str, only: str | None) -> Deliver:
    raw = made.encode()
    named = None if only is None else _names(msgspec.json.decode(only, type=tuple[str, ...]))
    return Deliver(decode(raw), raw, named)


def _names(names: tuple[str, ...]) -> tuple[ParticipantId, ...]:
    return tuple(map(ParticipantId, dict.fromkeys(names)))


def _place(told: Told, envelope_id: str) -> tuple[int, int] | None:
    entry, shown = told
    for place, one in enumerate(shown):
        if one.envelope.id == envelope_id:
            return entry.seq, place
    return None
