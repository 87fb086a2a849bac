"""The payload of an envelope, decoded as far as somebody asks."""

from typing import Any

import pytest

from mew.protocol.json import encode_json
from mew.protocol.payload import Payload


def payload(content: Any = ...) -> Payload:
    envelope = {"protocol": "mew/v0.4", "id": "e", "from": "ann", "kind": "mcp/request"}
    return Payload(encode_json(envelope if content is ... else {**envelope, "payload": content}))


def test_a_call_decodes_all_of_it() -> None:
    assert payload({"method": "m", "params": {"x": [1]}})() == {"method": "m", "params": {"x": [1]}}
    assert payload()() is None


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (
            {"method": "tools/call", "params": {"name": "n", "arguments": {"name": "other"}}},
            ("tools/call", {"name": "n"}),
        ),
        (
            {"params": {"uri": "file:///x"}, "method": "resources/read"},
            ("resources/read", {"uri": "file:///x"}),
        ),
        ({"method": 7, "params": {"name": ["n"]}}, (None, {})),
        ({"method": "m", "params": "text"}, (None, None)),
        ({"method": "m"}, ("m", {})),
        ({}, (None, {})),
    ],
)
def test_the_header_is_the_method_and_what_it_is_for(content: Any, header: tuple[Any, Any]) -> None:
    found = payload(content).header()
    assert (found.get("method"), found.get("params")) == header


def test_an_envelope_without_a_payload_names_nothing() -> None:
    assert payload().header() == {"params": {}}
