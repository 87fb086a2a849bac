"""MCP's results made from Python values, and Python values from anything that came as a result."""

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.client.errors import ToolError
from mew.client.mcp.results import (
    Image,
    Message,
    ToolResult,
    call_result,
    contents_of,
    error_of,
    failure,
    messages_of,
    prompt_result,
    read_result,
    value_of,
)
from mew.client.tools.schema import output_of
from mew.protocol.json import decode_json, encode_json

PNG = b"\x89PNG"
WORDS = st.sampled_from(
    [
        "content",
        "isError",
        "structuredContent",
        "result",
        "type",
        "text",
        "contents",
        "blob",
        "messages",
        "role",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclasses.dataclass
class Point:
    x: int
    y: int


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def promised(hint: Any) -> Any:
    def function() -> Any: ...

    function.__annotations__["return"] = hint
    return output_of(function)


# Tools.


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("hello", {"content": [text("hello")]}),
        ("", {"content": [text("")]}),
        (None, {"content": []}),
        (5, {"content": [text("5")], "structuredContent": {"result": 5}}),
        (True, {"content": [text("true")], "structuredContent": {"result": True}}),
        ([1, "a"], {"content": [text('[1,"a"]')], "structuredContent": {"result": [1, "a"]}}),
        ({"a": 1}, {"content": [text('{"a":1}')], "structuredContent": {"a": 1}}),
        (Point(1, 2), {"content": [text('{"x":1,"y":2}')], "structuredContent": {"x": 1, "y": 2}}),
        (Image(PNG), {"content": [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]}),
        (
            ["see", Image(b"", "audio/wav")],
            {"content": [text("see"), {"type": "audio", "data": "", "mimeType": "audio/wav"}]},
        ),
    ],
    ids=str,
)
def test_what_a_tool_returns_becomes_content(value: Any, result: dict[str, Any]) -> None:
    assert call_result(value) == result


def test_a_tool_can_say_all_of_it_itself() -> None:
    link = {"type": "resource_link", "uri": "notes://a", "name": "a"}
    given = ToolResult(
        content=["a", link, Image(PNG), {"n": 1}], structured={"p": Point(1, 2)}, meta={"m": 1}
    )
    assert call_result(given) == {
        "content": [
            text("a"),
            link,
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            text('{"n":1}'),
        ],
        "structuredContent": {"p": {"x": 1, "y": 2}},
        "_meta": {"m": 1},
    }
    assert call_result(ToolResult(content="no", is_error=True)) == failure("no")
    assert call_result(ToolResult(structured={"a": 1}))["content"] == [text('{"a":1}')]


def test_a_result_that_was_promised_is_structured_even_when_it_is_text_or_nothing() -> None:
    output = promised(str | None)
    assert call_result("a", output) == {"content": [text("a")], "structuredContent": {"result": "a"}}
    assert call_result(None, output) == {"content": [], "structuredContent": {"result": None}}
    either = promised(int | dict[str, int])
    assert call_result({"a": 1}, either)["structuredContent"] == {"result": {"a": 1}}


def test_a_promise_that_is_not_kept_and_what_cannot_be_sent_are_errors() -> None:
    with pytest.raises(TypeError, match="promises: expected int, got str"):
        call_result("a", promised(int))
    with pytest.raises(TypeError, match="promises: expected float, got null"):
        call_result(float("nan"), promised(float))
    circle: list[Any] = []
    circle.append(circle)
    for unsendable in (object(), {"a": object()}, circle, ["\ud800"]):
        with pytest.raises(TypeError):
            call_result(unsendable)


def test_text_no_encoding_can_carry_is_made_to_fit() -> None:
    assert call_result("a\udcffb") == {"content": [text("a?b")]}
    encode_json(read_result("a:b", "\udcff"))


@given(JSON)
def test_a_value_comes_back_as_it_went(value: Any) -> None:
    result = decode_json(encode_json(call_result(value)))
    assert value_of(result) == value


@given(JSON.filter(lambda value: value is not None))
def test_a_value_comes_back_from_a_tool_that_promised_a_union(value: Any) -> None:
    result = call_result(value, promised(str | int | float | bool | list[Any] | dict[str, Any]))
    assert value_of(decode_json(encode_json(result))) == value


