"""The published JSON Schemas: current, true to the examples of §3, and of one mind with the codec."""

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from scripts.schemas import FOLDER, documents, file_name

from mew.protocol.codec import decode
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import PAYLOADS

READ = {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_file"}}}
CHATTER = [{"kind": "mcp/proposal"}, {"kind": "chat"}]

# An envelope a line, after the examples of §3: kind, who to whom, what it refers to, payload.
EXAMPLES: list[tuple[str, dict[str, Any]]] = [
    (
        "mcp/request",
        {
            "to": ["files"],
            "payload": {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "delete_file", "arguments": {"path": "/tmp/x"}},
            },
        },
    ),
    ("mcp/request", {"payload": {"jsonrpc": "2.0", "method": "notifications/initialized"}}),
    ("mcp/request", {"correlation_id": ["p1"], "payload": {"id": "a", "method": "tools/list", "params": {}}}),
    (
        "mcp/response",
        {
            "to": ["ann"],
            "correlation_id": ["e1"],
            "payload": {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "done"}]}},
        },
    ),
    (
        "mcp/response",
        {
            "correlation_id": ["e1"],
            "payload": {"id": 7, "error": {"code": -32601, "message": "no such method"}},
        },
    ),
    ("mcp/proposal", {"to": ["files"], "payload": READ["payload"]}),
    ("mcp/withdraw", {"correlation_id": ["p1"], "payload": {"reason": "no_longer_needed"}}),
    ("mcp/reject", {"to": ["bot"], "correlation_id": ["p1"], "payload": {"reason": "unsafe"}}),
    ("chat", {"payload": {"text": "Hello all", "format": "plain"}}),
    ("chat", {"to": ["bot"], "correlation_id": ["r1"], "payload": {"text": "*later*", "format": "markdown"}}),
    ("chat/acknowledge", {"correlation_id": ["c1"], "payload": {"status": "received"}}),
    ("chat/cancel", {"to": ["bot"], "correlation_id": ["c1"], "payload": {"reason": "handled elsewhere"}}),
    ("reasoning/start", {"correlation_id": ["e1"], "payload": {"message": "Looking at the request…"}}),
    ("reasoning/thought", {"context": "r1", "payload": {"message": "It is YAML; check the syntax first."}}),
    ("reasoning/conclusion", {"context": "r1", "payload": {"message": "Safe to go on."}}),
    ("reasoning/cancel", {"context": "r1", "payload": {"reason": "superseded"}}),
    (
        "capability/grant",
        {"to": ["bot"], "payload": {"recipient": "bot", "capabilities": [READ], "reason": "careful so far"}},
    ),
    (
        "capability/grant",
        {"payload": {"recipient": "bot", "capabilities": ["chat"], "expires_at": "2026-01-01T00:00:00Z"}},
    ),
    ("capability/revoke", {"payload": {"recipient": "bot", "grant_id": "g1", "reason": "task done"}}),
    (
        "capability/revoke",
        {
            "payload": {
                "recipient": "bot",
                "capabilities": [{"kind": "mcp/request", "payload": {"method": "tools/*"}}],
            }
        },
    ),
    ("capability/grant-ack", {"correlation_id": ["g1"], "payload": {"status": "accepted"}}),
    (
        "space/invite",
        {
            "payload": {
                "participant_id": "new-bot",
                "email": "operator@example.com",
                "initial_capabilities": CHATTER,
                "reason": "needed for analysis",
            }
        },
    ),
    (
        "space/invite-ack",
        {
            "payload": {
                "status": "created",
                "participant_id": "new-bot",
                "token": "t",
                "connection_url": "wss://mew.example/ws?space=lab",
            }
        },
    ),
    ("space/kick", {"payload": {"participant_id": "bot", "reason": "too many violations"}}),
    ("participant/pause", {"to": ["bot"], "payload": {"reason": "rate_limit", "timeout_seconds": 60}}),
    ("participant/resume", {"to": ["bot"], "correlation_id": ["p1"], "payload": {}}),
    ("participant/request-status", {"to": ["bot"], "payload": {"fields": ["tokens", "latency"]}}),
    (
        "participant/status",
        {
            "correlation_id": ["s1"],
            "payload": {
                "tokens": 12_345,
                "max_tokens": 20_000,
                "messages_in_context": 128,
                "latency_ms": 350,
                "cache_hits": 3,
            },
        },
    ),
    ("participant/forget", {"to": ["bot"], "payload": {"direction": "oldest", "entries": 10}}),
    (
        "participant/compact",
        {"to": ["bot"], "payload": {"reason": "token_pressure", "target_tokens": 16_000}},
    ),
    (
        "participant/compact-done",
        {
            "correlation_id": ["c1"],
            "payload": {"freed_tokens": 2048, "freed_messages": 12, "status": "compacted"},
        },
    ),
    ("participant/compact-done", {"payload": {"skipped": True, "reason": "nothing to compact"}}),
    ("participant/clear", {"to": ["bot"]}),
    ("participant/restart", {"to": ["bot"], "payload": {"mode": "clean"}}),
    ("participant/shutdown", {"to": ["bot"]}),
    (
        "stream/request",
        {
            "to": ["gateway"],
            "payload": {
                "direction": "upload",
                "expected_size_bytes": 10_485_760,
                "description": "a large export",
            },
        },
    ),
    (
        "stream/request",
        {"payload": {"direction": "download", "target": ["ann", "bob"], "compression": "gzip"}},
    ),
    (
        "stream/open",
        {"to": ["bot"], "correlation_id": ["s1"], "payload": {"stream_id": "stream-4", "encoding": "binary"}},
    ),
    (
        "stream/open",
        {
            "payload": {
                "stream_id": "stream-4",
                "owner": "bot",
                "direction": "upload",
                "authorized_writers": ["bot"],
                "created": "2025-08-26T14:00:00Z",
            }
        },
    ),
    ("stream/close", {"correlation_id": ["o1"], "payload": {"reason": "complete"}}),
    ("stream/close", {"payload": {"stream_id": "stream-4"}}),
    ("stream/ack", {"payload": {"stream_id": "stream-4", "received": 1048576}}),
    ("stream/grant-write", {"payload": {"stream_id": "stream-4", "participant_id": "ann"}}),
    ("stream/revoke-write", {"payload": {"stream_id": "stream-4", "participant_id": "ann"}}),
    ("stream/transfer-ownership", {"payload": {"stream_id": "stream-4", "new_owner": "ann"}}),
    (
        "stream/write-granted",
        {"payload": {"stream_id": "stream-4", "participant_id": "ann", "authorized_writers": ["bot", "ann"]}},
    ),
    (
        "stream/write-revoked",
        {"payload": {"stream_id": "stream-4", "participant_id": "ann", "authorized_writers": ["bot"]}},
    ),
    (
        "stream/ownership-transferred",
        {
            "payload": {
                "stream_id": "stream-4",
                "previous_owner": "bot",
                "new_owner": "ann",
                "authorized_writers": ["ann"],
            }
        },
    ),
    (
        "system/presence",
        {"payload": {"event": "join", "participant": {"id": "bot", "capabilities": CHATTER}}},
    ),
    ("system/presence", {"payload": {"event": "leave", "participant": {"id": "bot"}}}),
    (
        "system/welcome",
        {
            "to": ["bot"],
            "payload": {
                "you": {"id": "bot", "capabilities": CHATTER},
                "participants": [{"id": "ann", "capabilities": [{"kind": "mcp/*"}]}],
            },
        },
    ),
    (
        "system/welcome",
        {
            "payload": {
                "you": {"id": "bot", "capabilities": []},
                "participants": [],
                "active_streams": [{"stream_id": "stream-4", "owner": "ann"}],
                "space": {"id": "lab"},
                "resumed": True,
            }
        },
    ),
    (
        "system/error",
        {
            "to": ["bot"],
            "correlation_id": ["e9"],
            "payload": {
                "error": "capability_violation",
                "attempted_kind": "mcp/request",
                "your_capabilities": CHATTER,
            },
        },
    ),
]


