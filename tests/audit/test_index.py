"""Facts in a file: all that was put in comes out, whatever the order, and nothing else."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mew.audit.facts import Fact
from mew.audit.index import FILE, Index
from mew.log.base import LogUnavailable

ALL = "ORDER BY seq, n"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path) as index:
        yield index


def fact(
    seq: int, kind: str = "mcp/request", id: str = "", *, names: str = "", about: str = "", refusal: str = ""
) -> Fact:
    causes = tuple(names.split())
    return Fact(seq, 0, seq * 1000, kind, "ann", id or f"e{seq}", about, refusal=refusal, causes=causes)


REQUEST = fact(1, about="tools/call:read")
RESPONSE = fact(2, "mcp/response", names="e1")


def test_what_was_put_in_comes_out(index: Index) -> None:
    whole = Fact(1, 2, 3, "k", "w", "i", "a", "n", "r", "c", ("x", "y"), ("z",), '{"made":1}', ("o",), "d")
    plain = Fact(2, 0, 4, "k", "w")
    index.add([plain, whole], 0, 2)
    assert index.select(tail=ALL) == [whole, plain]
    assert index.select("kind = ? AND seq > ?", ("k", 1)) == [plain]
    assert index.rows("SELECT count(*) FROM facts") == [(2,)]


def test_it_is_there_when_the_file_is_opened_again_and_for_nobody_else(tmp_path: Path) -> None:
    with Index(tmp_path) as index:
        index.add([REQUEST], 0, 1)
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    with Index(tmp_path) as index:
        assert index.select() == [REQUEST]


def test_many_at_once_and_none_at_all(index: Index) -> None:
    many = [fact(n, names="a b c") for n in range(1, 1001)]
    index.add(many, 0, 1000)
    index.add([], 1000, 2000)
    assert index.select(tail=ALL) == many
    assert index.times_named("b") == 1000
    assert index.gaps(0, 2000) == []


def test_a_response_says_what_was_asked(index: Index) -> None:
    index.add([REQUEST, RESPONSE], 0, 2)
    assert [one.about for one in index.select(tail=ALL)] == ["tools/call:read"] * 2


def test_also_where_the_request_came_here_later(index: Index) -> None:
    index.add([RESPONSE], 1, 2)
    index.add([REQUEST], 0, 1)
    assert index.select("seq = 2")[0].about == ""
    index.inherit()
    assert index.select("seq = 2")[0].about == "tools/call:read"


def test_but_not_what_was_asked_after_it_or_refused(index: Index) -> None:
    early = fact(1, "mcp/response", names="e2 e3")
    refused = fact(2, about="tools/call:a", refusal="paused")
    index.add([early, refused, fact(3, about="tools/call:b"), fact(4, "mcp/reject", names="e2")], 0, 4)
    assert [one.about for one in index.select("kind <> 'mcp/request'", tail=ALL)] == ["", ""]


def test_what_is_known_stays_as_it_is(index: Index) -> None:
    index.add([REQUEST], 0, 1)
    index.add([fact(1, about="tools/call:other")], 0, 1)
    assert index.select() == [REQUEST]


def test_an_envelope_is_found_by_its_id_and_by_what_names_it(index: Index) -> None:
    other = fact(3, "mcp/response", id="e1", refusal="duplicate_id", names="e1")
    index.add(
        [REQUEST, fact(2, "mcp/response", names="e1 e1"), other, fact(4, "mcp/response", names="e0 e1")], 0, 4
    )
    found = index.with_id("e1")
    assert found == REQUEST
    assert index.with_id("e9") is None
    assert [one.seq for one in index.naming("e1")] == [2, 4]
    assert [one.seq for one in index.naming("e1", 1)] == [2]
    assert index.times_named("e1") == 2


def test_an_answer_is_about_what_its_sender_was_asked(index: Index) -> None:
    def asked(seq: int, kind: str, about: str, *whom: str) -> Fact:
        return Fact(seq, 0, 0, kind, "ann", f"e{seq}", about, whom=whom)

    def answer(seq: int, kind: str, *names: str) -> Fact:
        return Fact(seq, 0, 0, kind, "files", f"e{seq}", causes=names)

    index.add(
        [
            asked(1, "mcp/request", "harmless", "bot"),
            asked(2, "mcp/proposal", "proposed", "files"),
            asked(3, "mcp/request", "harmful", "bot", "files"),
            asked(4, "mcp/request", "to all"),
            answer(5, "mcp/response", "e1", "e2", "e3"),
            answer(6, "mcp/response", "e1", "e2"),
            answer(7, "mcp/response", "e4", "e3"),
            answer(8, "mcp/reject", "e1", "e3", "e2"),
            answer(9, "mcp/withdraw", "e3"),
        ],
        0,
        9,
    )
    found = index.select("seq > 4", tail="ORDER BY seq")
    assert [fact.about for fact in found] == ["harmful", "", "to all", "proposed", ""]


def test_of_an_id_used_again_the_latest_before_is_meant(index: Index) -> None:
    index.add([fact(5, id="again"), fact(7, id="again")], 4, 7)
    index.add([fact(1, id="again")], 0, 4)
    found = [index.with_id("again", before) for before in ((1, 0), (5, 0), (6, 0), (7, 1))]
    assert [one and one.seq for one in found] == [None, 1, 5, 7]
    assert index.with_id("again") == found[-1]
    assert index.times_used("again") == 3


@pytest.mark.parametrize(
    ("added", "gaps"),
    [
        ([], [(0, 10)]),
        ([(0, 10)], []),
        ([(0, 4)], [(4, 10)]),
        ([(3, 5)], [(0, 3), (5, 10)]),
        ([(3, 5), (4, 8)], [(0, 3), (8, 10)]),
        ([(6, 8), (2, 4), (4, 6)], [(0, 2), (8, 10)]),
        ([(2, 3), (7, 20)], [(0, 2), (3, 7)]),
        ([(12, 20)], [(0, 10)]),
    ],
)
def test_it_knows_which_entries_it_has_nothing_of(
    index: Index, added: list[tuple[int, int]], gaps: list[tuple[int, int]]
) -> None:
    for after, until in added:
        index.add([], after, until)
    assert index.gaps(0, 10) == gaps
    assert index.gaps(5, 5) == []


def test_what_touches_is_one_range(index: Index) -> None:
    for after, until in ((0, 2), (4, 6), (2, 4), (5, 9)):
        index.add([], after, until)
    assert index.rows("SELECT * FROM covered") == [(0, 9)]


def test_two_may_write_it(tmp_path: Path) -> None:
    with Index(tmp_path) as one, Index(tmp_path) as other:
        one.add([REQUEST], 0, 1)
        other.add([RESPONSE], 1, 2)
        assert one.select(tail=ALL) == other.select(tail=ALL)
        assert one.gaps(0, 2) == []


def test_a_file_that_is_none_is_kept_under_another_name(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"what somebody wrote " * 100)
    with Index(tmp_path) as index:
        assert index.select() == []
    assert [path.read_bytes()[:4] for path in tmp_path.glob(f"{FILE}.damaged-*")] == [b"what"]


@pytest.mark.parametrize("version", [1, 99])
def test_one_of_another_version_is_kept_under_another_name(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with Index(tmp_path) as index:
        assert index.gaps(0, 1) == [(0, 1)]
    (kept,) = tmp_path.glob(f"{FILE}.damaged-?")
    with closing(sqlite3.connect(kept)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match=FILE):
        Index(tmp_path / "nowhere")


def test_what_fails_half_way_leaves_nothing(index: Index) -> None:
    with pytest.raises(OverflowError):
        index.add([REQUEST, fact(2**63)], 0, 1)
    assert index.select() == []
    assert index.gaps(0, 1) == [(0, 1)]


def test_to_look_at_an_index_twice_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    with Index(tmp_path) as first:
        first.add((), 0, 5)
        with Index(tmp_path):
            pass
        ended = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM covered'); c.close()"
        subprocess.run([sys.executable, "-c", ended, str(first.path)], check=True, timeout=30)
        assert first.path.with_name(
            f"{first.path.name}-wal"
        ).exists()  # the other was not the last to have it
        first.add((), 5, 9)
    with Index(tmp_path) as again:
        assert again.gaps(0, 9) == []
