"""What all tests of the kit share."""

import pytest

from mew.gateway.auth.authenticator import Throttle


@pytest.fixture(autouse=True)
def wrong_tokens_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit brings many, and our gateway would let it wait for longer and longer."""
    monkeypatch.setattr(Throttle, "FIRST_S", 0.0)
