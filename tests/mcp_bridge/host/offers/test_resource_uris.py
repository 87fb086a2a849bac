"""What hosts call the resources of others."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mew.mcp_bridge.host.offers.resource_uris import ResourceUris

participants = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,20}", fullmatch=True)


@given(participants, st.text())
def test_a_uri_leads_back_to_whose_it_is(participant: str, uri: str) -> None:
    assert ResourceUris().inward(ResourceUris().outward(participant, uri)) == (participant, uri)


@given(participants, st.text(max_size=9), participants, st.text(max_size=9))
def test_no_two_resources_have_the_same_uri(one: str, its: str, other: str, others: str) -> None:
    uris = ResourceUris()

    assert (uris.outward(one, its) == uris.outward(other, others)) == ((one, its) == (other, others))


def test_a_resource_is_that_of_its_participant() -> None:
    assert ResourceUris().outward("files", "file:///data/a.txt") == "mew://files/file:///data/a.txt"
    assert ResourceUris().outward("ann@corp", "x:{y}") == "mew://ann%40corp/x:{y}"


def test_with_a_single_participant_a_uri_stays_as_it_is() -> None:
    uris = ResourceUris("files")

    assert uris.outward("files", "file:///a") == "file:///a"
    assert uris.inward("file:///a") == ("files", "file:///a")
    assert uris.result("files", {"contents": [{"uri": "file:///a"}]}) == {"contents": [{"uri": "file:///a"}]}


def test_what_is_nobodys_leads_nowhere() -> None:
    for uri in ("file:///a", "mew:history", "mew://", "mew://files", "mew:///x"):
        assert ResourceUris().inward(uri) is None


def test_a_host_that_writes_it_in_lower_case_is_understood_where_it_can_mean_but_one() -> None:
    assert ResourceUris().inward("mew://files/file:///A", ["Files", "ann"]) == ("Files", "file:///A")
    assert ResourceUris().inward("mew://files/x:", ["Files", "FILES"]) == ("files", "x:")
    assert ResourceUris().inward("mew://files/x:", ["Files", "files"]) == ("files", "x:")


def test_the_uris_in_a_result_are_such_as_the_host_can_read() -> None:
    said: dict[str, Any] = {
        "content": [
            {"type": "text", "text": "file:///a"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
            {"type": "resource", "resource": 7},
            "no block",
        ],
        "messages": [{"role": "user", "content": {"type": "resource_link", "uri": "file:///c"}}, None],
        "contents": [{"uri": "file:///d", "text": "d"}, {"text": "no uri"}],
    }

    shown = ResourceUris().result("files", said)

    assert shown["content"][0] == {"type": "text", "text": "file:///a"}
    assert shown["content"][1]["uri"] == "mew://files/file:///a"
    assert shown["content"][2]["resource"]["uri"] == "mew://files/file:///b"
    assert shown["content"][3:] == said["content"][3:]
    assert shown["messages"][0]["content"]["uri"] == "mew://files/file:///c"
    assert shown["contents"] == [{"uri": "mew://files/file:///d", "text": "d"}, {"text": "no uri"}]
    assert said["content"][1]["uri"] == "file:///a", "what came stays as it came"
