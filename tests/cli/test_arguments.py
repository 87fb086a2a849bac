"""Arguments as they are typed."""

from pathlib import Path
from typing import Any

import pytest

from mew.cli.arguments import read_object, read_pairs
from mew.cli.errors import CommandError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object"},
        "mode": {"enum": ["r", "w"]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "label": {"type": ["string", "null"]},
        "point": {"$ref": "#/$defs/Point"},
        "loop": {"$ref": "#/$defs/Loop"},
    },
    "$defs": {"Point": {"type": "object"}, "Loop": {"$ref": "#/$defs/Loop"}},
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("path=42", "42"),
        ("path=true", "true"),
        ("path=", ""),
        ("path=a=b", "a=b"),
        ("path=a:=b", "a:=b"),
        ("count=42", 42),
        ("ratio=1.5", 1.5),
        ("deep=true", True),
        ("tags=one", ["one"]),
        ('tags=["one", "two"]', ["one", "two"]),
        ("sizes=3", [3]),
        ('options={"a": 1}', {"a": 1}),
        ("mode=w", "w"),
        ("limit=3", 3),
        ("limit=null", None),
        ("label=null", "null"),
        ('point={"x": 1}', {"x": 1}),
        ("path:=7", 7),
        ('tags:=["x"]', ["x"]),
    ],
)
def test_a_value_is_what_the_schema_says_it_is(pair: str, value: Any) -> None:
    (read,) = read_pairs([pair], schema=SCHEMA).values()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("a=1", 1),
        ("a=true", True),
        ("a=null", None),
        ("a=[1]", [1]),
        ("a=text", "text"),
        ('a="quoted"', '"quoted"'),
        ("a=1.2.3", "1.2.3"),
    ],
)
def test_without_a_schema_a_value_is_json_where_it_is_no_text(pair: str, value: Any) -> None:
    assert read_pairs([pair]) == {"a": value}
    assert read_pairs([pair], schema=SCHEMA) == {"a": value}


def test_a_key_that_holds_an_array_may_occur_several_times() -> None:
    assert read_pairs(["tags=a", "tags=b", "sizes=1", "sizes=[2, 3]"], schema=SCHEMA) == {
        "tags": ["a", "b"],
        "sizes": [1, 2, 3],
    }


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert read_pairs(["loop=1"], schema=SCHEMA) == {"loop": 1}


def test_a_value_may_be_what_a_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("two\nlines\n")
    (tmp_path / "options.json").write_text('{"a": 1}')
    assert read_pairs([f"path=@{file}"], schema=SCHEMA) == {"path": "two\nlines\n"}
    assert read_pairs([f"options:=@{tmp_path / 'options.json'}"]) == {"options": {"a": 1}}
    assert read_pairs(["path=@"]) == {"path": "@"}


def test_pairs_go_over_the_object(tmp_path: Path) -> None:
    assert read_pairs(["b=2"], '{"a": 1, "b": 1}') == {"a": 1, "b": 2}
    file = tmp_path / "all.json"
    file.write_text('{"a": 5}')
    assert read_pairs([], f"@{file}") == {"a": 5}


@pytest.mark.parametrize(
    ("pairs", "whole", "says"),
    [
        (["path"], None, "'path' is no argument: write key=value, key:=JSON or key=@file"),
        (["=x"], None, "'=x' is no argument"),
        (["count=many"], None, "count: expected integer, and 'many' is none"),
        (["limit=x"], None, "limit: expected integer or null"),
        (["sizes=x"], None, "sizes: expected integer"),
        (["path:={"], None, "path: this is no JSON"),
        (["path=a", "path=b"], None, "'path' is given twice"),
        (["path=@/no/such/file"], None, "path: /no/such/file: No such file or directory"),
        ([], "[1]", "--arguments: expected a JSON object"),
        ([], "{", "--arguments: this is no JSON"),
        ([], '{"a": [{"b": 1, "b": 2}]}', "--arguments: a key occurs twice in an object"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(pairs: list[str], whole: str | None, says: str) -> None:
    with pytest.raises(CommandError, match="^" + says.replace("(", r"\(").replace("[", r"\[")):
        read_pairs(pairs, whole, SCHEMA)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="is not text in UTF-8"):
        read_object("--payload", f"@{file}")
