"""Capabilities in words."""

from typing import Any

import pytest

from mew.cli.render.capability import in_words, words_of
from mew.protocol.capability import Capability


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("*", "anything"),
        ("chat", "chat"),
        ("mcp/proposal", "propose anything"),
        ("mcp/request", "make any MCP request"),
        ("mcp/request:tools/call", "call any tool"),
        ("mcp/request:tools/call:read_*", "call read_*"),
        ("mcp/request:tools/*", "list and call any tool"),
        ("mcp/request:resources/read:file://*", "read file://*"),
        ("mcp/request:sampling/createMessage", "request sampling/createMessage"),
        ("mcp/proposal:tools/call:write_file", "propose to call write_file"),
        ("participant/*", "control others"),
        ("acme/order", "send acme/order"),
        ({"kind": "chat", "to": ["ann", "bob"]}, "chat to ann or bob"),
        (
            {
                "kind": "mcp/request",
                "to": "fs",
                "payload": {"method": "tools/call", "params": {"name": "rm"}},
            },
            "call rm of fs",
        ),
        (
            {
                "kind": "mcp/request",
                "payload": {"method": "tools/call", "params": {"arguments": {"path": "/tmp/**"}}},
            },
            'call any tool, where it has {arguments: {path: "/tmp/**"}}',
        ),
        (
            {"kind": "mcp/*", "except": [{"kind": "mcp/reject"}, {"kind": "mcp/withdraw"}]},
            "anything of MCP, but not reject proposals, nor withdraw what it proposed",
        ),
        ({"kind": "chat", "payload": {"format": "plain"}}, 'chat, where it has {format: "plain"}'),
    ],
)
def test_a_capability_is_said_in_words(written: Any, words: str) -> None:
    assert words_of(Capability.parse(written).source) == words


def test_what_everyone_may_is_left_out_where_there_is_more() -> None:
    of_everyone = [{"kind": "mcp/response"}, {"kind": "capability/grant-ack"}]
    assert in_words([{"kind": "chat"}, *of_everyone]) == "chat"
    assert in_words(of_everyone) == "answer requests; acknowledge grants"
    assert in_words([]) == "nothing"


@pytest.mark.parametrize("written", ["\x1b[2J", {"kind": "\x1b[2J"}, {"kind": 7}, None, 7, {"x": "\x1b"}])
def test_whatever_a_gateway_lists_cannot_act_on_the_terminal(written: Any) -> None:
    assert words_of(written).isprintable()
