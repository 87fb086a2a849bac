"""Gateways that welcome wrongly."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mew.space import presence

from .breaks import Mutant, Said, of, wrapping
from .deciding import allowing, refusing, welcoming

__all__ = ["MUTANTS"]


def as_it_is(state: Any, who: str, said: Said) -> None:
    pass


def once(right: Any, state: Any, entry: Any, who: Any, connection: Any, **how: Any) -> Any:
    decisions = right(state, entry, who, connection, **how)
    nothing = replace(decisions[0].envelope, kind="system/note")
    return [replace(decisions[0], envelope=nothing)] if state.members[who] > 1 else decisions


def to_nobody(right: Any, state: Any, entry: Any, who: Any) -> Any:
    return [replace(one, envelope=replace(one.envelope, to=())) for one in right(state, entry, who)]


def without(field: str) -> Callable[[Any, str, Said], object]:
    return lambda state, who, said: said["you"].pop(field)


def in_capitals(state: Any, who: str, said: Said) -> None:
    said["you"]["id"] = who.upper()


def everything(state: Any, who: str, said: Said) -> None:
    said["you"]["capabilities"] = [{"kind": "*"}]


def with_itself(state: Any, who: str, said: Said) -> None:
    said["participants"].append(said["you"])


def ids_alone(state: Any, who: str, said: Said) -> None:
    said["participants"] = [{"id": one["id"]} for one in said["participants"]]


def each_connection(state: Any, who: str, said: Said) -> None:
    others = {one["id"]: one for one in said["participants"]}
    said["participants"] = [others[one] for one in state.connections.values() if one != who]


def not_the_last(state: Any, who: str, said: Said) -> None:
    del said["participants"][-1:]


def those_who_left(state: Any, who: str, said: Said) -> None:
    known = {one["id"] for one in said["participants"]} | {who}
    said["participants"] += [{"id": one, "capabilities": []} for one in state.invited if one not in known]


def without_grants(state: Any, who: str, said: Said) -> None:
    for one in said["participants"]:
        first = next((g.capabilities for g in state.grants.values() if g.recipient == one["id"]), None)
        one["capabilities"] = one["capabilities"] if first is None else [held.source for held in first]


def as_it_was(state: Any, who: str, said: Said) -> None:
    """What it was invited with, whatever came after."""
    first = next((g.capabilities for g in state.grants.values() if g.recipient == who), None)
    said["you"]["capabilities"] = (
        said["you"]["capabilities"] if first is None else [one.source for one in first]
    )


def as_it_was_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was ever granted goes from the list."""
    ever: dict[str, list[Any]] = {}

    def change(state: Any, who: str, said: Said) -> None:
        held = ever.setdefault(who, [])
        held += [one for one in said["you"]["capabilities"] if one not in held]
        said["you"]["capabilities"] = held

    welcoming(change)(monkeypatch)


def first_of_each(state: Any, who: str, said: Said) -> None:
    del said["you"]["capabilities"][1:]


SENT = "presence.each_connection_is_welcomed"
ADDRESSED = "presence.a_welcome_is_addressed_to_the_newcomer"
YOU = "presence.the_welcome_says_who_one_is"
OTHERS = "presence.the_welcome_lists_the_others"
EXACT = "presence.what_the_welcome_lists_passes_and_nothing_else"
EXACT_LATER = "presence.the_list_is_exact_after_a_grant_and_a_revocation"

MUTANTS: Final = (
    Mutant("welcome.sent", SENT, wrapping(presence, "join", once), "a system/welcome after it connected"),
    Mutant("welcome.sent", SENT, welcoming(without("capabilities")), "of a welcome is None, not a list"),
    Mutant("welcome.sent", SENT, welcoming(without("id")), "the welcome has no payload.you.id"),
    Mutant("welcome.addressed", ADDRESSED, welcoming(as_it_is, to=()), "has `to` None"),
    Mutant("welcome.addressed", ADDRESSED, welcoming(as_it_is, to=("owner", "peer")), "['owner', 'peer']"),
    Mutant("welcome.addressed", ADDRESSED, wrapping(presence, "rewelcome", to_nobody), "has `to` None"),
    Mutant("welcome.you", YOU, welcoming(in_capitals), "was welcomed as"),
    Mutant("welcome.you", YOU, welcoming(everything), "they differ on"),
    Mutant("welcome.you", YOU, welcoming(without("capabilities")), "not a list"),
    Mutant("welcome.participants", OTHERS, welcoming(with_itself), "the newcomer among the others"),
    Mutant("welcome.participants", OTHERS, welcoming(ids_alone), "without its capabilities"),
    Mutant("welcome.participants", OTHERS, welcoming(each_connection), "2 times"),
    Mutant("welcome.participants", OTHERS, welcoming(not_the_last), "0 times"),
    Mutant("welcome.participants", OTHERS, welcoming(those_who_left), "who has left"),
    Mutant("welcome.participants", OTHERS, welcoming(without_grants), "they differ on mcp/proposal"),
    Mutant("welcome.authoritative", EXACT, allowing(of("mcp/proposal", sender="listener")), "may not send"),
    Mutant("welcome.authoritative", EXACT, refusing(of("reasoning/start", sender="peer")), "may send"),
    Mutant("welcome.authoritative", EXACT, welcoming(first_of_each), "for its welcome lists"),
    Mutant("welcome.authoritative", EXACT_LATER, welcoming(as_it_was), "may not send for its welcome"),
    Mutant("welcome.authoritative", EXACT_LATER, as_it_was_granted, "may send mcp/proposal"),
)
