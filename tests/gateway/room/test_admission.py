"""The checks before the log that need no space."""

import json
from typing import Any

import pytest

from mew.gateway.room.admission import admit
from mew.protocol.envelope import GATEWAY, ParticipantId
from mew.protocol.errors import ProtocolError, Refusal

ANN = ParticipantId("ann")


def sent(**fields: Any) -> bytes:
    header = {"protocol": "mew/v0.4", "id": "e1", "from": "ann", "kind": "chat"}
    if "sender" in fields:
        fields["from"] = fields.pop("sender")
    return json.dumps(header | fields).encode()


def refused(received: bytes, *, bytes_max: int = 1_000) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        admit(received, ANN, bytes_max=bytes_max)
    return caught.value


def test_an_envelope_from_whom_it_says_is_admitted() -> None:
    assert admit(sent(), ANN, bytes_max=1_000).sender == "ann"


def test_an_envelope_may_have_exactly_so_many_bytes() -> None:
    received = sent(payload={"text": "x" * 100})
    admit(received, ANN, bytes_max=len(received))
    assert refused(received, bytes_max=len(received) - 1).refusal is Refusal.TOO_LARGE


def test_size_is_looked_at_before_anything_else() -> None:
    error = refused(b"\xff" * 1_001)
    assert error.refusal is Refusal.TOO_LARGE
    assert "1001" in str(error)


@pytest.mark.parametrize("sender", ["bob", "Ann", "ann ", "gateway", GATEWAY])
def test_nobody_speaks_as_another(sender: str) -> None:
    error = refused(sent(sender=sender))
    assert error.refusal is Refusal.WRONG_SENDER
    assert "'ann'" in str(error)
    assert repr(sender) in str(error)


@pytest.mark.parametrize(
    ("received", "refusal"),
    [
        (b"", Refusal.MALFORMED),
        (b"{}", Refusal.MALFORMED),
        (sent(to=None), Refusal.MALFORMED),
        (sent(protocol="mew/v0.3"), Refusal.WRONG_VERSION),
    ],
)
def test_what_does_not_decode_is_not_admitted(received: bytes, refusal: Refusal) -> None:
    assert refused(received).refusal is refusal
