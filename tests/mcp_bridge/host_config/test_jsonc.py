"""One member of a JSON text changes, and nothing else does."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.mcp_bridge.host_config.jsonc import InvalidJson, member, read, with_member, without_member

AT = ("servers", "mew")
SERVER = {"command": "mew", "args": ["mcp"]}

COMMENTED = """\
{
\t// mine
\t"servers": {
\t\t"time": {"command": "t"} // the clock
\t},
\t"inputs": [1.0, "//", /* no */ "\\"/*"],
}
"""


def test_a_member_is_added_on_a_line_of_its_own_and_comments_stay() -> None:
    text = with_member(COMMENTED, AT, SERVER)
    assert text == COMMENTED.replace(
        " // the clock\n\t},",
        ', // the clock\n\t\t"mew": {\n\t\t\t"command": "mew",\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}\n\t},',
    )
    assert without_member(text, AT) == COMMENTED


@pytest.mark.parametrize(
    "text",
    [
        COMMENTED,
        COMMENTED.replace("\n", "\r\n"),
        "\ufeff" + COMMENTED,
        '{"servers": {"time": {}}}',
        '{"servers": {"time": {}}, "inputs": []}\n',
        '{\n    "servers": {\n        "time": {},  // a, b\n    },\n}\n',
        '{"servers": {"time": 1 // one\n}}',
        '{"servers": {}}',
        '{\n  "servers": {} /* none */\n}\n',
    ],
)
def test_what_was_put_in_and_taken_out_leaves_no_trace(text: str) -> None:
    put = with_member(text, AT, SERVER)
    assert member(put, AT) == SERVER
    assert without_member(put, AT) == text


@pytest.mark.parametrize("text", ["", "\n", "// nothing yet\n", "{}", "{ }\n", '{"other": 1}', "\ufeff"])
def test_what_is_not_there_yet_is_made(text: str) -> None:
    put = with_member(text, AT, SERVER)
    assert member(put, AT) == SERVER
    assert member(put, ("other",)) == member(text, ("other",))


def test_a_member_that_is_there_is_replaced_in_its_place() -> None:
    text = '{\n  "servers": {\n    "mew": 1, // old\n    "time": 2\n  }\n}\n'
    assert with_member(text, AT, {"a": []}) == text.replace('"mew": 1', '"mew": {\n      "a": []\n    }')


def test_a_member_is_taken_out_from_the_front_and_the_middle() -> None:
    text = '{"servers": {"mew": 1, /* a */ "time": 2}}'
    assert without_member(text, AT) == '{"servers": {/* a */ "time": 2}}'
    text = '{\n  "servers": {\n    "a": 1,\n    "mew": 2,\n    // b\n    "b": 3\n  }\n}'
    assert without_member(text, AT) == text.replace('"mew": 2,\n    ', "")


def test_no_bracket_comes_to_stand_in_a_comment() -> None:
    text = '{"servers": {"a": 1, // one\n "mew": 2}}'
    assert member(without_member(text, AT), ("servers",)) == {"a": 1}


def test_what_is_not_there_is_taken_out_without_a_trace() -> None:
    for text in (COMMENTED, "", "{}", '{"servers": 7}'):
        assert without_member(text, AT) == text


def test_of_two_with_one_name_the_last_counts() -> None:
    text = '{"servers": {"mew": 1, "mew": 2}}'
    assert member(text, AT) == 2
    assert with_member(text, AT, 3) == '{"servers": {"mew": 1, "mew": 3}}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1, column 2: expected a name in quotes"),
        ('{"a"}', "line 1, column 5: expected a colon"),
        ('{"a": 1\n"b": 2}', "line 2, column 1: expected a comma or '}'"),
        ("[1 2]", "line 1, column 4: expected a comma or ']'"),
        ("{,}", "line 1, column 2: expected a name in quotes"),
        ("{} x", "line 1, column 4: expected the end, there is more"),
        ('{"a": nul}', "line 1, column 7: expected a value"),
        ('{"a": "\\x"}', "line 1, column 7: expected a text"),
        ("{} /* open", "line 1, column 4: expected the end, there is more"),
        ("[" * 1000, "line 1, column 202: nested too deeply"),
    ],
)
def test_what_is_no_json_is_said_with_its_place(text: str, why: str) -> None:
    with pytest.raises(InvalidJson) as failed:
        read(text)
    assert str(failed.value) == why


@pytest.mark.parametrize(("text", "where"), [("[]", "the file"), ('{"servers": 7}', "servers")])
def test_a_value_in_the_way_is_not_overwritten(text: str, where: str) -> None:
    with pytest.raises(InvalidJson, match=f"{where}: expected an object"):
        with_member(text, AT, SERVER)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(
    st.sampled_from(["servers", "a", "b"]),
    st.dictionaries(st.text(max_size=4), values, max_size=3),
    max_size=3,
)


@given(documents, st.text(max_size=4), values, st.sampled_from([None, 2, "\t"]))
def test_any_member_is_set_and_removed_and_no_other_is_touched(
    document: dict[str, dict[str, Any]], name: str, value: Any, indent: int | str | None
) -> None:
    text = json.dumps(document, indent=indent)
    put = with_member(text, ("servers", name), value)
    assert json.loads(put) == {**document, "servers": {**document.get("servers", {}), name: value}}
    left = {key: one for key, one in document.get("servers", {}).items() if key != name}
    assert json.loads(without_member(put, ("servers", name))) == {**document, "servers": left}


@given(st.text(alphabet='{}[]":,/* \n\\a1', max_size=40))
def test_no_text_makes_it_raise_anything_else(text: str) -> None:
    try:
        put = with_member(text, AT, SERVER)
    except InvalidJson:
        return
    assert member(put, AT) == SERVER
    assert member(without_member(put, AT), AT) in (None, *([SERVER] if put.count('"mew"') > 1 else []))
