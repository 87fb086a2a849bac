"""Where a program is to connect that was not told."""

from pathlib import Path

import pytest

import mew
from mew.client.connection.websocket import address

STARTED = {"MEW_GATEWAY": "http://there", "MEW_SPACE": "demo", "MEW_TOKEN_FILE": "/tokens/bot.token"} | {
    "MEW_AS": "bot"
}


def test_without_a_url_it_is_where_the_environment_says() -> None:
    assert address(None, None, None, None, STARTED) == (
        *("http://there", "demo", Path("/tokens/bot.token"), "bot"),
    )
    assert address(None, None, None, None, {"MEW_GATEWAY": "http://there", "MEW_TOKEN": "t"}) == (
        *("http://there", None, "t", None),
    )


def test_what_is_given_goes_before_the_environment() -> None:
    assert address(None, "other", "t", "cat", STARTED) == ("http://there", "other", "t", "cat")


def test_with_a_url_the_environment_is_not_looked_at() -> None:
    """A token for one gateway must not reach another."""
    assert address("http://here", None, None, None, STARTED) == ("http://here", None, None, None)


def test_where_nobody_says_it_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEW_GATEWAY", raising=False)
    with pytest.raises(ValueError, match="start it with 'mew up'"):
        mew.connect()
    with pytest.raises(ValueError, match="start it with 'mew up'"):
        mew.Participant("bot").run()
