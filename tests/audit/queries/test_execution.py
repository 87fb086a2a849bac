"""A request is as proposed only where nobody could read it otherwise."""

import pytest

from mew.audit.queries.proposals import RequestMatch, compare_request, is_as_proposed
from mew.audit.record.digest import payload_digest
from mew.audit.record.facts import Fact

PROPOSED = b'{"method":"tools/call","params":{"name":"rm","arguments":{"path":"/tmp"}}}'


def said(payload: bytes) -> Fact:
    return Fact(
        1, 0, 0, "mcp/request", "ann", about="tools/call:rm", whom=("files",), digest=payload_digest(payload)
    )


@pytest.mark.parametrize(
    ("proposed", "requested", "is_same"),
    [
        (PROPOSED, PROPOSED, True),
        (PROPOSED, PROPOSED[:-1] + b',"id":7}', True),
        (PROPOSED, PROPOSED.replace(b"/tmp", b"/"), False),
        (PROPOSED, b'{"params":{"name":"rm","arguments":{"path":"/"}},' + PROPOSED[1:], False),
        (PROPOSED, b'{"method":"tools/list",' + PROPOSED[1:], False),
        (b'{"method":["tools/call"],"params":{"a":1}}', b'{"method":["tools/call"],"params":{"a":2}}', False),
        (b'{"method":["tools/call"]}', b'{"method":["tools/call"]}', False),
        (
            b'{"method":"m","params":[%b]}' % (b"1" * 5000),
            b'{"method":"m","params":[%b]}' % (b"2" * 5000),
            False,
        ),
        (
            b'{"method":"m","params":{"account":123456789012345678901}}',
            b'{"method":"m","params":{"account":123456789012345678902}}',
            False,
        ),
    ],
)
def test_whether_it_is_what_was_proposed(proposed: bytes, requested: bytes, *, is_same: bool) -> None:
    assert is_as_proposed(said(proposed), said(requested)) is is_same
    verdict = compare_request(said(proposed), said(requested), None).verdict
    assert (verdict is RequestMatch.AS_PROPOSED) is is_same
