"""The tree of what led to an envelope and what came of it: proposal, decision, request, response.

Participants choose which envelopes they name as causes. A cause therefore counts only if it is older than the envelope
that names it, which rules out cycles; every fact appears once, and depth and breadth are bounded.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Protocol

from mew.audit.record.facts import Fact, FactKey
from mew.journal.files.database import Damaged
from mew.journal.reader import JournalReader
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind
from mew.space import Sent

from .proposals import Execution, compare_request

__all__ = ["ChainNode", "EnvelopeChain", "JournalEnvelopes", "annotated", "chain_of"]

_NODES_MAX: Final = 500
_NAMING_MAX: Final = 100
_CAUSES_MAX: Final = 64
_ABOVE_MAX: Final = 24
_DEPTH_MAX: Final = 32
_SECOND_US: Final = 1_000_000
# Of all that an envelope names, what it is an answer to.
_ANSWERS: Final = {
    Kind.MCP_RESPONSE: Kind.MCP_REQUEST,
    Kind.MCP_REQUEST: Kind.MCP_PROPOSAL,
    Kind.MCP_REJECT: Kind.MCP_PROPOSAL,
    Kind.MCP_WITHDRAW: Kind.MCP_PROPOSAL,
    Kind.GRANT_ACK: Kind.GRANT,
}


class FactLookup(Protocol):
    """Where facts are found."""

    def with_id(self, envelope_id: str, before: FactKey) -> Fact | None: ...

    def times_used(self, envelope_id: str) -> int: ...

    def naming(self, envelope_id: str, limit: int, after: FactKey) -> list[Fact]: ...

    def times_named(self, envelope_id: str, after: FactKey) -> int: ...


@dataclass(slots=True)
class ChainNode:
    """One fact and what names it, in order. `left_out`: so many more do.

    `envelope`: what was shown, if it is still kept. `after_s`: since the node above.
    """

    fact: Fact
    after_s: float | None = None
    envelope: Envelope | None = None
    execution: Execution | None = None
    remarks: list[str] = field(default_factory=list)
    children: list["ChainNode"] = field(default_factory=list)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class EnvelopeChain:
    """`focus` is the fact that was asked about. `goes_on_above`: there is more before `root` than was looked at."""

    root: ChainNode
    focus: Fact
    goes_on_above: bool = False

    @property
    def facts(self) -> list[Fact]:
        """All that are in the tree."""
        return [node.fact for node, _ in _nodes(self.root)]


def chain_of(record: FactLookup, focus: Fact) -> EnvelopeChain:
    """The tree that a fact is in, from the first that led to it."""
    ids = _Ids(record)
    path = _up(record, focus)
    nodes = _found(record, ids, path)
    _hang(ids, nodes)
    for node in nodes:
        if not node.fact.refusal and (times := ids.times_used(node.fact.id)) > 1:
            node.remarks.append(f"its id was used {times:,} times")
    return EnvelopeChain(nodes[0], focus, goes_on_above=_cause(record, path[0]) is not None)


class _Ids:
    """What is meant by an id, with few questions to the record."""

    def __init__(self, record: FactLookup) -> None:
        self._record = record
        self._times: dict[str, int] = {}

    def times_used(self, envelope_id: str) -> int:
        if envelope_id and envelope_id not in self._times:
            self._times[envelope_id] = self._record.times_used(envelope_id)
        return self._times.get(envelope_id, 0)

    def means(self, naming: Fact, cause: Fact) -> bool:
        """Whether a fact that names the id of another, which came before it, means that one."""
        if cause.key >= naming.key:
            return False
        if self.times_used(cause.id) < 2:
            return True
        meant = self._record.with_id(cause.id, naming.key)
        return meant is not None and meant.key == cause.key


def annotated(chain: EnvelopeChain, envelope_of: Callable[[Fact], Envelope | None]) -> EnvelopeChain:
    """The same chain, with what was shown, how it differs from what was proposed, and what is odd about it."""
    for node, above in _nodes(chain.root):
        node.envelope = envelope_of(node.fact)
        fact = node.fact
        if above is None:
            if fact.causes and not chain.goes_on_above:
                node.remarks.append(f"names {_some(fact.causes)} before it that the record does not have")
            continue
        node.after_s = (fact.at - above.fact.at) / _SECOND_US
        if (fact.kind, above.fact.kind) == (Kind.MCP_REQUEST, Kind.MCP_PROPOSAL):
            node.execution = compare_request(above.fact, fact, _payloads(above, node))
        node.remarks += _odd(fact, above.fact)
        others = [cause for cause in fact.causes if cause != above.fact.id]
        if others:
            node.remarks.append(f"names {_some(others)} more")
    return chain


def _up(record: FactLookup, fact: Fact) -> list[Fact]:
    path = [fact]
    while len(path) < _ABOVE_MAX and (cause := _cause(record, path[-1])) is not None:
        path.append(cause)
    return path[::-1]


def _cause(record: FactLookup, fact: Fact) -> Fact | None:
    """What a fact is an answer to, or else the first that it names, of those that were there before it."""
    found = (record.with_id(cause, fact.key) for cause in fact.causes[:_CAUSES_MAX] if not fact.refusal)
    before = [cause for cause in found if cause is not None]
    answered = _ANSWERS.get(fact.kind)
    return next((cause for cause in before if cause.kind == answered), before[0] if before else None)


def _found(record: FactLookup, ids: _Ids, path: Sequence[Fact]) -> list[ChainNode]:
    """The first of a path, what names it, what names that, and so on, level by level; those of the path in any case."""
    nodes = {fact.key: ChainNode(fact) for fact in path}
    below = {above.key: below for above, below in pairwise(path)}
    looking = deque((node, depth) for depth, node in enumerate(nodes.values(), 1))
    while looking:
        node, depth = looking.popleft()
        fact = node.fact
        naming = record.naming(fact.id, _NAMING_MAX, fact.key) if fact.id and not fact.refusal else []
        fresh = [one for one in naming if one.key not in nodes and ids.means(one, fact)]
        taken = fresh[: max(_NODES_MAX - len(nodes), 0) if depth < _DEPTH_MAX else 0]
        node.left_out = len(fresh) - len(taken)
        if len(naming) == _NAMING_MAX:
            is_beside = below.get(fact.key) not in (None, *naming)
            node.left_out += record.times_named(fact.id, fact.key) - len(naming) - is_beside
        for one in taken:
            nodes[one.key] = ChainNode(one)
            looking.append((nodes[one.key], depth + 1))
    return list(nodes.values())


def _hang(ids: _Ids, nodes: Sequence[ChainNode]) -> None:
    """Hang each node, but for the first, on what it answers, or else on the first that it names."""
    root, *others = sorted(nodes, key=lambda node: node.fact.key)
    by_id: dict[str, list[ChainNode]] = {}
    for node in nodes:
        by_id.setdefault(node.fact.id, []).append(node)
    above: dict[int, ChainNode] = {}
    depths = {id(root): 1}
    for node in others:
        named = [one for cause in node.fact.causes for one in by_id.get(cause, ())]
        before = [one for one in named if ids.means(node.fact, one.fact)]
        on = next((one for one in before if one.fact.kind == _ANSWERS.get(node.fact.kind)), before[0])
        while depths[id(on)] >= _DEPTH_MAX:
            on = above[id(on)]
        above[id(node)], depths[id(node)] = on, depths[id(on)] + 1
        on.children.append(node)


def _nodes(root: ChainNode) -> Iterator[tuple[ChainNode, ChainNode | None]]:
    """Every node with the one above it."""
    waiting: list[tuple[ChainNode, ChainNode | None]] = [(root, None)]
    while waiting:
        node, above = waiting.pop()
        yield node, above
        waiting += [(child, node) for child in reversed(node.children)]


def _payloads(proposal: ChainNode, request: ChainNode) -> tuple[object, object] | None:
    if proposal.envelope is None or request.envelope is None:
        return None
    try:
        return proposal.envelope.content, request.envelope.content
    except ProtocolError:
        return None


def _odd(fact: Fact, above: Fact) -> list[str]:
    match fact.kind, above.kind:
        case Kind.MCP_RESPONSE, Kind.MCP_REQUEST if above.whom and fact.who not in above.whom:
            return ["was not asked"]
        case Kind.MCP_WITHDRAW, Kind.MCP_PROPOSAL if fact.who != above.who:
            return ["is not who proposed it"]
        case _:
            return []


def _some(ids: Sequence[str]) -> str:
    return f"{len(ids):,} envelope{'s' if len(ids) > 1 else ''}"


_BYTES_MAX: Final = 32 << 20


class JournalEnvelopes:
    """What facts are of, up to so many bytes in all."""

    def __init__(self, journal: JournalReader, bytes_max: int = _BYTES_MAX) -> None:
        self._journal = journal
        self._left = bytes_max

    def envelope(self, fact: Fact) -> Envelope | None:
        """What a fact is of; None: it is not kept, cannot be read, was refused, or there was too much before it.

        Raises:
            JournalUnavailable: the system says no.
        """
        if fact.refusal or self._left <= 0:
            return None
        try:
            raw = self._raw(fact)
            self._left -= len(raw)
            envelope = decode(raw)
        except (Damaged, ProtocolError):
            return None
        return envelope if envelope.id == fact.id else None

    def _raw(self, fact: Fact) -> bytes:
        record = self._journal.record(fact.seq)
        if record is None:
            return b""
        event = record.entry.event
        if fact.n:
            return record.made[fact.n - 1] if fact.n <= len(record.made) else b""
        return event.envelopes.raws[fact.seq - record.entry.seq] if isinstance(event, Sent) else b""
