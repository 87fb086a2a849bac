"""What fits: the tables of specification §4 and design §4, one row a sentence."""

from collections.abc import Sequence
from typing import Any

import pytest

from mew.protocol.capability import AmbiguousPayload, Capability, CapabilitySet, Repeated


def fits(written: object, kind: str, payload: Any = None, to: Sequence[str] = ()) -> bool:
    return Capability.parse(written).fits(kind, to, lambda: payload)


def value_fits(pattern: object, value: object) -> bool:
    return fits({"kind": "*", "payload": {"x": pattern}}, "chat", {"x": value})


CALL = {"method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "/public/a.txt"}}}


@pytest.mark.parametrize(
    ("written", "kind", "payload", "expected"),
    [
        ({"kind": "mcp/*"}, "mcp/request", CALL, True),
        ({"kind": "mcp/*"}, "mcp/response", None, True),
        ({"kind": "mcp/request"}, "mcp/request", CALL, True),
        ({"kind": "mcp/request", "payload": {"method": "tools/*"}}, "mcp/request", CALL, True),
        ({"kind": "chat"}, "chat", {"text": "hi"}, True),
        ({"kind": "*"}, "chat", {"text": "hi"}, True),
        ({"kind": "*"}, "chat/acknowledge", None, True),
        ({"kind": "chat"}, "chat/acknowledge", None, False),
        ({"kind": "mcp/proposal"}, "mcp/request", CALL, False),
        ({"kind": "mcp/*"}, "mcp/request/sub", None, False),
        ({"kind": "mcp/**"}, "mcp/request/sub", None, True),
        ({"kind": ["chat", "mcp/*"]}, "mcp/request", CALL, True),
        ({"kind": "!mcp/request"}, "chat", None, True),
        ({"kind": "!mcp/request"}, "mcp/request", None, False),
        ("mcp/request:tools/call:read_*", "mcp/request", CALL, True),
        ("mcp/request:tools/call:write_*", "mcp/request", CALL, False),
        ("mcp/request:tools/call:read_*", "mcp/request", {"method": "tools/list"}, False),
        ("mcp/request:tools/call:read_*", "mcp/request", None, False),
    ],
)
def test_kind_and_payload_fit_as_the_specification_says(
    written: object, kind: str, payload: Any, expected: object
) -> None:
    assert fits(written, kind, payload) is expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("", "", True),
        ("", "a", False),
        ("a*", "a", True),
        ("a*", "ab\n", True),
        ("a*", "a/b", False),
        ("*b", "ab", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*c*", "abcd", True),
        ("a*c*", "a/cd", False),
        ("a**c*", "a/b/cd", True),
        ("/public/**", "/public/a/b", True),
        ("/public/**", "/public", False),
        ("***", "a/b", True),
        ("*", "a/b", True),
        ("a?c", "abc", True),
        ("a?c", "a€c", True),
        ("a??c", "a😀c", False),
        ("a?c", "a\ud800c", True),
        ("a?c", "a/c", False),
        ("a?c", "ac", False),
        ("*", 1, True),
        ("*", None, True),
        ("*", {"a": 1}, True),
        ("*", ["a"], True),
        ("a*", ["a"], False),
        ("a", ["a"], False),
        ("!a*", "b", True),
        ("!a*", "ab", False),
        ("!a", 1, False),
        ("!!a", "a", True),
        ("!/^a/", "b", True),
        ("/^a+$/", "aaa", True),
        ("/^a+$/", "aab", False),
        ("/b/", "abc", True),
        ("/public/", "/home/publican", True),
        ("/", "/", True),
        (["a", "b*"], "bc", True),
        (["a", "b*"], "c", False),
        ([1, None], None, True),
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (0, False, False),
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        ({}, {"a": 1}, True),
        ({}, [], False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": "*"}, {"a": None}, True),
        ({"a": "*"}, {}, False),
        ({"a": {"b": "c*"}}, {"a": {"b": "cd"}}, True),
    ],
)
def test_a_value_fits_its_pattern(pattern: object, value: object, expected: object) -> None:
    assert value_fits(pattern, value) is expected


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("/public/**", "/public/../etc"),
        ("/public/**", "/public/a/.."),
        ("/public/**", "/public\\..\\etc"),
        ("/public/**", "/public/..\\etc"),
        ("/public/*", "/public/.."),
        ("/public/?.", "/public/.."),
        ("/public/.*", "/public/.."),
        ("/public/??", "/public/.."),
        ("**/../**", "a/../b/../c"),
        ("/a/../*", "/a/../b"),
        (".*.", ".."),
        ("/public/**", "/public/%2e%2E/etc"),
        ("/public/**", "/public/.%2e%2fetc"),
        ("*", "file:///public%5c..%5Cetc"),
        ("*", "/public/%252e%252e/etc"),
        ("*", ".."),
        ("*", "a/../b"),
        ("**", "../a"),
        ("!/etc/**", "/x/../etc/passwd"),
        ("!!..", ".."),
        ("/public/", "/public/../etc"),
        (["/public/**", "!a"], "/public/../a"),
    ],
)
def test_a_wildcard_never_lets_a_parent_segment_through(pattern: object, value: str) -> None:
    assert not value_fits(pattern, value)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("/a/../b", "/a/../b"),
        ("/public/**", "/public/..."),
        ("/public/**", "/public/..a/b.."),
        ("/public/**", "/public/a..b"),
        ("v1..*", "v1..v2"),
        ("/a..b/", "xa..b"),
        ("!a", "b..c"),
    ],
)
def test_dots_that_are_written_out_and_dots_that_do_not_climb_fit(pattern: str, value: str) -> None:
    assert value_fits(pattern, value)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("/public/**", "/public/./a", False),
        ("/public/**", "/public//a", False),
        ("/public/**", "//public/a", False),
        ("/public/**", "/public/a/.", False),
        ("/public/*", "/public/a%2fb", False),
        ("/public/*", "/public/a%5Cb", False),
        ("/public/**", "/public/%61", False),
        ("file:///public/**", "file:///public//a", False),
        ("file:///public/**", "file:///public/a", True),
        ("https://example.org/**", "https://example.org/a?next=//b/./c", True),
        ("/public/**", "/public/a b%20c", True),
        ("/public/**", "/public/100%", True),
        ("./src/**", "./src/a.py", True),
        ("./src/**", "./src/./a.py", False),
        ("./src/**", "src/a.py", False),
        ("**/a.py", "./a.py", False),
        ("*", "https://example.org//a", True),
        ("!/etc/**", "//etc/passwd", False),
        ("!/etc/**", "/etc/./passwd", False),
        ("!/etc/**", "/%65tc/passwd", False),
        ("!/etc/**", "/home//ann", True),
    ],
)
def test_a_glob_fits_no_path_that_could_be_written_more_plainly(
    pattern: str, value: str, expected: object
) -> None:
    assert value_fits(pattern, value) is expected


