"""The kinds: all of §3, those that extend it, a payload for each."""

import msgspec
import pytest
from msgspec import UNSET

from mew.protocol import kinds
from mew.protocol.kinds import PAYLOADS, RESERVED_PREFIX, Chat, Kind, McpResponse, StreamOpen

SPECIFIED = [
    "mcp/request",
    "mcp/response",
    "mcp/proposal",
    "mcp/withdraw",
    "mcp/reject",
    "reasoning/start",
    "reasoning/thought",
    "reasoning/conclusion",
    "reasoning/cancel",
    "capability/grant",
    "capability/revoke",
    "capability/grant-ack",
    "space/invite",
    "space/kick",
    "participant/pause",
    "participant/resume",
    "participant/status",
    "participant/request-status",
    "participant/forget",
    "participant/compact",
    "participant/compact-done",
    "participant/clear",
    "participant/restart",
    "participant/shutdown",
    "stream/request",
    "stream/open",
    "stream/close",
    "chat",
    "chat/acknowledge",
    "chat/cancel",
    "system/presence",
    "system/welcome",
    "system/error",
]

OURS = [
    "space/invite-ack",
    "stream/ack",
    "stream/grant-write",
    "stream/revoke-write",
    "stream/transfer-ownership",
    "stream/write-granted",
    "stream/write-revoked",
    "stream/ownership-transferred",
]

SHAPES: list[type[msgspec.Struct]] = list(dict.fromkeys(PAYLOADS.values()))
NULL_HAS_A_MEANING = {"id", "result", "data"}  # in JSON-RPC


def test_there_is_a_payload_for_every_kind_and_no_other() -> None:
    assert sorted(PAYLOADS) == sorted(SPECIFIED + OURS)
    constants = [value for name, value in vars(Kind).items() if not name.startswith("_")]
    assert sorted(constants) == sorted(PAYLOADS)


def test_only_the_gateways_kinds_are_reserved() -> None:
    reserved = [kind for kind in PAYLOADS if kind.startswith(RESERVED_PREFIX)]
    assert sorted(reserved) == ["system/error", "system/presence", "system/welcome"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_payload_is_exported_frozen_and_takes_fields_it_does_not_know(shape: type[msgspec.Struct]) -> None:
    assert shape.__name__ in kinds.__all__
    assert shape.__struct_config__.frozen
    assert not shape.__struct_config__.forbid_unknown_fields


@pytest.mark.parametrize("shape", SHAPES)
def test_an_optional_field_is_absent_and_never_null(shape: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(shape):
        if field.name not in NULL_HAS_A_MEANING:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(None, field.type)


def test_an_empty_field_is_not_written() -> None:
    assert msgspec.json.encode(Chat(text="hi")) == b'{"text":"hi"}'
    assert msgspec.json.encode(StreamOpen(stream_id="s")) == b'{"stream_id":"s"}'


def test_a_response_may_have_a_null_result_or_id() -> None:
    response = msgspec.json.decode(b'{"id":null,"result":null}', type=McpResponse)
    assert response.id is None
    assert response.result is None
    assert msgspec.json.decode(b"{}", type=McpResponse).result is UNSET
