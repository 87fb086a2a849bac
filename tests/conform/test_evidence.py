"""Of what went over the wire people are shown what matters, and of two values where they differ."""

import pytest

from mew.conform.match import alike
from mew.conform.report import folded, where_they_differ

ID = "conform-7c5197c6-0d7d-49a3-87ee-3b20601f986a"
MARKS = ['peer → {"kind": "chat", "payload": {"text": "mark"}}', 'owner ← {"kind":"system/presence"}'] * 3


def test_what_only_marks_time_is_counted_and_what_it_is_about_stands_out() -> None:
    wrong = f'owner ← {{"id": "{ID}"}}'
    lines = folded(f"the chat {ID} came twice", ["owner → hello", *MARKS, wrong, MARKS[0]])
    assert lines == [
        "  owner → hello",
        "  … 6 lines only to mark time or tell who is there",
        f"▶ {wrong}",
        "  … 1 line only to mark time or tell who is there",
    ]


def test_of_much_the_last_is_shown_and_what_it_is_about() -> None:
    lines = folded(f"{ID} is wrong", [f"owner → {ID}", *(f"owner → {number}" for number in range(100))])
    assert lines[:3] == ["  … 60 lines from before", f"▶ owner → {ID}", "  owner → 60"]
    assert lines[-1] == "  owner → 99"


def test_presence_is_not_folded_where_it_is_what_this_is_about() -> None:
    assert folded("expected a system/presence", MARKS[1::2]) == [f"  {line}" for line in MARKS[1::2]]


def test_of_long_values_the_part_that_differs_is_shown() -> None:
    was, now = where_they_differ({"text": "é" * 500 + "a"}, {"text": "é" * 500 + "b"})
    assert was.endswith("a'}")
    assert now.endswith("b'}")
    assert max(len(was), len(now)) < 200
    assert where_they_differ([1], [2]) == ("[1]", "[2]")


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        (1, 1.0, True),
        (12345678901234567, 12345678901234568.0, True),
        (3.14159265358979323846, 3.141592653589793, True),
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1}, True),
        (1, True, False),
        (1, "1", False),
        (0.1, 0.10001, False),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        (10**400, 10**400 + 1, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_values_are_compared_as_json_has_them(one: object, other: object, *, are_alike: bool) -> None:
    assert alike(one, other) is alike(other, one) is are_alike