@pytest.mark.parametrize(
    "path",
    [
        "/public/secret/key",
        "/public/./secret/key",
        "/public//secret/key",
        "//public/secret/key",
        "/public/secret//key",
        "/public/%73ecret/key",
        "/public%2fsecret/key",
        "/public%5Csecret/key",
        "/public\\secret/key",
        "/public/%252e/secret/key",
        "/public/secret/../secret/key",
    ],
)
@pytest.mark.parametrize("allowed", ["*", "/public/**", "!/etc/**", "/^/"])
def test_an_exception_holds_however_a_path_is_written(path: str, allowed: str) -> None:
    excepted = {"kind": "x", "payload": {"path": "/public/secret/**"}}
    written = {"kind": "x", "payload": {"path": allowed}, "except": [excepted]}
    assert not fits(written, "x", {"path": path})
    assert fits(written, "x", {"path": "/public/open/key"})


@pytest.mark.parametrize(
    ("pattern", "payload", "expected"),
    [
        ({"$.params.name": "read_*"}, CALL, True),
        ({"$.params.name": "write_*"}, CALL, False),
        ({"$.items[*]": "a*"}, {"items": ["a", "ab"]}, True),
        ({"$.items[*]": "a*"}, {"items": ["a", "b"]}, False),
        ({"$.items[*]": "a*"}, {"items": []}, False),
        ({"$.items[*]": "a*"}, {}, False),
        ({"$..path": "/public/**"}, {"a": [{"path": "/public/x"}, {"path": "/public/y"}]}, True),
        ({"$..path": "/public/**"}, {"a": [{"path": "/public/x"}, {"path": "/etc"}]}, False),
        ({"$.items[?@.n > 1].name": "a"}, {"items": [{"n": 2, "name": "a"}, {"n": 1, "name": "b"}]}, True),
        (
            {"$.items[?match(@.name, 'a+')].n": 1},
            {"items": [{"n": 1, "name": "aa"}, {"n": 2, "name": "b"}]},
            True,
        ),
        ({"$.items[?search(@.name, 'a')].n": 1}, {"items": [{"n": 1, "name": "baa"}]}, True),
        ({"$.name[0:1]": "*"}, {"name": "text"}, False),
        ({"$": {"a": 1}}, {"a": 1}, True),
        ({"params": {"$.name": "read_*"}}, CALL, True),
        ({"$['$schema']": "x"}, {"$schema": "x"}, True),
        ([{"method": "a"}, {"method": "b"}], {"method": "b"}, True),
    ],
)
def test_a_path_starts_at_its_object_and_all_it_finds_must_fit(
    pattern: object, payload: object, expected: object
) -> None:
    assert fits({"kind": "x", "payload": pattern}, "x", payload) is expected


