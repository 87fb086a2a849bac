"""Arguments against the JSON Schema of a tool, which may be anybody's."""

import re
from typing import Any

import pytest

from mew.client.mcp.validation import InvalidArguments, check, check_call

WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^/public/"},
        "mode": {"enum": ["a", "w"]},
        "lines": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def problem(arguments: Any, schema: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        check(arguments, schema)
    return str(caught.value)


def test_what_the_schema_allows_passes() -> None:
    check({"path": "/public/a", "mode": "w", "lines": ["x"]}, WRITE)


@pytest.mark.parametrize("schema", [None, True, {}])
def test_a_schema_that_asks_for_nothing_allows_anything(schema: Any) -> None:
    check({"any": [1, None]}, schema)


def test_every_problem_is_named_with_its_place() -> None:
    said = problem({"path": "/etc", "mode": "x", "lines": ["a", 1]}, WRITE)
    assert "path: '/etc' does not match '^/public/'" in said
    assert "mode: 'x' is not one of ['a', 'w']" in said
    assert "lines[1]: 1 is not of type 'string'" in said


def test_an_unknown_argument_is_named_with_those_expected() -> None:
    assert (
        problem({"path": "/public/a", "pth": 1}, WRITE)
        == "unknown argument 'pth', expected: 'path', 'mode', 'lines'"
    )


def test_only_some_of_many_problems_are_told_and_none_at_length() -> None:
    said = problem({"lines": list(range(50)), "path": "/public/"}, WRITE)
    assert said.count("; ") == 5
    assert said.endswith("and more")
    assert len(problem({"path": "x" * 100_000}, WRITE)) < 400


def test_a_pattern_takes_linear_time() -> None:
    check("a" * 50_000, {"pattern": "(a+)+$"})
    assert "does not match" in problem("a" * 50_000 + "!", {"pattern": "^(a+)+$"})
    check({"a" * 50_000 + "!": 1}, {"patternProperties": {"^(a+)+$": False}})


def test_names_that_fit_a_pattern_are_not_additional() -> None:
    schema = {"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    check({"x-a": 1, "other": "text"}, schema)
    assert problem({"x-a": "1"}, schema) == "['x-a']: '1' is not of type 'integer'"
    assert problem({"other": 1}, schema) == "other: 1 is not of type 'string'"


def test_a_pattern_that_re2_does_not_know_is_left_to_the_tool() -> None:
    check("anything", {"pattern": "^(?!secret)"})
    check({"b": 1}, {"patternProperties": {"(?=a)a": False}, "additionalProperties": False})


def test_a_schema_may_name_an_older_draft() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"name": {"type": "string"}},
        "properties": {"pair": {"items": [{"$ref": "#/definitions/name"}, {"type": "integer"}]}},
    }
    check({"pair": ["a", 1]}, schema)
    assert problem({"pair": [1, 1]}, schema) == "pair[0]: 1 is not of type 'string'"


def test_references_within_the_schema_are_followed() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "value": {"type": "integer"}}}
    check({"left": {"left": {"value": 1}}}, tree)
    assert "left.left.value" in problem({"left": {"left": {"value": "1"}}}, tree)


@pytest.mark.parametrize("ref", ["https://example.com/schema.json", "#/$defs/none", "file:///etc/passwd"])
def test_nothing_is_fetched(ref: str) -> None:
    assert "is not in it" in problem({}, {"$ref": ref})


@pytest.mark.slow
def test_references_without_end_are_given_up() -> None:
    doubling: dict[str, Any] = {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(64)},
    }
    doubling["$defs"]["d64"] = {}
    assert "without end" in problem({}, doubling)
    assert "without end" in problem({}, {"$ref": "#"})


@pytest.mark.parametrize("schema", ["text", 5, [1], {"type": 5}, {"$schema": 5}, {"properties": {"a": 1}}])
def test_what_is_no_schema_is_told_as_such(schema: Any) -> None:
    assert problem({"a": 1}, schema).startswith("the tool's schema ")


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        (["x19999"] * 5_000, {"items": {"enum": [f"x{n}" for n in range(20_000)]}}),
        ([{"a": n} for n in range(3_000)], {"uniqueItems": True}),
        ({f"k{n}": 1 for n in range(2_000)}, {"patternProperties": {f"^z{n}.*$": {} for n in range(500)}}),
        (
            {},
            {"$schema": "http://json-schema.org/draft-04/schema#", "enum": [{"a": n} for n in range(3_000)]},
        ),
    ],
)
def test_what_would_take_very_long_is_given_up(arguments: Any, schema: Any) -> None:
    with pytest.raises(InvalidArguments, match="too long"):
        check(arguments, schema)


def test_what_is_large_and_simple_is_checked() -> None:
    integers = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    check(list(range(20_000)), integers)
    with pytest.raises(InvalidArguments, match="'x'"):
        check([*range(20_000), "x"], {"type": "array", "items": {"type": "integer"}})


# Calls, which servers take more of than their schemas say.

RESIZE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "width": {"type": "integer"},
        "scale": {"type": ["number", "null"], "default": 1.0},
        "keep": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "depth": {"enum": [8, 16]},
        "name": {"type": "string"},
    },
    "required": ["width", "scale"],
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"width": 3},
        {"width": "3"},
        {"width": "-3", "scale": "1.5e3", "keep": "True", "depth": "16"},
        {"width": 3, "scale": "null", "keep": "null"},
        {"width": 3, "unknown": [1]},
    ],
)
def test_defaults_may_be_missing_and_scalars_may_be_text_in_a_call(arguments: dict[str, Any]) -> None:
    check_call(arguments, RESIZE)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "'width' is a required property"),
        ({"width": "three"}, "'three' is not of type 'integer'"),
        ({"width": "3.5"}, "'3.5' is not of type 'integer'"),
        ({"width": 3, "keep": "maybe"}, "'maybe' is not valid under any of the given schemas"),
        ({"width": 3, "depth": "32"}, "'32' is not one of"),
        ({"width": 3, "name": 7}, "7 is not of type 'string'"),
        ({"width": [3]}, "is not of type 'integer'"),
    ],
)
def test_what_no_server_would_take_is_refused_in_a_call(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidArguments, match=re.escape(why)):
        check_call(arguments, RESIZE)


def test_unknown_arguments_are_refused_in_a_call_where_the_schema_forbids_them() -> None:
    with pytest.raises(InvalidArguments, match="unknown argument 'pth'"):
        check_call({"path": "/public/a", "pth": "x"}, WRITE)


@pytest.mark.parametrize(
    "schema", [{"type": 7}, {"$ref": "#/nowhere"}, {"$ref": "https://example.com/a.json"}, "no schema"]
)
def test_a_schema_that_nothing_can_be_checked_against_allows_every_call(schema: Any) -> None:
    check_call({"a": 1}, schema)
