"""`apply` is total: whatever an entry holds that decodes, it decides and never raises, or it would stop every node."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.table import Table, capabilities

from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.json import encode_json
from mew.protocol.kinds import PAYLOADS, RESERVED_PREFIX
from mew.space import Deliver, Refuse, Rules, Space
from mew.space.state import SpaceState

_EXAMPLES = dict.fromkeys(Space.RULES, 25)  # the payloads that the space reads

names = st.sampled_from(
    ["ann", "bob", "eve", "gateway", "system:gateway", "", "g1", "stream-5", "x" * 300, "é\x00"]
)
numbers = (
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0, -1, 2**64, 1e300])
)
written = st.sampled_from(
    [
        {"kind": "chat"},
        {"kind": "*"},
        {"kind": "mcp/*", "except": ["mcp/request", {"kind": "/x/"}]},
        {"kind": "mcp/request", "payload": {"$.a[*]": "x", "n": [1, 1.5, None, True]}},
        {"kind": ["!a", "/(/"]},
        "mcp/request:tools/call:*",
    ]
)
dates = st.sampled_from(
    ["2026-01-01T00:00:30Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "soon"]
)
directions = st.sampled_from(["upload", "download", "sideways"])
leaf = st.none() | st.booleans() | numbers | names | dates | directions | st.text(max_size=5) | written
values = st.recursive(
    leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def payloads(draw: st.DrawFn, kind: str) -> bytes | None:
    """Mostly the fields that the kind has, with values that may fit them; sometimes one twice; sometimes none."""
    fields = [field.encode_name for field in msgspec.structs.fields(PAYLOADS[kind])]
    key = st.sampled_from([*fields, "x"]) if fields else st.just("x")
    pairs = draw(st.lists(st.tuples(key, values), max_size=len(fields) + 1))
    if not pairs and draw(st.booleans()):
        return None
    return b"{" + b",".join(encode_json(name) + b":" + encode_json(value) for name, value in pairs) + b"}"


def _table() -> Table:
    """Ann may do anything, bob only chat; there are a grant, streams, a pause and an invitation."""
    profiles = {ParticipantId("ann"): capabilities(["*"]), ParticipantId("bob"): capabilities(["chat"])}
    table = Table(Rules(id="desk", profiles=profiles))
    table.join("ann")
    table.join("bob")
    table.send(
        "ann", "capability/grant", {"recipient": "bob", "capabilities": ["mcp/*"], "ttl_seconds": 60}, id="g1"
    )
    table.send("ann", "stream/request", {"direction": "upload"})
    table.send("ann", "space/invite", {"participant_id": "eve", "initial_capabilities": ["*"]}, id="i1")
    table.send("ann", "participant/pause", {"timeout_seconds": 30}, to=["eve"])
    return table


@pytest.mark.parametrize("kind", PAYLOADS)
def test_no_payload_makes_it_raise(kind: str) -> None:
    @settings(max_examples=_EXAMPLES.get(kind, 5), deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        table = _table()
        for who in data.draw(
            st.lists(st.sampled_from(["ann", "bob", "eve", "nobody"]), min_size=1, max_size=3)
        ):
            payload = data.draw(payloads(kind))
            fields: dict[str, Any] = {
                "to": data.draw(st.lists(st.sampled_from(["ann", "bob", "eve"]), max_size=2))
            }
            fields["correlation_id"] = data.draw(
                st.lists(st.sampled_from(["g1", "i1", "gw-t-5.0"]), max_size=2)
            )
            try:
                decisions = table.send(who, kind, payload, **fields)
            except ProtocolError:
                continue  # not an envelope: it never gets here
            shown = [d for d in decisions if isinstance(d, Deliver) and d.envelopes.senders == (who,)]
            refused = [d for d in decisions if isinstance(d, Refuse)]
            assert len(shown) + len(refused) == 1
        assert SpaceState.restore(table.space.state.snapshot()) == table.space.state
        table.wait(60)

    check()


@pytest.mark.parametrize("kind", PAYLOADS)
def test_without_a_capability_no_kind_passes(kind: str) -> None:
    table = _table()
    table.send("ann", "capability/revoke", {"recipient": "bob", "capabilities": ["*"]})
    [refused] = table.send("bob", kind, {})
    assert isinstance(refused, Refuse)
    reserved = kind.startswith(RESERVED_PREFIX)
    assert refused.refused.refusal is (Refusal.RESERVED_KIND if reserved else Refusal.CAPABILITY_VIOLATION)
