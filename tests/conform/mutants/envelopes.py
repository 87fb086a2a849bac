"""Gateways that are wrong about what an envelope is, or who it is from."""

import json
import uuid
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.space import RefusalDetails, Space, members

from .breaks import Break, Said, mutants, replaced, wrapping
from .deciding import judging, refusing
from .doors import accepting, in_anothers_name, receiving, saying, show, signing, silent, taken_for, taking

__all__ = ["MUTANTS"]


def is_one(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(value is one or (value == one and type(value) is type(one)) for one in values)


def is_no(kind: type) -> Callable[[Any], bool]:
    return lambda value: value is not ... and not isinstance(value, kind)


def new_id() -> str:
    return str(uuid.uuid4())


def first(values: Any) -> Any:
    """A string where an array should be."""
    return values[0] if values else ...


def not_for_streams(said: Said) -> None:
    if said["kind"].startswith("stream/"):
        said["protocol"] = "mew/v0.4"


def numbered() -> Break:
    """Another id for each connection."""
    numbers = count()

    def change(payload: Any) -> Any:
        return {**payload, "you": {**payload["you"], "id": f"{payload['you']['id']}-{next(numbers)}"}}

    return signing("system/welcome", payload=change)


def reserving(*prefixes: str) -> Break:
    """Only kinds that begin like this are the gateway's."""

    def judge(space: Space, envelope: Envelope, refused: RefusalDetails | None) -> RefusalDetails | None:
        reserved = refused is not None and refused.refusal is Refusal.RESERVED_KIND
        return None if reserved and not envelope.kind.startswith(prefixes) else refused

    return judging(judge)


def for_its_holders(
    space: Space, envelope: Envelope, refused: RefusalDetails | None
) -> RefusalDetails | None:
    """Who was granted `system/*` may send it."""
    held = [capability.source for capability in space.held(ParticipantId(envelope.sender))]
    granted = envelope.kind.startswith("system/") and {"kind": "system/*"} in held
    return None if granted else refused


def passed_on_too(
    right: Any, room: Room, connection: RoomConnection, refused: RefusalDetails, *what: Any
) -> None:
    """What is the gateway's is refused, and delivered all the same."""
    if refused.refusal is Refusal.RESERVED_KIND:
        envelope_id, kind = what
        said = {"protocol": "mew/v0.4", "id": envelope_id, "from": connection.who, "kind": kind}
        show(room, encode_json(said))
    right(room, connection, refused, *what)


def last_wins(raw: bytes) -> bytes:
    """Of a field that is there twice it reads the last, and passes on both."""
    repeated: list[bool] = []

    def read(pairs: list[tuple[str, Any]]) -> Said:
        repeated.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    said = json.loads(raw, object_pairs_hook=read)
    return json.dumps(said).encode() if any(repeated) else raw


MUTANTS: Final = [
    # What is an envelope.
    *mutants(
        "envelope.one-json-object",
        "envelopes.what_is_no_envelope_reaches_nobody",
        (taking(lambda raw: raw.strip(b"[]")), "an array must reach no one"),
        (taking(lambda raw: raw.partition(b"\n")[0]), "two envelopes on two lines must reach no one"),
        (taking(lambda raw: raw.replace(b"NaN", b"0")), "an object with NaN must reach no one"),
        (taking(lambda raw: raw.replace(b",}", b"}")), "a comma too many must reach no one"),
    ),
    *mutants(
        "envelope.one-json-object",
        "envelopes.the_gateway_sends_whole_envelopes",
        (signing("system/error", from_=...), "'from' of an envelope of the gateway is None"),
        (signing("system/presence", id=7), "'id' of an envelope of the gateway is 7"),
        (
            saying(lambda said: [said] if said["kind"] == "system/presence" else 0),
            "neither envelope nor stream",
        ),
    ),
    *mutants(
        "envelope.malformed-answered",
        "envelopes.what_is_no_envelope_is_answered",
        (silent(Refusal.MALFORMED), "receives a system/error about no JSON"),
    ),
    *mutants(
        "envelope.malformed-answered",
        "envelopes.a_broken_rule_is_answered",
        (silent(Refusal.WRONG_SENDER), "a system/error about an envelope whose `from` is"),
        (silent(Refusal.WRONG_VERSION), 'a system/error about an envelope whose `protocol` is "mew/v0.3"'),
        (silent(Refusal.RESERVED_KIND), 'a system/error about an envelope whose `kind` is "system/welcome"'),
        (taken_for("id", new_id, is_one(...)), "a system/error about an envelope whose `id` is missing"),
        (taken_for("kind", "chat", is_one("")), 'a system/error about an envelope whose `kind` is ""'),
    ),
    # Its version.
    *mutants(
        "envelope.protocol",
        "envelopes.only_this_version_passes",
        (accepting(lambda said: said.update(protocol=said["protocol"].lower())), '`protocol` is "MEW/V0.4"'),
        (accepting(lambda said: said.update(protocol=said["protocol"][:8])), '`protocol` is "mew/v0.40"'),
        (accepting(lambda said: said.update(protocol=said["protocol"].strip())), '`protocol` is " mew/v0.4"'),
        (taken_for("protocol", "mew/v0.4", is_one(...)), "`protocol` is missing must reach no one"),
    ),
    *mutants(
        "envelope.protocol",
        "envelopes.the_gateway_names_this_version",
        (signing("system/error", protocol="mew/v0.3"), "`protocol` of a system/error is 'mew/v0.3'"),
        (signing("stream/open", protocol=...), "`protocol` of a stream/open is None"),
    ),
    *mutants(
        "version.matching",
        "envelopes.another_version_has_no_effect",
        (taken_for("protocol", "mew/v0.4", is_one("mew/v0.3")), '`protocol` is "mew/v0.3" must reach no one'),
        (
            taken_for("protocol", "mew/v0.4", is_one("meup/v0.2")),
            '`protocol` is "meup/v0.2" must reach no one',
        ),
        (accepting(not_for_streams), "opened a stream"),
    ),
    # Its fields.
    *mutants(
        "envelope.id-unique",
        "envelopes.an_id_is_a_string_that_is_not_empty",
        (taken_for("id", new_id, is_one("")), '`id` is "" must reach no one'),
        (taken_for("id", new_id, is_no(str)), "`id` is 7 must reach no one"),
        (taken_for("id", new_id, is_one(...)), "`id` is missing must reach no one"),
    ),
    *mutants(
        "envelope.id-unique",
        "envelopes.the_gateway_gives_each_envelope_an_id_of_its_own",
        (signing("system/presence", id="presence"), "two envelopes have the id 'presence'"),
        (signing("system/welcome", id="welcome"), "two envelopes have the id 'welcome'"),
        (
            saying(lambda said: said["kind"] == "stream/open" and said.update(id=said["correlation_id"][0])),
            "the gateway gave a stream/open the id of what caused it",
        ),
    ),
    *mutants(
        "envelope.ts-rfc3339",
        "envelopes.a_time_is_one_of_rfc_3339",
        (accepting(lambda said: said.pop("ts")), '`ts` is "yesterday" must reach no one'),
        (taken_for("ts", "2026-01-01T00:00:00Z", is_one(1767225600)), "`ts` is 1767225600 must reach no one"),
        (
            saying(lambda said: said.setdefault("ts", "2026-01-01T00:00:00Z")),
            "not in what was sent: `ts` is missing",
        ),
    ),
    *mutants(
        "envelope.ts-rfc3339",
        "envelopes.the_gateway_tells_the_time_as_rfc_3339_has_it",
        (signing("system/welcome", ts=1767225600), "`ts` of a system/welcome is 1767225600"),
        (signing("system/error", ts=lambda ts: ts.rstrip("Z")), "`ts` of a system/error is '20"),
    ),
    *mutants(
        "envelope.to-array",
        "envelopes.addressees_are_an_array_of_strings",
        (taken_for("to", [], lambda to: isinstance(to, str)), '`to` is "peer" must reach no one'),
        (taken_for("to", [], is_one(None)), "`to` is null must reach no one"),
        (taken_for("to", [], lambda to: to not in (..., [])), "must reach no one"),
        (signing("system/welcome", to=first), "'to' of a system/welcome is 'peer', not an array"),
    ),
    *mutants(
        "correlation.array",
        "envelopes.correlations_are_an_array_of_strings",
        (taken_for("correlation_id", [], is_no(list)), '`correlation_id` is "an-id" must reach no one'),
        (taken_for("correlation_id", [], is_one([7])), "`correlation_id` is [7] must reach no one"),
        (
            signing("system/error", correlation_id=lambda ids: ids and ids[0]),
            "'correlation_id' of a system/error",
        ),
    ),
    *mutants(
        "envelope.payload-object",
        "envelopes.a_payload_is_an_object",
        (taken_for("payload", {}, is_one([])), "`payload` is [] must reach no one"),
        (taken_for("payload", {}, is_one(None)), "`payload` is null must reach no one"),
        (refusing(lambda envelope: not bytes(envelope.payload)), "receives the reasoning/thought"),
        (signing("system/error", payload="no"), "`payload` of a system/error is 'no'"),
    ),
    # Who it is from.
    *mutants(
        "envelope.from-stable",
        "senders.the_same_token_gives_the_same_id",
        (numbered(), "gave 'peer-"),
        (
            saying(lambda said: said["from"] == "peer" and said.update({"from": "peer#1"})),
            "`from` is 'peer#1'",
        ),
    ),
    *mutants(
        "identity.from-verified",
        "senders.nobody_speaks_in_anothers_name",
        (in_anothers_name(lambda said, who: True), "must reach no one"),
        (
            in_anothers_name(lambda said, who: said["from"].lower() == who),
            '`from` is "PEER" must reach no one',
        ),
        (
            in_anothers_name(lambda said, who: said["from"].strip() == who),
            '`from` is "peer " must reach no one',
        ),
        (in_anothers_name(lambda said, who: who in said["from"]), '`from` is "peer " must reach no one'),
        (in_anothers_name(lambda said, who: who == "owner"), "a chat of 'owner' whose `from` is"),
        (in_anothers_name(lambda said, who: said["from"] == "system:gateway"), '`from` is "system:gateway"'),
        (receiving(lambda said, who: said.update({"from": who})), "must reach no one"),
        (receiving(lambda said, who: said.setdefault("from", who)), "`from` is missing must reach no one"),
    ),
    *mutants(
        "identity.from-verified",
        "senders.nobody_acts_in_anothers_name",
        (in_anothers_name(lambda said, who: said["kind"] != "chat"), "was answered"),
    ),
    *mutants(
        "identity.from-verified",
        "senders.a_sender_given_twice_is_no_way_round",
        (taking(last_wins), "sent `from` twice"),
    ),
    *mutants(
        "system.signed-by-gateway",
        "senders.the_gateway_signs_what_it_says",
        (signing("system/error", from_="gateway"), "`from` of a system/error is 'gateway'"),
        (signing("system/presence", from_="system"), "`from` of a system/presence is 'system'"),
        (signing("system/welcome", from_="system:Gateway"), "`from` of a system/welcome is 'system:Gateway'"),
    ),
    *mutants(
        "system.signed-by-gateway",
        "senders.nobody_can_be_invited_as_the_gateway",
        (replaced(members, "is_participant_id", lambda name: True), "is now a participant of that id"),
    ),
    *mutants(
        "system.rejected",
        "senders.nobody_sends_what_is_the_gateways",
        (reserving("system/welcome", "system/presence", "system/error"), "refuses a system/join"),
        (reserving("system/e"), "refuses a system/welcome"),
        (silent(Refusal.RESERVED_KIND), "about a system/welcome"),
        (wrapping(Room, "reject", passed_on_too), "refuses a system/welcome that 'owner' sent"),
    ),
    *mutants(
        "system.rejected",
        "senders.no_capability_opens_what_is_the_gateways",
        (judging(for_its_holders), "refuses a system/welcome"),
    ),
]
