"""Gateways that are wrong in some envelopes alone."""

import unicodedata
from collections.abc import Callable
from typing import Any, Final

import pytest

from mew.conform.roles import ROLES
from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.capability import CapabilitySet, glob
from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_json, encode_json
from mew.space import Decision, Deliver, Entry

from .breaks import Break, Mutant, Said, mutants, of
from .deciding import allowing, changed, narrowed
from .doors import accepting, afterwards, in_anothers_name, reading, saying, show

__all__ = ["MUTANTS"]


def but(who: str) -> Callable[[Envelope], list[str]]:
    return lambda envelope: [name for name in ROLES if name != who]


def anything(_: Said) -> bool:
    return True


def normalised(said: Said) -> None:
    if "context" in said:
        said["context"] = unicodedata.normalize("NFC", said["context"])


def to_eight_at_most(said: Said) -> None:
    if "to" in said:
        said["to"] = said["to"][:8]


def reserved_but_with(field: str) -> Break:
    """`system/…` passes where this field is given."""

    def mend(said: Said) -> None:
        if said["kind"].startswith("system/") and said.get(field):
            said["kind"] = "chat"

    return accepting(mend)


def taken_for(field: str, wrong: Any, right: Any) -> Break:
    """A wrong value of a field is overlooked in all but chats."""

    def mend(said: Said) -> None:
        if said["kind"] != "chat" and said.get(field) == wrong:
            said[field] = right

    return accepting(mend)


def any_name_on_a_second_connection(room: Room, connection: RoomConnection, text: bytes) -> bytes:
    later = room.space.connections_of((connection.who,))[1:]
    return encode_json({**decode_json(text), "from": connection.who}) if connection.id in later else text


def up_to_a_newline(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `$` in a regular expression has it."""
    by_text, by_kind = glob.Glob.fits, CapabilitySet.fits

    def fits(pattern: Any, value: Any) -> bool:
        return by_text(pattern, value.removesuffix("\n") if isinstance(value, str) else value)

    def kind_fits(held: Any, kind: str, *rest: Any) -> bool:
        return by_kind(held, kind.removesuffix("\n"), *rest)

    monkeypatch.setattr(glob.Glob, "fits", fits)
    monkeypatch.setattr(CapabilitySet, "fits", kind_fits)


def twice_where_one_is_twice(room: Room, entry: Entry, decision: Decision) -> None:
    state = room.space.state
    if isinstance(decision, Deliver) and decision.envelopes.kinds == ("chat",):
        both = [one for one, who in state.connections.items() if state.members[who] > 1]
        show(room, decision.envelopes.raws[0], both)


def without_signs(said: Said) -> None:
    """Names that begin with a dollar are somebody's own."""
    for name in [name for name in said.get("payload", ()) if name.startswith("$")]:
        del said["payload"][name]


REFUSED: Final = "must reach no one"
FOREIGN: Final = "senders.nothing_else_in_an_envelope_excuses_its_sender"

MUTANTS: Final = (
    *mutants(
        "identity.from-verified",
        FOREIGN,
        (in_anothers_name(lambda said, who: bool(said.get("correlation_id"))), REFUSED),
        (in_anothers_name(lambda said, who: said["from"] in said.get("to", ())), REFUSED),
        (in_anothers_name(lambda said, who: said["kind"] == "mcp/response"), REFUSED),
        (reading(any_name_on_a_second_connection), REFUSED),
    ),
    *mutants(
        "system.rejected",
        "senders.nobody_sends_what_is_the_gateways",
        *((reserved_but_with(field), "refuses a system/welcome") for field in ("to", "correlation_id")),
    ),
    *mutants(
        "capability.blocked",
        "capabilities.what_is_not_allowed_reaches_no_one",
        (allowing(lambda e: e.kind == "mcp/request" and "gateway" in e.to), REFUSED),
        (allowing(lambda e: e.kind == "mcp/request" and bool(e.context)), REFUSED),
        (allowing(lambda e: e.kind == "mcp/proposal" and bool(e.correlation_id)), REFUSED),
    ),
    *mutants(
        "capability.blocked",
        "capabilities.no_kind_passes_without_a_capability",
        (
            allowing(of("participant/restart")),
            "a participant/restart, which listener holds no capability for",
        ),
        (allowing(of("reasoning/cancel")), "a reasoning/cancel, which listener holds no capability for"),
    ),
    *mutants(
        "version.matching",
        "envelopes.another_version_has_no_effect",
        (taken_for("protocol", "mew/v0.3", "mew/v0.4"), 'a mcp/request whose `protocol` is "mew/v0.3"'),
    ),
    *mutants(
        "correlation.array",
        "envelopes.correlations_are_an_array_of_strings",
        (taken_for("correlation_id", "an-id", ["an-id"]), 'a mcp/request whose `correlation_id` is "an-id"'),
    ),
    *mutants(
        "envelope.to-array",
        "envelopes.addressees_are_an_array_of_strings",
        (taken_for("to", "peer", ["peer"]), 'a mcp/request whose `to` is "peer"'),
    ),
    *mutants(
        "context.path",
        "proposals.a_path_stays_as_it_is",
        (changed(anything, normalised), "'e\\u0301/\\xe9/\\u212b' was sent, '\\xe9/\\xe9/\\xc5' came"),
    ),
    *mutants(
        "delivery.unmodified",
        "delivery.it_arrives_as_it_was_sent",
        (changed(anything, normalised), '`context` was "a/B//c/e\\u0301" and is "a/B//c/\\u00e9"'),
        (changed(anything, to_eight_at_most), "`to` was "),
        (changed(anything, without_signs), "`payload.$ref` was "),
        (saying(lambda said: said.update(id=said["id"].lower())), "the envelope CONFORM-"),
    ),
    *mutants(
        "delivery.broadcast",
        "delivery.without_addressees_it_is_for_all",
        (narrowed(of("mcp/response"), but("granter")), "granter receives the mcp/response"),
        (narrowed(lambda e: "/" in e.kind, but("listener")), "listener receives the mcp/request"),
    ),
    Mutant(
        "delivery.accepted",
        "delivery.what_is_allowed_arrives_once",
        afterwards(twice_where_one_is_twice),
        "2 times, not once",
    ),
    Mutant(
        "pattern.exact",
        "patterns.an_exact_kind_allows_nothing_else",
        up_to_a_newline,
        "listener may not send chat\\n",
    ),
    Mutant(
        "pattern.wildcard",
        "patterns.a_wildcard_may_stand_anywhere",
        up_to_a_newline,
        "read_file\\n",
    ),
)
