"""Who may be called what (design §3.10), and that an envelope is a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.protocol.envelope import GATEWAY, PROTOCOL, Envelope, is_participant_id


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
