"""Who may be called what (design §3.10), and that an envelope is a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mew.protocol.envelope import GATEWAY, PROTOCOL, Envelope, is_participant_id, similar_id
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Chat


@pytest.mark.parametrize(
    "name", ["a", "Z", "0", "ann", "user@example.com", "robot-7.b_c", "x" * 128, "systems"]
)
def test_these_are_ids_of_participants(name: str) -> None:
    assert is_participant_id(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        ".a",
        "_a",
        "@a",
        "a b",
        "a/b",
        "a:b",
        "a#b",
        "ann\n",
        "é",
        "٣",
        "x" * 129,
        "system",
        "gateway",
        GATEWAY,
    ],
)
def test_these_are_not(name: str) -> None:
    assert not is_participant_id(name)


@given(st.text(max_size=8).filter(lambda name: ":" in name or any(ord(char) > 127 for char in name)))
def test_nothing_with_a_colon_or_beyond_ascii_is_one(name: str) -> None:
    assert not is_participant_id(name)


def test_an_envelope_cannot_be_changed() -> None:
    envelope = Envelope(protocol=PROTOCOL, id="1", sender="ann", kind="chat")
    with pytest.raises(AttributeError):
        envelope.sender = "bob"  # type: ignore[misc]  # that it fails is the point


def test_a_payload_is_read_as_json_or_as_its_struct() -> None:
    envelope = Envelope(protocol=PROTOCOL, id="1", sender="ann", kind="chat", payload=Raw(b'{"text":"hi"}'))
    assert envelope.content == {"text": "hi"}
    assert envelope.read(Chat) == Chat(text="hi")
    assert Envelope(protocol=PROTOCOL, id="1", sender="ann", kind="chat").content == {}


@pytest.mark.parametrize("payload", [b"[]", b'"x"', b"1"])
def test_a_payload_that_is_no_object_is_said_to_be_none(payload: bytes) -> None:
    envelope = Envelope(protocol=PROTOCOL, id="1", sender="ann", kind="chat", payload=Raw(payload))
    with pytest.raises(ProtocolError, match="expected an object"):
        _ = envelope.content


@pytest.mark.parametrize(
    ("name", "other"),
    [("ann", "Ann"), ("bob", "b0b"), ("BOB", "B0B"), ("lan", "Ian"), ("bot1", "botl"), ("bot1", "botI")],
)
def test_ids_that_are_easily_taken_for_each_other_are_similar(name: str, other: str) -> None:
    assert similar_id(name, ["zoe", other]) == other
    assert similar_id(other, ["zoe", name]) == name


@pytest.mark.parametrize(
    ("name", "other"), [("ann", "ann"), ("ali", "all"), ("bot1", "bot2"), ("a.b", "a-b")]
)
def test_ids_that_are_told_apart_are_not_similar(name: str, other: str) -> None:
    assert similar_id(name, [other]) is None
