"""What a payload calls is read whatever else is in it."""

import pytest

from mew.audit.record.subjects import mcp_call_in


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b'{"method":"tools/call","params":{"name":"rm"}}', ("tools/call", "rm")),
        (b'{"method":"tools/call","params":{"name":"rm","uri":5}}', ("tools/call", "rm")),
        (b'{"method":"resources/read","params":{"name":"a","uri":"b:c"}}', ("resources/read", "b:c")),
        (b'{"method":"tools/call","params":{"n":%b,"name":"rm"}}' % (b"1" * 5000), ("tools/call", "rm")),
        (b'{"n":1e999,"method":"tools/call","params":{"name":"rm"}}', ("tools/call", "rm")),
        (b'{"method":"tools/call","params":[1]}', ("tools/call", "")),
        (b'{"method":"tools/call","params":{"name":5}}', ("tools/call", "")),
        (b'{"method":"tools/list","params":{"name":"rm"}}', ("tools/list", "")),
        (b'{"method":"tools/call"}', ("tools/call", "")),
        (b'{"method":5}', ("", "")),
        (b"[]", ("", "")),
        (b"", ("", "")),
    ],
)
def test_a_call_names_one_thing(payload: bytes, found: tuple[str, str]) -> None:
    assert mcp_call_in(payload) == found
