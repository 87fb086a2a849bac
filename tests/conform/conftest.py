"""What all tests of the kit share."""

import pytest

from mew.gateway import inbox
from mew.gateway.auth import Throttle
from mew.space import Space


@pytest.fixture(autouse=True)
def wrong_tokens_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit brings many, and our gateway would let it wait for longer and longer."""
    monkeypatch.setattr(Throttle, "FIRST_S", 0.0)


@pytest.fixture(autouse=True)
def every_envelope_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """No short way past the rules, which are what most of the wrong gateways have wrong, nor to the inbox."""
    monkeypatch.setattr(Space, "is_plain", lambda *_: False)
    monkeypatch.setattr(Space, "standing", lambda *_: None)
    monkeypatch.setattr(inbox, "hear_frames", None)
