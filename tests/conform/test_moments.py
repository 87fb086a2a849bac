"""Moments: RFC 3339 with an offset, and nothing else."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mew.conform.match import moment


@pytest.mark.parametrize(
    "text", ["2026-01-09T10:00:00Z", "2026-01-09T12:00:00.000+02:00", "2026-01-09t10:00:00z"]
)
def test_a_time_with_an_offset_is_a_moment(text: str) -> None:
    assert moment(text) == datetime(2026, 1, 9, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-09T10:00:00",
        "2026-01-09",
        "20260109T100000Z",
        "2026-13-09T10:00:00Z",
        "now",
        "",
        None,
        1767952800,
        ["2026"],
    ],
)
def test_anything_else_is_none(text: Any) -> None:
    assert moment(text) is None
