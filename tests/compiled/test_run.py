"""The compiled part takes envelopes at once that Python would take one by one, and no others."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled.envelopes import messages, usual

from mew.gateway import deliveries, rate
from mew.gateway.admit import admit
from mew.gateway.pages import Record
from mew.gateway.websocket import Opcode
from mew.protocol.envelope import PROTOCOL, ParticipantId
from mew.protocol.errors import ProtocolError
from mew.space import Connection
from mew.space.space import Standing
from mew.space.state import GATEWAY_ID_PREFIX

_compiled = pytest.importorskip("mew._compiled", reason="no C compiler was found when mew was installed")

Said: TypeAlias = tuple[str, int, bytes]

BYTES_MAX = 1000
AT = datetime(2026, 1, 1, tzinfo=UTC)
OFTEN = ["chat", "mcp/request", "x/é"]


class Speaker:
    """Who says something, as far as it counts here."""

    def __init__(self, who: str, bucket: type[rate.Bucket], tokens: int, **more: bool) -> None:
        self.id = Connection(f"c-{who}")
        self.who = ParticipantId(who)
        self.bucket = bucket(1.0, tokens)
        self.lenient = more.get("lenient", False)
        self.known_by = None if self.lenient else (self.id, self.who, self.bucket)
        self.closed = more.get("closed", False)


def standing(*, addressed: bool = False) -> Standing:
    return Standing(
        free={"ann": {"chat", "x/é"}, "bob": {"mcp/request"}, "éva": {"chat"}},
        recent={"old": "ann"},
        connections={Connection(f"c-{who}"): ParticipantId(who) for who in ("ann", "bob", "éva", "old")},
        addressed=addressed,
    )


def one_by_one(
    heard: list[tuple[Speaker, int, bytes]],
    start: int,
    standing: Standing,
    record: type[Record],
    seq: int,
    at: datetime,
    now_s: float,
    bytes_max: int,
) -> tuple[list[Record], dict[str, str], int]:
    """What `plain_run` does, as a room does it with one message after the other."""
    records: list[Record] = []
    said: dict[str, str] = {}
    for number in range(start, len(heard)):
        who, opcode, data = heard[number]
        if who.closed:
            continue
        if opcode != Opcode.TEXT or who.lenient or standing.connections.get(who.id) != who.who:
            return records, said, number
        try:
            envelope = admit(data, who.who, bytes_max=bytes_max)
        except ProtocolError:
            return records, said, number
        is_known = envelope.id in standing.recent or envelope.id in said
        is_free = envelope.kind in standing.free.get(who.who, ()) and not is_known
        if envelope.id.startswith(GATEWAY_ID_PREFIX) or not is_free or who.bucket.take(now_s):
            return records, said, number
        said[envelope.id] = who.who
        only = None
        if standing.addressed and envelope.to:
            only = tuple(map(ParticipantId, dict.fromkeys((*envelope.to, who.who))))
        records.append(record.of(envelope, data, at=at, only=only, seq=seq + len(records), sender=who.who))
    return records, said, len(heard)


def run(
    run_of: Callable[..., Any],
    bucket: type[rate.Bucket],
    script: list[Said],
    *,
    addressed: bool,
) -> tuple[list[Record], dict[str, str], int]:
    speakers = {
        "ann": Speaker("ann", bucket, 5),
        "bob": Speaker("bob", bucket, 2),
        "éva": Speaker("éva", bucket, 9),
        "gone": Speaker("gone", bucket, 9),
        "closed": Speaker("closed", bucket, 9, closed=True),
        "lenient": Speaker("ann", bucket, 9, lenient=True),
    }
    heard = [(speakers[who], opcode, message) for who, opcode, message in script]
    found: tuple[list[Record], dict[str, str], int] = run_of(
        heard, 0, standing(addressed=addressed), Record, 7, AT, 1000.0, BYTES_MAX
    )
    return found


some_names = st.lists(st.sampled_from(["ann", "bob", "éva", "x"]), max_size=4)
plain_ones = st.builds(
    usual,
    st.sampled_from(["ann", "bob", "éva"]),
    st.one_of(st.sampled_from(["a", "b", "old", "gw-1", "é"]), st.uuids().map(str)),
    st.sampled_from(OFTEN),
    to=some_names,
    correlation_id=some_names,
    context=st.sampled_from(["c", "c/d"]),
)
said = st.one_of(
    st.tuples(st.sampled_from(["ann", "bob", "éva"]), st.just(1), plain_ones),
    st.tuples(
        st.sampled_from(["ann", "bob", "éva", "gone", "closed", "lenient"]),
        st.sampled_from([1, 1, 1, 2]),
        st.one_of(plain_ones, messages),
    ),
)


@given(st.lists(said, max_size=12), st.booleans())
def test_what_it_takes_at_once_python_takes_the_same(script: list[Said], addressed: bool) -> None:  # noqa: FBT001
    records, ids, end = run(_compiled.plain_run, _compiled.Bucket, script, addressed=addressed)
    whole = run(one_by_one, rate.BucketInPython, script[:end], addressed=addressed)
    assert whole == (records, ids, end)
    assert _compiled.text_frames(records) == deliveries.text_frames_in_python(records)


@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "éva"]), st.just(1), plain_ones), max_size=12),
    st.booleans(),
)
def test_of_what_is_usual_it_leaves_nothing_to_python(script: list[Said], addressed: bool) -> None:  # noqa: FBT001
    assert run(_compiled.plain_run, _compiled.Bucket, script, addressed=addressed) == run(
        one_by_one, rate.BucketInPython, script, addressed=addressed
    )


@given(
    st.floats(0.1, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 3), max_size=40),
)
def test_a_bucket_gives_as_much_as_in_python(per_second: float, burst: int, waits: list[float]) -> None:
    one, other, now_s = _compiled.Bucket(per_second, burst), rate.BucketInPython(per_second, burst), 5.0
    for wait_s in waits:
        now_s += wait_s
        assert one.take(now_s) == other.take(now_s)


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ([], 0, standing(), Record, 1, AT, 1.0),
        ((), 0, standing(), Record, 1, AT, 1.0, 1),
        ([], -1, standing(), Record, 1, AT, 1.0, 1),
        ([], "0", standing(), Record, 1, AT, 1.0, 1),
        ([], 0, ({}, {}, {}), Record, 1, AT, 1.0, 1),
        ([], 0, ([], {}, {}, False), Record, 1, AT, 1.0, 1),
        ([], 0, standing(), Record, 1, AT, "now", 1),
        ([None], 0, standing(), Record, 1, AT, 1.0, 1),
        ([(None, 1, "text")], 0, standing(), Record, 1, AT, 1.0, 1),
        ([(Speaker("ann", rate.Bucket, 1), "1", b"{}")], 0, standing(), Record, 1, AT, 1.0, 1),
    ],
)
def test_a_run_of_something_else_is_a_type_error(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _compiled.plain_run(*wrong)


def test_what_fails_in_a_guest_is_raised() -> None:
    with pytest.raises(AttributeError, match="closed"):
        _compiled.plain_run([(object(), 1, b"{}")], 0, standing(), Record, 1, AT, 1.0, 1)
    with pytest.raises(OverflowError):
        _compiled.plain_run(
            [(Speaker("ann", rate.Bucket, 1), 1 << 70, b"{}")], 0, standing(), Record, 1, AT, 1.0, 1
        )


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        (usual("ann", "x" * 256, "chat"), 1),
        (usual("ann", "x" * 257, "chat"), 0),
        (usual("ann", "gw", "chat"), 1),
        (usual("ann", f"{GATEWAY_ID_PREFIX}1", "chat"), 0),
        (usual("ann", "e1", "chat", protocol=PROTOCOL), 1),
        (usual("ann", "e1", "chat", protocol="mew/v0.5"), 0),
        (usual("ann", "e1", "chat", to=["bob"] * 8), 1),
        (usual("ann", "e1", "chat", payload={"text": "x" * (BYTES_MAX - 82)}), 1),
        (usual("ann", "e1", "chat", payload={"text": "x" * (BYTES_MAX - 81)}), 0),
    ],
)
def test_its_bounds_are_those_of_python(message: bytes, taken: int) -> None:
    script = [("ann", int(Opcode.TEXT), message)]
    assert run(_compiled.plain_run, _compiled.Bucket, script, addressed=False)[2] == taken
    assert run(one_by_one, rate.BucketInPython, script, addressed=False)[2] == taken
