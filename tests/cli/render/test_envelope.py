"""Envelopes as people read them."""

from typing import Any

import pytest
from rich.cells import cell_len
from tests.space.table import envelope_of

from mew.cli.render.envelope import colour_of, line_of, prose
from mew.protocol.kinds import PAYLOADS

CALL = {"method": "tools/call", "params": {"name": "write_file", "arguments": {"path": "a.txt", "n": 1}}}


def read(kind: str, payload: Any = None, who: str = "bot", **fields: Any) -> str:
    fields.setdefault("id", "e-1")
    envelope, _ = envelope_of(who, kind, payload, **fields)
    line = line_of(envelope)
    return f"{line.who} {line.what.plain}"


@pytest.mark.parametrize(
    ("kind", "payload", "fields", "line"),
    [
        ("chat", {"text": "hello"}, {}, "bot hello"),
        ("chat", {"text": "hello"}, {"to": ["ann"]}, "bot → ann: hello"),
        (
            "mcp/proposal",
            CALL,
            {"to": ["files"]},
            'bot proposes write_file(path: "a.txt", n: 1) to files #e-1',
        ),
        (
            "mcp/request",
            CALL,
            {"to": ["files"], "correlation_id": ["p-1"]},
            'bot asks files: write_file(path: "a.txt", n: 1) #e-1 for #p-1',
        ),
        ("mcp/request", {"method": "tools/list"}, {"to": ["files"]}, "bot asks files: tools/list #e-1"),
        (
            "mcp/response",
            {"result": {"content": [{"type": "text", "text": "done"}]}},
            {"correlation_id": ["r-1"]},
            "bot answers #r-1: done",
        ),
        (
            "mcp/response",
            {"result": {"content": [{"type": "text", "text": "no disk"}], "isError": True}},
            {"correlation_id": ["r-1"]},
            "bot fails #r-1: no disk",
        ),
        (
            "mcp/response",
            {"error": {"code": -32602, "message": "no such tool"}},
            {"correlation_id": ["r-1"]},
            "bot fails #r-1: no such tool",
        ),
        (
            "mcp/response",
            {"error": {"code": -32601, "message": "unknown method prompts/list"}},
            {"correlation_id": ["r-1"]},
            "bot does not offer #r-1",
        ),
        (
            "mcp/response",
            {"result": {"tools": [{"name": "read"}, {"name": "write"}]}},
            {"correlation_id": ["r-1"]},
            "bot answers #r-1: 2 tools: read, write",
        ),
        ("mcp/reject", {"reason": "unsafe"}, {"correlation_id": ["p-1"]}, "bot rejects #p-1: unsafe"),
        ("mcp/withdraw", {}, {"correlation_id": ["p-1"]}, "bot withdraws #p-1"),
        ("reasoning/thought", {"message": "well"}, {}, "bot thinks: well"),
        (
            "capability/grant",
            {"recipient": "dan", "capabilities": [{"kind": "chat"}], "ttl_seconds": 60},
            {},
            "bot grants dan chat for 60 s #e-1",
        ),
        (
            "capability/revoke",
            {"recipient": "dan", "grant_id": "g-1"},
            {},
            "bot takes from dan the grant #g-1",
        ),
        ("space/kick", {"participant_id": "dan", "reason": "noise"}, {}, "bot removes dan: noise"),
        ("participant/pause", {"timeout_seconds": 5}, {"to": ["dan"]}, "bot pauses dan for 5 s"),
        (
            "participant/compact",
            {"timeout_seconds": 10**400},
            {"to": ["dan"]},
            f"bot asks dan to compact for 1{'0' * 39}… (401 characters) s",
        ),
        (
            "capability/grant",
            {"recipient": "dan", "capabilities": ["chat"], "ttl_seconds": 10**400},
            {},
            f"bot grants dan chat for 1{'0' * 39}… (401 characters) s #e-1",
        ),
        ("participant/shutdown", {}, {"to": ["dan"]}, "bot shuts down dan"),
        ("stream/close", {"stream_id": "stream-4", "reason": "done"}, {}, "bot closes stream-4: done"),
        ("acme/thing", {"a": [1, None]}, {"to": ["dan"]}, "bot acme/thing to dan {a: [1, null]}"),
    ],
)
def test_a_kind_says_what_is_done(kind: str, payload: Any, fields: dict[str, Any], line: str) -> None:
    assert read(kind, payload, **fields) == line


def test_a_probe_for_an_optional_method_is_no_failure() -> None:
    code = {"code": -32601, "message": "unknown method prompts/list"}
    envelope, _ = envelope_of("bot", "mcp/response", {"error": code}, id="e-1", correlation_id=["r-1"])
    assert not [span for span in line_of(envelope).what.spans if span.style == "red"]


def test_who_comes_is_named_and_not_the_gateway_that_says_so() -> None:
    joined = {"event": "join", "participant": {"id": "ann", "capabilities": [{"kind": "*"}]}}
    assert read("system/presence", joined, who="system:gateway") == "ann joins, may *"
    left = {"event": "leave", "participant": {"id": "ann"}}
    assert read("system/presence", left, who="system:gateway") == "ann leaves"


def test_what_the_gateway_says_itself_is_the_gateways() -> None:
    assert read("system/error", {"error": "paused", "message": "no"}, who="system:gateway") == "gateway no"


def test_of_an_id_the_first_eight_characters_are_shown() -> None:
    assert read("mcp/withdraw", {}, correlation_id=["0123456789abcdef"]) == "bot withdraws #01234567"


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"text": 1, "reason": [], "message": {}, "method": 2, "params": [3], "result": 4, "error": 5},
        {"recipient": None, "capabilities": "chat", "participant": "ann", "participant_id": 7, "event": 8},
        {"capabilities": [None, 1, {"kind": ["chat"]}], "stream_id": {}, "ttl_seconds": "x", "grant_id": 0},
        b'{"a": 1, "a": 2}',
        b'{"text": 1e999}',
    ],
    ids=range(7),
)
def test_any_payload_gives_a_line(payload: Any) -> None:
    for kind in (*PAYLOADS, "acme/thing"):
        assert read(kind, payload)


EVIL = "a\x1b[2Jb\x07c\u202ed\x9b31me\u200bf"


EVERYWHERE: dict[str, Any] = {
    **dict.fromkeys(("text", "reason", "message", "method", "recipient", "participant_id", "grant_id"), EVIL),
    **dict.fromkeys(("stream_id", "status", "expires_at", "error", "event", EVIL), EVIL),
    "params": {"name": EVIL, "arguments": {EVIL: EVIL}},
    "result": {"content": [{"text": EVIL}]},
    "capabilities": [EVIL, {"kind": EVIL}],
    "participant": {"id": EVIL},
}


def test_nothing_that_somebody_wrote_reaches_the_terminal_as_it_is() -> None:
    for kind in (*PAYLOADS, f"acme/{EVIL}"):
        envelope, _ = envelope_of(
            EVIL, kind, EVERYWHERE, id=EVIL, to=[EVIL], correlation_id=[EVIL], context=EVIL
        )
        assert line_of(envelope).what.plain.isprintable(), kind


def test_lines_of_a_text_stay_lines_and_quotes_quotes() -> None:
    assert prose('a "b"\n\\c\td') == 'a "b"\n\\c\\td'


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = prose("x" * 10_000)
    assert cell_len(shown) < 5_000
    assert shown.endswith("… (10,000 characters)")


def test_a_name_has_its_colour() -> None:
    assert colour_of("ann") == colour_of("ann")
    assert len({colour_of(f"p{n}") for n in range(50)}) > 4
