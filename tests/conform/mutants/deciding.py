"""Ways to make our gateway wrong in what its space accepts, and in what it decides to deliver."""

import copy
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from mew.protocol.envelope import Envelope
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.protocol.json import decode_json, encode_json
from mew.protocol.kinds import Kind
from mew.space import Decision, Deliver, Entry, Judgement, RefusalDetails, Space, presence
from mew.space.state import SpaceState, signed

from .breaks import Break, Said, When, wrapping

__all__ = [
    "allowing",
    "allowing_again",
    "altered",
    "announced",
    "changed",
    "deciding",
    "disturb",
    "doubled",
    "dropped",
    "judging",
    "narrowed",
    "one_by_one",
    "refusing",
    "welcoming",
    "with_raw",
]


# What is sent is refused, or allowed, where it must not be.


def judging(judge: Callable[[Space, Envelope, RefusalDetails | None], RefusalDetails | None]) -> Break:
    """Ask this about each envelope, given what the space rightly says of it; its answer counts."""

    def judged(right: Any, space: Space, at: datetime, envelopes: Envelopes, *lenient: bool) -> Judgement:
        first = envelopes.part(0, 1)  # as if it changed the state: the rest is judged after it
        _, refused = right(space, at, first, *lenient)
        refused = judge(space, first[0], refused)
        return (1, None) if refused is None else (0, refused)

    return wrapping(Space, "judge", judged)


def refusing(when: When) -> Break:
    """Refuse what should pass."""
    wrong = RefusalDetails(Refusal.INVALID_PAYLOAD, "this gateway is wrong")
    return judging(lambda space, envelope, refused: wrong if when(envelope) else refused)


def allowing(when: When) -> Break:
    """Let through what should be refused."""
    return judging(
        lambda space, envelope, refused: None if refused is not None and when(envelope) else refused
    )


def allowing_again(when: When = lambda envelope: True) -> Break:
    """Let through what of its kind passed once before, from the same sender, unless the space acts on it."""
    passed: set[tuple[str, str]] = set()

    def judge(space: Space, envelope: Envelope, refused: RefusalDetails | None) -> RefusalDetails | None:
        what = (envelope.sender, envelope.kind)
        if refused is None:
            passed.add(what)
        again = what in passed and envelope.kind not in space.RULES
        return None if again and when(envelope) else refused

    return judging(judge)


def disturb(space: Space) -> None:
    """Its state was changed without an entry: let it forget whom it need not look at closely."""
    space._free.clear()


# What is delivered is not what was sent.


def deciding(decide: Callable[[Space, Decision], list[Decision]]) -> Break:
    """Have these carried out instead of each decision; envelopes are delivered one by one."""

    def applied(right: Any, space: Space, entry: Entry) -> list[Decision]:
        decisions = right(space, entry)
        return [other for one in one_by_one(decisions) for other in decide(space, one)]

    return wrapping(Space, "apply", applied)


def one_by_one(decisions: list[Decision]) -> Iterator[Decision]:
    """These decisions, with a `Deliver` for each envelope."""
    for decision in decisions:
        if isinstance(decision, Deliver):
            for place in range(len(decision.envelopes)):
                only = None if decision.only is None else decision.only[place : place + 1]
                yield Deliver(decision.envelopes.part(place, place + 1), only)
        else:
            yield decision


def with_raw(deliver: Deliver, raw: bytes) -> Deliver:
    """Deliver these bytes in place of the one envelope, which is remembered by the same id."""
    return replace(deliver, envelopes=replace(deliver.envelopes, raws=(raw,)))


def altered(alter: Callable[[Said], list[Said] | None]) -> Break:
    """Show these instead of each envelope, its own among them; none: it is lost; None: it is left as it is."""

    def instead(space: Space, decision: Decision) -> list[Decision]:
        if not isinstance(decision, Deliver):
            return [decision]
        others = alter(json.loads(decision.envelopes.raws[0]))
        if others is None:
            return [decision]
        return [with_raw(decision, json.dumps(one).encode()) for one in others]

    return deciding(instead)


def dropped(when: Callable[[Said], bool]) -> Break:
    return altered(lambda said: [] if when(said) else None)


def doubled(when: Callable[[Said], bool]) -> Break:
    return altered(lambda said: [said, said] if when(said) else None)


def changed(when: Callable[[Said], bool], change: Callable[[Said], object]) -> Break:
    """Show it with a change made in place."""

    def alter(said: Said) -> list[Said] | None:
        before = copy.deepcopy(said)
        if when(said):
            change(said)
        return None if said == before else [said]

    return altered(alter)


def narrowed(when: When, only: Callable[[Envelope], list[str]]) -> Break:
    """Show it to these alone."""

    def narrow(space: Space, decision: Decision) -> list[Decision]:
        if not isinstance(decision, Deliver) or not when(decision.envelopes[0]):
            return [decision]
        return [replace(decision, only=(tuple(only(decision.envelopes[0])),))]

    return deciding(narrow)


# What the gateway says of its participants.


def announced(state: SpaceState, entry: Entry, event: str, participant: Any) -> Deliver:
    """A `system/presence` more than there should be."""
    payload = {"event": event, "participant": participant}
    return Deliver.one(signed(state, entry, kind=Kind.PRESENCE, payload=payload))


def welcoming(change: Callable[[Any, str, Said], object], **fields: Any) -> Break:
    """Change the payload of every welcome in place, and the fields of its envelope."""

    def welcome(right: Any, state: Any, entry: Any, who: Any, **how: Any) -> Any:
        envelope = right(state, entry, who, **how)
        said = decode_json(bytes(envelope.payload))
        change(state, who, said)
        return replace(envelope, payload=Raw(encode_json(said)), **fields)

    return wrapping(presence, "welcome", welcome)
