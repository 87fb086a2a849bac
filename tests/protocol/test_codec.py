"""The codec against design §3.5: what is an envelope, what is not, and that all read what was checked."""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mew.protocol import codec
from mew.protocol.capability.values import Repeated
from mew.protocol.codec import decode, encode, envelope_id_in
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.json import decode_json, decode_payload, encode_json
from mew.protocol.kinds import Chat, Grant, StreamRequest
from mew.speedups import TWINS

HEADER: dict[str, Any] = {"protocol": "mew/v0.4", "id": "e1", "from": "ann", "kind": "chat"}


@pytest.fixture(autouse=True, scope="module", params=["compiled", "in Python"])
def as_built(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds with the compiled part and without it."""
    if request.param == "compiled":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "is_plain", TWINS["is_plain"])
        yield


def written(**fields: Any) -> bytes:
    """An envelope with these fields; `...` leaves one out, `sender` is `from`."""
    if "sender" in fields:
        fields["from"] = fields.pop("sender")
    return json.dumps({k: v for k, v in (HEADER | fields).items() if v is not ...}).encode()


def with_text(more: str) -> bytes:
    """An envelope that ends in this text, which starts after a comma."""
    return json.dumps(HEADER)[:-1].encode() + b"," + more.encode("utf-8", "surrogatepass") + b"}"


def refused(received: bytes) -> Refusal:
    with pytest.raises(ProtocolError) as caught:
        decode(received)
    return caught.value.refusal


# What is an envelope.


def test_the_smallest_envelope_has_four_fields() -> None:
    envelope = decode(written())
    assert (envelope.protocol, envelope.id, envelope.sender, envelope.kind) == (
        "mew/v0.4",
        "e1",
        "ann",
        "chat",
    )
    assert (envelope.to, envelope.correlation_id) == ((), ())
    assert envelope.ts is envelope.context is UNSET
    assert bytes(envelope.payload) == b""


def test_every_field_is_read() -> None:
    envelope = decode(
        b'{"protocol":"mew/v0.4","id":"e2","ts":"2025-08-26T14:00:00Z","from":"robot","to":["ann","bob"],'
        b'"kind":"mcp/request","correlation_id":["e1","e0"],"context":"work/step-1","payload":{"n": [1, 2.50]}}'
    )
    assert envelope.ts == datetime(2025, 8, 26, 14, tzinfo=UTC)
    assert envelope.to == ("ann", "bob")
    assert envelope.correlation_id == ("e1", "e0")
    assert envelope.context == "work/step-1"
    assert bytes(envelope.payload) == b'{"n": [1, 2.50]}'


@pytest.mark.parametrize(
    "fields",
    [
        {"to": []},
        {"correlation_id": []},
        {"context": ""},
        {"payload": {}},
        {"to": [], "correlation_id": [], "payload": {}, "context": 'a "quoted" \\ word'},
        {"id": "é" * 256, "sender": "ünï", "kind": "vendor/kind"},
        {"colour": "red", "nested": {"a": [None, True, 1e300]}, "payload": {"x": None}},
        {'a "quoted" field \\': 1, "": 2},
    ],
)
def test_unusual_envelopes_pass(fields: dict[str, Any]) -> None:
    decode(written(**fields))


def test_whitespace_and_the_order_of_fields_do_not_matter() -> None:
    spaced = json.dumps(dict(reversed(HEADER.items())) | {"to": ["b"], "payload": {"a": "b"}}, indent="\t")
    envelope = decode(b" \r\n\t" + spaced.encode() + b"\n ")
    assert (envelope.id, envelope.to) == ("e1", ("b",))
    assert json.loads(bytes(envelope.payload)) == {"a": "b"}


def test_a_name_may_be_written_with_escapes() -> None:
    assert decode(written().replace(b'"kind"', rb'"k\u0069nd"')).kind == "chat"


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5_000, "1" + "0" * 400 + ".5", "1e-999", "-0"])
@pytest.mark.parametrize("more", ["", ',"unknown":1'])
def test_numbers_nobody_inspects_may_have_any_size(number: str, more: str) -> None:
    decode(with_text(f'"payload":{{"n":{number}}}{more}'))


# What is not.


@pytest.mark.parametrize("field", ["protocol", "id", "from", "kind"])
def test_a_required_field_is_there_and_not_empty(field: str) -> None:
    assert refused(written(**{field: ...})) is Refusal.MALFORMED
    decoded_anyway = {Refusal.MALFORMED, Refusal.WRONG_VERSION}
    assert refused(written(**{field: ""})) in decoded_anyway


@pytest.mark.parametrize(
    "field", ["protocol", "id", "ts", "from", "to", "kind", "correlation_id", "context", "payload"]
)
@pytest.mark.parametrize("value", [None, True, 0, 1.5, "\x00text", ["a", 1], [["a"]], [None], {"a": 1}])
def test_a_field_of_another_type_is_malformed(field: str, value: Any) -> None:
    strings = field in ("id", "from", "kind", "context") and isinstance(value, str)
    if strings or (field == "payload" and isinstance(value, dict)):
        decode(written(**{field: value}))
    elif field == "protocol" and isinstance(value, str):
        assert refused(written(protocol=value)) is Refusal.WRONG_VERSION
    else:
        assert refused(written(**{field: value})) is Refusal.MALFORMED


@pytest.mark.parametrize(
    "version", ["mew/v0.3", "mew/v0.40", "MEW/v0.4", " mew/v0.4", "mew/v0.4\n", "", "x" * 10_000]
)
def test_any_other_version_is_refused_as_that(version: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(written(protocol=version))
    assert caught.value.refusal is Refusal.WRONG_VERSION
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("field", ["to", "correlation_id"])
def test_lists_of_names_have_a_bound_and_so_has_each_name(field: str) -> None:
    decode(written(**{field: ["x" * 256] * 1024}))
    for wrong in (["ab"] * 1025, ["ok", ""], ["x" * 257], ["ab"] * 200_000):
        with pytest.raises(ProtocolError, match=rf"^field '{field}.*length [<>]= (1024|1|256)$") as caught:
            decode(written(**{field: wrong}))
        assert caught.value.refusal is Refusal.MALFORMED


def test_names_and_contexts_have_a_bound() -> None:
    for field in ("id", "from", "kind"):
        decode(written(**{field: "x" * 256}))
        assert refused(written(**{field: "x" * 257})) is Refusal.MALFORMED
    decode(written(context="x" * 4096))
    assert refused(written(context="x" * 4097)) is Refusal.MALFORMED


@pytest.mark.parametrize("payload", ["[]", '"{}"', "null", "1", "true", "[{}]"])
def test_a_payload_is_an_object(payload: str) -> None:
    assert refused(with_text(f'"payload":  {payload}')) is Refusal.MALFORMED


@pytest.mark.parametrize(
    "received",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b"[" + written() + b"]",
        b'"text"',
        b"#stream#data",
        b"\xef\xbb\xbf" + written(),
        b"\x0c" + written(),
        "\u00a0".encode() + written(),
        written() + b"x",
        written() + written(),
        written() + b"\x00",
        written()[:-1],
        written().decode().encode("utf-16"),
        written().decode().encode("utf-16-le"),
        written().decode().encode("utf-32"),
        written().replace(b'"', b"'"),
        b"/* hi */" + written(),
    ],
)
def test_anything_but_one_json_object_is_malformed(received: bytes) -> None:
    assert refused(received) is Refusal.MALFORMED


@pytest.mark.parametrize(
    "constant", ["NaN", "Infinity", "-Infinity", "nan", "01", "-01", "1.", ".5", "+1", "0x1", "1e"]
)
@pytest.mark.parametrize("field", ["payload", "unknown"])
def test_what_is_no_json_number_is_malformed(constant: str, field: str) -> None:
    assert refused(with_text(f'"{field}":{{"n":{constant}}}')) is Refusal.MALFORMED


@pytest.mark.parametrize(
    "text", ["\n", "\x00", "\x1f", "\\x41", "\\u12", "\\ud800", "\\udc00\\ud800", "\ud800"]
)
@pytest.mark.parametrize("field", ["context", "unknown"])
def test_a_string_that_readers_treat_differently_is_malformed(text: str, field: str) -> None:
    assert refused(with_text(f'"{field}":"{text}"')) is Refusal.MALFORMED
    assert refused(with_text(f'"payload":{{"{field}":"{text}"}}')) is Refusal.MALFORMED
    assert refused(with_text(f'"payload":{{"{text}":0}}')) is Refusal.MALFORMED


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"])
@pytest.mark.parametrize("place", ["id", "unknown", "payload"])
def test_invalid_utf8_is_malformed_wherever_it_is(bad: bytes, place: str) -> None:
    value = {"t": "HERE"} if place == "payload" else "HERE"
    assert refused(written(**{place: value}).replace(b"HERE", bad)) is Refusal.MALFORMED


# Nesting.


def nested(levels: int, *, field: str, opening: str = "[") -> bytes:
    """An envelope `levels` deep, itself the first of them."""
    closing = {"[": "]", '{"a":': "}"}[opening]
    inside = levels - 2 if field == "payload" else levels - 1
    innermost = "" if opening == "[" else '"a"'
    value = opening * inside + innermost + closing * inside
    return with_text(f'"payload":{{"a":{value}}}' if field == "payload" else f'"{field}":{value}')


@pytest.mark.parametrize("field", ["payload", "unknown"])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_64_levels_pass_and_65_do_not(field: str, opening: str) -> None:
    decode(nested(64, field=field, opening=opening))
    for levels in (65, 66, 1_000, 50_000):
        with pytest.raises(ProtocolError, match="nested deeper than 64"):
            decode(nested(levels, field=field, opening=opening))


def test_only_brackets_outside_of_strings_nest() -> None:
    brackets = "[{" * 100 + '"\\' + "}" * 100
    decode(written(context=brackets, payload={brackets: [brackets, {}, [], {"a": [[]]}] * 50}))


def test_many_brackets_side_by_side_are_not_deep() -> None:
    decode(written(payload={"a": [[[], {}]] * 1_000}))


# One key, once.


@pytest.mark.parametrize(
    "more",
    [
        '"kind":"chat"',
        r'"k\u0069nd":"chat"',
        r'"\u006b\u0069\u006e\u0064":"mcp/request"',
        '"id":"e1"',
        '"protocol":"mew/v0.4"',
        '"from":"bob"',
        '"to":[],"to":[]',
        '"to":["a"],"to":[]',
        '"to":[],"to":["a"]',
        '"correlation_id":["a"],"correlation_id":["b"]',
        '"context":"a","context":"b"',
        '"ts":"2025-08-26T14:00:00Z","ts":"2025-08-26T14:00:00Z"',
        '"payload":{},"payload":{}',
        '"payload":{"a":"b"},"payload":{}',
        r'"payload":{"a":"\"\""},"p\u0061yload":{}',
        '"payload":1,"payload":{}',
        '"unknown":1,"unknown":1',
        r'"unkn\u006fwn":1,"unknown":2',
        r'"a\"b":1,"a\"b":2',
        r'"a\"b":1,"a\u0022b":2',
        r'"a\u0022":1,"a\u0022":2',
        r'"context":"\"\"","to":[],"to":[]',
        r'"context":"\u0022\u0022","to":[],"to":[]',
        '"":1,"":2',
    ],
)
def test_a_field_given_twice_is_malformed(more: str) -> None:
    assert refused(with_text(more)) is Refusal.MALFORMED


@pytest.mark.parametrize("wrong", ['"kind":5', '"id":null', '"to":"bob"', '"from":""', '"ts":"then"'])
def test_a_second_field_cannot_mend_a_first_that_is_wrong(wrong: str) -> None:
    whole = '"protocol":"mew/v0.4","id":"e1","from":"ann","kind":"chat","to":[],"ts":"2016-12-31T23:59:60Z"'
    assert refused(f"{{{wrong},{whole}}}".encode()) is Refusal.MALFORMED
    assert refused(f"{{{whole},{wrong}}}".encode()) is Refusal.MALFORMED


def test_a_key_twice_inside_a_payload_nobody_inspects_passes() -> None:
    assert bytes(decode(with_text('"payload":{"a":1,"a":2}')).payload) == b'{"a":1,"a":2}'


# Time.


@pytest.mark.parametrize(
    ("ts", "moment"),
    [
        ("2025-08-26T14:00:00Z", datetime(2025, 8, 26, 14, tzinfo=UTC)),
        ("2025-08-26t14:00:00z", datetime(2025, 8, 26, 14, tzinfo=UTC)),
        ("2025-08-26 14:00:00Z", datetime(2025, 8, 26, 14, tzinfo=UTC)),
        ("2025-08-26T14:00:00.5Z", datetime(2025, 8, 26, 14, 0, 0, 500_000, tzinfo=UTC)),
        ("2025-08-26T14:00:00.123456789Z", datetime(2025, 8, 26, 14, 0, 0, 123_457, tzinfo=UTC)),
        ("2025-08-26T14:00:00-00:00", datetime(2025, 8, 26, 14, tzinfo=UTC)),
        ("2025-08-26T14:00:00+05:30", datetime(2025, 8, 26, 8, 30, tzinfo=UTC)),
        ("2024-02-29T00:00:00-23:59", datetime(2024, 2, 29, 23, 59, tzinfo=UTC)),
        ("0001-01-01T00:00:00+01:00", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2016-12-31T23:59:60.75Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("1990-12-31t15:59:60-08:00", datetime(1990, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2017-01-01T05:29:60+05:30", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_ts_is_any_rfc_3339_time(ts: str, moment: datetime) -> None:
    assert decode(written(ts=ts)).ts == moment
    assert decode(written(ts=ts, unknown=1)).ts == moment


@pytest.mark.parametrize(
    "ts",
    [
        "",
        "now",
        "2025-08-26",
        "14:00:00Z",
        "2025-08-26T14:00:00",
        "2025-08-26T14:00Z",
        "2025-08-26T14:00:00.Z",
        "2025-08-26T14:00:00,5Z",
        "2025-08-26T14:00:00 Z",
        "2025-08-26T14:00:00+24:00",
        "2025-08-26T14:00:00+0530",
        "2025-08-26T14:00:00+0000",
        "2025-08-26T14:00:00.5-0000",
        "2025-08-26T24:00:00Z",
        "2025-02-30T14:00:00Z",
        "2025-8-26T14:00:00Z",
        "20250826T140000Z",
        "2025-08-26T14:00:60Z",
        "2016-12-31T23:59:60",
        "2016-12-31T23:59:60+01:00",
        "2016-12-31T23:59:61Z",
        "2016-02-30T23:59:60Z",
        "1756216800",
        " 2025-08-26T14:00:00Z",
        "2025-08-26T14:00:00Z:60Z",
    ],
)
def test_ts_is_nothing_else(ts: str) -> None:
    assert refused(written(ts=ts)) is Refusal.MALFORMED


def test_a_leap_second_leaves_the_rest_as_it_came() -> None:
    payload = '{"ts" : "2016-12-31T23:59:60Z", "n":1.50}'
    envelope = decode(with_text(f'"to":["b"],"ts":"2016-12-31T23:59:60Z","payload":{payload}'))
    assert (envelope.id, envelope.to) == ("e1", ("b",))
    assert bytes(envelope.payload) == payload.encode()


# Properties.

texts = st.text(max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=4)
moments = st.datetimes(timezones=st.just(UTC))
names = st.text(min_size=1, max_size=12)
headers = st.fixed_dictionaries(
    {"protocol": st.just("mew/v0.4"), "id": names, "from": names, "kind": names},
    optional={
        "ts": moments.map(datetime.isoformat),
        "to": st.lists(names, max_size=3),
        "correlation_id": st.lists(names, max_size=3),
        "context": texts,
        "payload": objects,
        "unknown": values,
    },
)
KNOWN = ("protocol", "id", "ts", "from", "to", "kind", "correlation_id", "context", "payload")


@st.composite
def spelled(draw: st.DrawFn, text: str) -> str:
    """A JSON string for this text, some characters escaped that need not be."""
    out = []
    for char in text:
        plain = json.dumps(char, ensure_ascii=draw(st.booleans()))[1:-1]
        out.append(f"\\u{ord(char):04x}" if ord(char) < 0x10000 and draw(st.booleans()) else plain)
    return '"' + "".join(out) + '"'


@st.composite
def almost_envelopes(draw: st.DrawFn) -> bytes:
    """A valid envelope, to which fields were added that may be there already, names and texts spelled oddly."""
    pairs = list(draw(headers).items())
    again = st.tuples(st.sampled_from(KNOWN) | st.sampled_from(['"', "a", '\\"']), values | objects)
    pairs += draw(st.lists(again, max_size=2))
    pairs += draw(st.lists(st.sampled_from(pairs), max_size=1))
    fields = []
    for name, value in draw(st.permutations(pairs)):
        text = draw(spelled(value)) if isinstance(value, str) else json.dumps(value)
        fields.append(draw(spelled(name)) + ":" + text)
    return ("{" + ",".join(fields) + "}").encode("utf-8", "surrogatepass")


def check_that_all_read_what_was_checked(received: bytes) -> None:
    """Whatever decodes, the standard library reads alike, and names no field twice."""
    try:
        envelope = decode(received)
    except ProtocolError:
        return
    pairs: list[tuple[str, Any]] = json.loads(
        received, object_pairs_hook=list, parse_int=str, parse_float=str
    )
    assert len({name for name, _ in pairs}) == len(pairs), received
    fields = dict(pairs)
    assert fields["protocol"] == "mew/v0.4"
    assert (fields["id"], fields["from"], fields["kind"]) == (envelope.id, envelope.sender, envelope.kind)
    assert fields.get("to", []) == list(envelope.to)
    assert fields.get("correlation_id", []) == list(envelope.correlation_id)
    assert fields.get("context", UNSET) == envelope.context
    assert ("ts" in fields) == (envelope.ts is not UNSET)
    assert ("payload" in fields) == bool(bytes(envelope.payload))


@given(st.binary(max_size=64) | st.text(alphabet='{}[]",:\\u0022 eE+-.019', max_size=24).map(str.encode))
@example(b"\\")
@example(b'{"id')
def test_random_bytes_raise_nothing_but_protocol_error(received: bytes) -> None:
    check_that_all_read_what_was_checked(received)
    envelope_id_in(received)
    with suppress(ProtocolError):
        decode_json(received)
    with suppress(ProtocolError):
        decode_payload(Raw(received), Chat)


@given(objects.map(json.dumps) | values.map(json.dumps))
def test_arbitrary_json_raises_nothing_but_protocol_error(text: str) -> None:
    check_that_all_read_what_was_checked(text.encode())
    envelope_id_in(text.encode())
    assert decode_json(text.encode()) == json.loads(text)


@given(
    headers.map(json.dumps),
    st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 4), st.binary(max_size=4)), min_size=1, max_size=3
    ),
)
def test_a_damaged_envelope_raises_nothing_but_protocol_error(
    text: str, cuts: list[tuple[int, int, bytes]]
) -> None:
    received = text.encode()
    for at, length, put in cuts:
        at %= len(received) + 1
        received = received[:at] + put + received[at + length :]
    check_that_all_read_what_was_checked(received)


@pytest.mark.slow
@given(almost_envelopes())
def test_no_second_field_hides_behind_escapes_or_unknown_fields(received: bytes) -> None:
    check_that_all_read_what_was_checked(received)


@given(headers)
def test_an_envelope_with_each_field_once_decodes(fields: dict[str, Any]) -> None:
    check_that_all_read_what_was_checked(json.dumps(fields).encode())
    assert decode(json.dumps(fields).encode()).id == fields["id"]
    assert decode(json.dumps(fields, ensure_ascii=False, indent=1).encode()).kind == fields["kind"]


@given(headers)
def test_what_is_encoded_decodes_to_the_same(fields: dict[str, Any]) -> None:
    envelope = decode(json.dumps(fields).encode())
    again = decode(encode(envelope))
    assert encode(again) == encode(envelope)
    for field in ("protocol", "id", "ts", "sender", "to", "kind", "correlation_id", "context"):
        assert getattr(again, field) == getattr(envelope, field)
    assert bytes(again.payload) == bytes(envelope.payload)


def test_an_envelope_we_make_leaves_out_what_it_has_not() -> None:
    envelope = Envelope(protocol="mew/v0.4", id="1", sender="ann", kind="chat", payload=Raw(b'{"text":"hi"}'))
    assert encode(envelope) == (
        b'{"protocol":"mew/v0.4","id":"1","from":"ann","kind":"chat","payload":{"text":"hi"}}'
    )


# Payloads.


def test_json_with_a_key_twice_says_where() -> None:
    read = decode_json(rb'{"a":{"b":1,"\u0062":2,"c":3},"d":[{"e":0}]}')
    assert not isinstance(read, Repeated)
    assert isinstance(read["a"], Repeated)
    assert read["a"].repeated == {"b"}
    assert read == {"a": {"b": 2, "c": 3}, "d": [{"e": 0}]}


@given(
    st.recursive(
        texts.map(json.dumps) | st.just("1"),
        lambda inner: st.lists(st.tuples(texts.flatmap(spelled), inner), max_size=3).map(
            lambda pairs: "{ " + ", ".join(f"{name}: {value}" for name, value in pairs) + "}"
        ),
    )
)
def test_every_repeated_key_is_found(text: str) -> None:
    def repeats(value: Any) -> bool:
        if isinstance(value, list):  # an object's pairs
            return len(dict(value)) < len(value) or any(repeats(inner) for _, inner in value)
        return False

    def found(value: Any) -> bool:
        return isinstance(value, dict) and (isinstance(value, Repeated) or any(map(found, value.values())))

    expected = repeats(json.loads(text, object_pairs_hook=list))
    assert found(decode_json(text.encode())) == expected
    assert decode_json(text.encode()) == json.loads(text)


def test_a_payload_becomes_its_struct() -> None:
    assert decode_payload(Raw(b'{"text":"hi","more":[1]}'), Chat) == Chat(text="hi")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b'{"text":null}',
        b'{"text":1}',
        b'{"text":"a","text":"a"}',
        b'{"text":"a","more":{"x":1,"x":2}}',
        b'{"text":"a","more":[{"x":1,"x":2}]}',
        b'{"text":"a","n":1e400}',
        b'{"text":"a","n":' + b"9" * 5_000 + b"}",
        b"{" + b'"a":[' * 2_000,
    ],
)
def test_a_payload_that_does_not_fit_is_invalid(payload: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_payload(Raw(payload), Chat)
    assert caught.value.refusal is Refusal.INVALID_PAYLOAD


@pytest.mark.parametrize(
    "payload",
    [
        '{"direction":"sideways"}',
        '{"direction":"upload","target":[]}',
        '{"direction":"upload","target":null}',
    ],
)
def test_a_stream_request_that_does_not_fit_is_invalid(payload: str) -> None:
    with pytest.raises(ProtocolError):
        decode_payload(Raw(payload.encode()), StreamRequest)


@pytest.mark.parametrize("seconds", ["-1", "1e300", '"60"', "null"])
def test_a_grant_has_a_bounded_time_to_live(seconds: str) -> None:
    with pytest.raises(ProtocolError):
        decode_payload(
            Raw(f'{{"recipient":"a","capabilities":["chat"],"ttl_seconds":{seconds}}}'.encode()), Grant
        )


@pytest.mark.parametrize(
    "received",
    [b"1e400", b"9" * 5_000, b"[" * 50_000, b"\xff", b"NaN", b"", b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}"],
)
def test_what_is_not_readable_json_is_a_protocol_error(received: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_json(received)
    with pytest.raises(ProtocolError):
        decode_json(b" " + received)


@pytest.mark.parametrize("levels", [100, 900, 990, 5_000])
def test_deep_json_with_a_key_twice_is_a_protocol_error_at_worst(levels: int) -> None:
    with suppress(ProtocolError):
        decode_json(b'{"a":1,"a":' + b"[" * levels + b"]" * levels + b"}")


@given(values)
def test_any_value_makes_the_round_trip(value: Any) -> None:
    assert decode_json(encode_json(value)) == value


# Envelopes that do not decode.


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b'{"id":"e1"}', "e1"),
        (b'{"id":"e1","kind":5,"to":null}', "e1"),
        (b'{"id":"' + b"x" * 256 + b'"}', "x" * 256),
        (b'{"id":"' + b"x" * 257 + b'"}', None),
        (b'{"id":""}', None),
        (b'{"id":5}', None),
        (b'{"id":null}', None),
        (b"{}", None),
        (b'{"id":"e1"', None),
        (b'{"id":"\xff"}', None),
        (b'["id"]', None),
        (b'{"id":"e1","a":' + b"[" * 10_000, None),
    ],
)
def test_a_refusal_names_the_id_where_there_is_one(received: bytes, expected: str | None) -> None:
    assert envelope_id_in(received) == expected


# What hostile bytes cost.


@pytest.mark.parametrize(
    "received",
    [
        b"[" * 65 + b'"' + rb"\"" * 500_000,
        b"[" * 1_000_000,
        with_text('"payload":{"a":[' + "[]," * 300_000 + "1]}"),
        with_text('"unknown":1,"payload":{"a":[' + "{}," * 300_000 + "1]}"),
        with_text('"unknown":1,"unknown":[' + "{}," * 300_000 + "1]"),
        with_text('"unknown":"' + r"\"" * 500_000 + '"'),
        with_text('"ts":"' + ":00:60" * 150_000 + '"'),
        with_text('"ts":"' + ":00:60." + "1" * 900_000 + '"'),
        with_text(",".join(f'"f{n}":"{n}"' for n in range(40_000))),
    ],
)
def test_a_megabyte_of_malice_costs_little(received: bytes) -> None:
    started = process_time()
    with suppress(ProtocolError):
        decode(received)
    assert process_time() - started < 0.5


def test_of_a_large_message_only_the_beginning_is_searched_for_an_id() -> None:
    rest = b", " * 100_000  # no JSON
    assert envelope_id_in(b'{"protocol": "mew/v0.4", "id": "e-\\u0031", ' + rest) == "e-1"
    assert envelope_id_in(b'{"id" :"e"' + rest) == "e"
    assert envelope_id_in(b'{"id": 7' + rest) is None
    assert envelope_id_in(rest + b'"id": "e"}') is None