def envelope_of(kind: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"protocol": "mew/v0.4", "id": "e1", "from": "ann", "kind": kind, **more}


def read(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return schema


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(read(name))


def test_the_schemas_are_current() -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert kept == documents(), "run `make schemas` and look at the difference"


def test_every_schema_is_one_and_in_the_index() -> None:
    index = read("index.json")
    assert index == {"envelope": "envelope.json", "payloads": {kind: file_name(kind) for kind in PAYLOADS}}
    for name in (index["envelope"], *index["payloads"].values()):
        Draft202012Validator.check_schema(read(name))
        assert read(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_there_is_an_example_of_every_kind() -> None:
    assert {kind for kind, _ in EXAMPLES} == set(PAYLOADS)


@pytest.mark.parametrize(("kind", "more"), EXAMPLES)
def test_the_examples_fit_their_schemas_and_decode(kind: str, more: dict[str, Any]) -> None:
    envelope = envelope_of(kind, more)
    schema("envelope.json").validate(envelope)
    schema(file_name(kind)).validate(envelope.get("payload", {}))
    payload = bytes(decode(json.dumps(envelope).encode()).payload) or b"{}"
    msgspec.json.decode(payload, type=PAYLOADS[kind])


WHOLE = envelope_of(
    "mcp/request",
    {
        "ts": "2025-08-26T14:00:00Z",
        "to": ["bob"],
        "correlation_id": ["e0"],
        "context": "a/b",
        "payload": {"method": "tools/list"},
    },
)
VALUES: list[Any] = [
    None,
    True,
    0,
    -1.5,
    "",
    "text",
    "mew/v0.4",
    "mew/v0.3",
    "x" * 256,
    "x" * 257,
    "é" * 4096,
    "x" * 4097,
    "2025-08-26T14:00:00+02:00",
    "2016-12-31T23:59:60Z",
    "2025-08-26T14:00:00",
    [],
    ["a", "b"],
    ["a", None],
    [1],
    [["a"]],
    {},
    {"a": None},
    {"method": "x", "params": None},
    {"method": 1},
    ...,
]


@pytest.mark.parametrize("field", [*WHOLE, "unknown"])
@pytest.mark.parametrize("value", VALUES)
def test_the_envelopes_schema_and_the_codec_agree(field: str, value: Any) -> None:
    envelope = {name: given for name, given in (WHOLE | {field: value}).items() if given is not ...}
    assert schema("envelope.json").is_valid(envelope) == decodes(envelope)


@pytest.mark.parametrize("envelope", [None, [], [WHOLE], "text", 1, {}])
def test_both_take_nothing_but_an_object(envelope: Any) -> None:
    assert not schema("envelope.json").is_valid(envelope)
    assert not decodes(envelope)


@pytest.mark.parametrize(("kind", "more"), EXAMPLES)
def test_a_payloads_schema_and_its_struct_agree(kind: str, more: dict[str, Any]) -> None:
    payload = more.get("payload", {})
    described = schema(file_name(kind))
    properties = read(file_name(kind))["properties"]
    for field in {*payload, *(field.encode_name for field in msgspec.structs.fields(PAYLOADS[kind]))}:
        for value in VALUES:
            changed = {name: given for name, given in (payload | {field: value}).items() if given is not ...}
            if isinstance(value, str) and properties.get(field, {}).get("format") == "date-time":
                continue  # `format` only annotates
            assert described.is_valid(changed) == fits(changed, PAYLOADS[kind]), (field, value)


def decodes(envelope: Any) -> bool:
    try:
        decode(json.dumps(envelope).encode())
    except ProtocolError:
        return False
    return True


def fits(payload: Any, shape: type[msgspec.Struct]) -> bool:
    try:
        msgspec.json.decode(json.dumps(payload), type=shape)
    except msgspec.ValidationError:
        return False
    return True