@pytest.mark.parametrize(
    ("pattern", "to", "expected"),
    [
        ("files", ["files"], True),
        ("files", ["files", "ann"], False),
        ("files", [], False),
        (["files", "ann"], ["files", "ann"], True),
        ("*", ["anyone"], True),
        ("*", [], False),
        ("!ann", ["bob"], True),
    ],
)
def test_every_addressee_must_fit_and_there_must_be_one(
    pattern: object, to: list[str], expected: object
) -> None:
    assert fits({"kind": "mcp/request", "to": pattern}, "mcp/request", CALL, to) is expected


def test_an_exception_is_carved_out() -> None:
    written = {
        "kind": "mcp/*",
        "except": ["mcp/request:tools/call:delete_*", {"kind": "mcp/reject", "to": "ann"}],
    }
    delete = {"method": "tools/call", "params": {"name": "delete_all"}}
    assert fits(written, "mcp/request", CALL)
    assert not fits(written, "mcp/request", delete)
    assert fits(written, "mcp/proposal", delete)
    assert fits(written, "mcp/reject", None, ["bob"])
    assert not fits(written, "mcp/reject", None, ["ann"])


@pytest.mark.parametrize(
    ("to", "expected"),
    [(["shell"], False), (["shell", "x"], False), (["x", "shell"], False), ([], False), (["x"], True)],
)
def test_an_exception_holds_if_one_addressee_fits_or_nobody_is_named(to: list[str], expected: object) -> None:
    written = {"kind": "mcp/*", "except": [{"kind": "mcp/request", "to": "shell"}]}
    assert fits(written, "mcp/request", CALL, to) is expected
    assert fits(written, "mcp/proposal", CALL, to)


def test_the_payload_is_asked_for_only_if_kind_and_addressees_fit() -> None:
    def never() -> object:
        pytest.fail("the payload was decoded")

    assert not Capability.parse("mcp/request:tools/call").fits("chat", [], never)
    assert not Capability.parse({"kind": "chat", "to": "ann", "payload": {}}).fits("chat", ["bob"], never)
    assert Capability.parse({"kind": "chat", "except": ["mcp/request:tools/call"]}).fits("chat", [], never)


def test_a_payload_that_cannot_be_decoded_does_not_fit() -> None:
    def broken() -> object:
        raise ValueError("bad bytes")

    assert not Capability.parse({"kind": "*", "payload": {}}).fits("chat", [], broken)
    assert not Capability.parse({"kind": "*", "except": [{"kind": "*", "payload": {}}]}).fits(
        "chat", [], broken
    )


def test_a_repeated_key_is_malformed_only_where_a_pattern_looks() -> None:
    twice = Repeated({"method": "b", "id": 1}, {"method"})
    assert fits({"kind": "x", "payload": {"id": 1}}, "x", twice)
    with pytest.raises(AmbiguousPayload):
        fits({"kind": "x", "payload": {"method": "b"}}, "x", twice)
    with pytest.raises(AmbiguousPayload):
        fits({"kind": "*", "except": [{"kind": "x", "payload": {"method": "a"}}]}, "x", twice)
    with pytest.raises(AmbiguousPayload):
        fits({"kind": "x", "payload": {"$.id": 1}}, "x", {"id": 1, "deep": [twice]})


@pytest.mark.parametrize(
    "path", ["$..x", "$..*..*..x", "$..[?count($..*) > 1].x", f"$[{','.join(['*'] * 200)}].x"]
)
def test_a_path_that_might_take_too_long_is_in_doubt(path: str) -> None:
    large = {"a": [{"x": 1}] * 40_000}
    assert not fits({"kind": "x", "payload": {path: 1}}, "x", large)
    assert not fits({"kind": "x", "except": [{"kind": "x", "payload": {path: 2}}]}, "x", large)


@pytest.mark.parametrize("pattern", ["/x/", "!/y/", ["/y/", "/x/"]])
def test_a_text_too_long_to_search_is_let_through_by_no_expression(pattern: Any) -> None:
    capability = Capability.parse({"kind": "chat", "payload": {"text": pattern}})
    assert capability.fits("chat", [], lambda: {"text": "x" * 65_536})
    assert not capability.fits("chat", [], lambda: {"text": "x" * 65_537})
    assert not CapabilitySet([capability]).fits("chat", [], lambda: {"text": "x" * 65_537})


def test_an_exception_by_expression_holds_for_a_text_too_long_to_search() -> None:
    excepted = {"kind": "chat", "except": [{"kind": "chat", "payload": {"text": "/y/"}}]}
    held = CapabilitySet([Capability.parse(excepted)])
    assert held.fits("chat", [], lambda: {"text": "x" * 65_536})
    assert not held.fits("chat", [], lambda: {"text": "x" * 65_537})