def test_an_object_with_a_result_in_it_is_told_from_a_wrapped_value() -> None:
    assert value_of(call_result({"result": 5})) == {"result": 5}
    assert value_of({"content": [text("5")], "structuredContent": {"result": 5}}) == 5
    assert value_of({"content": [], "structuredContent": {"result": 5}}) == 5
    assert value_of({"structuredContent": {"result": "\ud800"}, "content": [text("\ud800")]}) == "\ud800"


def test_without_structure_the_text_is_the_value_and_else_the_blocks() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    assert value_of({"content": [text("a"), text("b")]}) == "a\nb"
    assert value_of({"content": [text("a"), image]}) == [text("a"), image]
    assert value_of({"content": []}) is None
    assert value_of("not a result at all") == "not a result at all"


def test_a_failure_is_raised_with_what_the_tool_said() -> None:
    assert error_of(call_result("fine")) is None
    assert error_of(failure("no such file")) == "no such file"
    assert error_of({"isError": True}) == "the tool failed and said nothing"
    with pytest.raises(ToolError, match="no such file"):
        value_of(failure("no such file"))


# Resources and prompts.


@pytest.mark.parametrize(
    ("value", "contents", "back"),
    [
        ("a", {"mimeType": "text/plain", "text": "a"}, "a"),
        (b"\xff", {"mimeType": "application/octet-stream", "blob": "/w=="}, b"\xff"),
        (Image(PNG), {"mimeType": "image/png", "blob": "iVBORw=="}, PNG),
        (Point(1, 2), {"mimeType": "application/json", "text": '{"x":1,"y":2}'}, '{"x":1,"y":2}'),
    ],
    ids=str,
)
def test_a_resource_is_text_or_bytes_and_back(value: Any, contents: dict[str, Any], back: Any) -> None:
    result = read_result("notes://a", value)
    assert result == {"contents": [{"uri": "notes://a"} | contents]}
    assert contents_of(result) == back


def test_a_resource_is_of_the_type_its_author_says() -> None:
    assert read_result("a:b", "# a", "text/markdown")["contents"][0]["mimeType"] == "text/markdown"
    assert contents_of({"contents": [{"uri": "a", "text": "x"}, {"uri": "b", "blob": "eQ=="}]}) == ["x", b"y"]
    assert contents_of({"contents": [{"uri": "a", "blob": "!"}]}) == {"uri": "a", "blob": "!"}


def test_a_prompt_is_text_or_messages_and_back() -> None:
    image = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    assert prompt_result("hi", "Greets.") == {
        "description": "Greets.",
        "messages": [{"role": "user", "content": text("hi")}],
    }
    several = prompt_result(
        [
            "a",
            Message("b", "assistant"),
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": image},
        ]
    )
    assert messages_of(several) == [
        Message("a"),
        Message("b", "assistant"),
        Message("c", "assistant"),
        Message(image),
    ]
    with pytest.raises(TypeError, match="int, which is no message"):
        prompt_result(3)


# Whatever comes.


@pytest.mark.parametrize("reading", [contents_of, messages_of, error_of], ids=lambda f: str(f.__name__))
@given(anything=JSON)
def test_no_result_of_another_breaks_who_reads_it(reading: Callable[[Any], Any], anything: Any) -> None:
    reading(anything)
    reading({"isError": True, "content": anything, "contents": anything, "messages": anything})


@given(JSON, JSON)
def test_no_result_of_a_tool_breaks_its_caller(content: Any, structured: Any) -> None:
    value_of({"content": content, "structuredContent": structured})
    value_of({"content": [content, text("a")], "structuredContent": {"result": structured}})


@given(st.binary())
def test_bytes_come_back_from_a_resource(data: bytes) -> None:
    assert contents_of(read_result("a:b", data)) == data
    assert base64.b64decode(call_result(Image(data))["content"][0]["data"]) == data


def test_a_struct_goes_out_as_its_own_wire_form() -> None:
    class Renamed(msgspec.Struct, rename="camel"):
        file_name: str

    assert call_result(Renamed("a"))["structuredContent"] == {"fileName": "a"}
