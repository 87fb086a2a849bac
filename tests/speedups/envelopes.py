"""Messages to try a reader of envelopes with: usual ones, strange ones, and such as were spoilt."""

import msgspec
from hypothesis import strategies as st

__all__ = ["HEADER", "messages", "texts", "usual", "written"]

names = st.sampled_from(
    ["protocol", "id", "ts", "from", "to", "kind", "correlation_id", "context", "payload", "x"]
)
texts = st.one_of(
    st.text(max_size=12), st.sampled_from(['"', "\\", '\\"', "{", "]", "é", "\ud7ff", "\U0010ffff"])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
times = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00+0000",
        "2026-06-30T23:59:60Z",
        "Z",
        "",
    ]
)
HEADER = {"protocol": "mew/v0.4", "id": "e1", "from": "ann", "kind": "chat"}


def written(fields: list[tuple[str, object]], gap: str) -> bytes:
    """An object whose fields may occur twice, with what JSON allows between them."""
    pairs = (
        f"{gap}{msgspec.json.encode(name).decode()}{gap}:{gap}{msgspec.json.encode(value).decode()}{gap}"
        for name, value in fields
    )
    return ("{" + ",".join(pairs) + "}").encode()


envelopes = st.builds(
    lambda more, payload, ts, gap, order: written(
        order([*HEADER.items(), ("ts", ts), ("payload", payload), *more]), gap
    ),
    st.lists(st.tuples(names, values), max_size=2),
    st.one_of(values, st.dictionaries(texts, values, max_size=3)),
    times,
    st.sampled_from(["", " ", "\n\t\r "]),
    st.sampled_from([list, lambda fields: fields[::-1]]),
)


def spoilt(message: bytes, at: int, byte: int) -> bytes:
    at %= len(message)
    return message[:at] + bytes((byte,)) + message[at + 1 :]


messages = st.one_of(
    envelopes,
    st.builds(spoilt, envelopes, st.integers(0, 10_000), st.integers(0, 255)),
    st.binary(max_size=40),
)


def usual(sender: str, envelope_id: str, kind: str, **more: object) -> bytes:
    fields = {"protocol": "mew/v0.4", "id": envelope_id, "from": sender, "kind": kind, "payload": {"n": 1}}
    return msgspec.json.encode(fields | more)
