"""Who wants to hear what of a server."""

from typing import Any

import pytest

from mew.client.errors import RpcError
from mew.mcp_bridge.server.subscriptions import NotificationInterests


def test_a_subscription_is_that_of_who_made_it() -> None:
    interests = NotificationInterests()
    interests.subscribe("ann", "a://1")
    interests.subscribe("ben", "a://1")
    interests.subscribe("ben", "a://2")
    assert interests.subscribers("a://1") == ("ann", "ben")
    assert interests.uris == ("a://1", "a://2")
    interests.unsubscribe("ann", "a://1")
    interests.unsubscribe("ann", "a://1")
    assert interests.forget("ben") == ("a://1", "a://2")
    assert not interests.uris


def test_what_is_below_a_resource_belongs_to_it() -> None:
    interests = NotificationInterests()
    interests.subscribe("ann", "file:///data/")
    assert interests.subscribers("file:///data/x") == ("ann",)
    assert interests.subscribers("file:///database") == ()


def test_the_least_severe_that_anyone_wants_is_the_level() -> None:
    interests = NotificationInterests()
    assert interests.level is None
    interests.set_level("ann", "error")
    interests.set_level("ben", "debug")
    assert interests.level == "debug"
    interests.forget("ben")
    assert interests.level == "error"
    interests.set_level("ann", None)
    assert interests.level is None


def test_who_has_something_under_way_hears_what_is_no_detail_unless_they_said_otherwise() -> None:
    interests = NotificationInterests()
    interests.set_level("ann", "error")
    assert interests.listeners("info", ("ann", "ben")) == ("ben",)
    assert interests.listeners("debug", ("ben",)) == ()
    assert interests.listeners("error", ()) == ("ann",)
    assert interests.listeners("loud", ("ben",)) == ()
    assert interests.listeners(["error"], ("ben",)) == ()


@pytest.mark.parametrize("params", [{}, {"uri": 1}, {"uri": ""}, {"uri": "a" * 5_000}])
def test_what_is_no_uri_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(RpcError):
        NotificationInterests().checked_uri("ann", params)


def test_nobody_has_subscriptions_without_end() -> None:
    interests = NotificationInterests()
    for n in range(1_024):
        interests.subscribe("ann", f"a://{n}")
    with pytest.raises(RpcError, match="more than 1024 subscriptions"):
        interests.checked_uri("ann", {"uri": "a://new"})


@pytest.mark.parametrize("params", [{}, {"level": "loud"}, {"level": None}, {"level": ["info"]}])
def test_what_is_no_level_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(RpcError, match="expected a `level`"):
        NotificationInterests().checked_level(params)
