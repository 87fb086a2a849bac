"""What participants offer, learned by watching."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.envelopes import AT, after, envelope

from mew.proposals.catalogue import Catalogue, Server, Tool
from mew.protocol.envelope import Envelope

WRITE = {"name": "write", "description": "Writes a file.", "inputSchema": {"type": "object"}}
READ = {"name": "read", "annotations": {"readOnlyHint": True, "destructiveHint": "no"}}


def asked(
    id: str, *, by: str = "ann", of: Any = "files", method: str = "tools/list", cursor: Any = None
) -> Envelope:
    params = {} if cursor is None else {"cursor": cursor}
    return envelope(
        "mcp/request", by, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, id=id, to=of
    )


def answered(id: str, to: str, *tools: Any, by: str = "files", more: Any = None) -> Envelope:
    result = {"tools": list(tools)} | ({} if more is None else {"nextCursor": more})
    return envelope(
        "mcp/response", by, {"jsonrpc": "2.0", "id": 1, "result": result}, id=id, correlation_id=to
    )


def listing(number: int, *tools: Any, of: str = "files") -> list[Envelope]:
    return [asked(f"q{number}", of=of), answered(f"a{number}", f"q{number}", *tools, by=of)]


def fed(catalogue: Catalogue, *envelopes: Envelope, at: datetime = AT) -> list[Tool]:
    return [tool for envelope in envelopes for tool in catalogue.apply(envelope, at)]


def names(catalogue: Catalogue, participant: str = "files") -> list[str]:
    return [tool.name for tool in catalogue.tools(participant)]


def test_tools_are_known_once_anybody_has_listed_them() -> None:
    catalogue = Catalogue()
    news = fed(catalogue, *listing(1, WRITE, READ))
    assert news == list(catalogue.tools("files"))
    assert names(catalogue) == ["write", "read"]
    write = catalogue.tool("files", "write")
    assert write is not None
    assert (write.description, write.input_schema, write.first_seen) == (
        "Writes a file.",
        {"type": "object"},
        AT,
    )
    assert not write.changed
    assert catalogue.participants == ("files",)
    assert catalogue.is_complete("files")


def test_an_annotation_counts_where_it_is_a_truth_value() -> None:
    catalogue = Catalogue()
    (read,) = fed(catalogue, *listing(1, READ))
    assert (read.hint("readOnlyHint"), read.hint("destructiveHint"), read.hint("openWorldHint")) == (
        True,
        None,
        None,
    )


def test_only_one_who_was_asked_answers() -> None:
    """§3.1.2, design §3.18."""
    catalogue = Catalogue()
    assert not fed(catalogue, asked("q"), answered("a", "q", WRITE, by="eve"))
    assert not fed(catalogue, answered("b", "other", WRITE))
    assert catalogue.participants == ()


def test_everybody_answers_a_question_to_everybody_each_for_itself() -> None:
    catalogue = Catalogue()
    fed(catalogue, asked("q", of=()), answered("a", "q", WRITE), answered("b", "q", WRITE, READ, by="disk"))
    assert names(catalogue) == ["write"]
    assert names(catalogue, "disk") == ["write", "read"]
    assert [tool.participant for tool in catalogue.offering("write")] == ["files", "disk"]


def test_pages_make_one_listing() -> None:
    catalogue = Catalogue()
    fed(catalogue, asked("q1"), answered("a1", "q1", WRITE, more="2"))
    assert not catalogue.is_complete("files")
    fed(catalogue, asked("q2", cursor="2"), answered("a2", "q2", READ))
    assert names(catalogue) == ["write", "read"]
    assert catalogue.is_complete("files")


def test_what_a_whole_listing_lacks_is_no_longer_offered() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE, READ))
    (gone,) = fed(catalogue, *listing(2, READ))
    assert (gone.name, gone.listed) == ("write", False)
    assert names(catalogue) == ["read"]
    assert catalogue.tool("files", "write") == gone


@pytest.mark.parametrize(
    "pages", [[asked("q", cursor="2"), answered("a", "q", READ)], [asked("q", cursor=7)]]
)
def test_what_a_part_of_a_listing_lacks_is_still_offered(pages: list[Envelope]) -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE), *pages, answered("b", "q", READ, more="3"))
    assert "write" in names(catalogue)


def test_a_page_continues_only_the_listing_of_who_asked() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE, READ), asked("q2"), answered("a2", "q2", READ, more="2"))
    fed(catalogue, asked("q3", by="bob", cursor="2"), answered("a3", "q3", READ))
    assert names(catalogue) == ["write", "read"]


def test_a_tool_that_is_not_what_it_was_is_marked_with_what_it_was() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE))
    fed(catalogue, *listing(2, WRITE), at=after(1))
    (changed,) = fed(catalogue, *listing(3, WRITE | {"description": "Also mails it."}), at=after(2))
    assert changed.changed == ("description",)
    assert changed.former is not None
    assert changed.former.description == "Writes a file."
    assert (changed.first_seen, changed.changed_at) == (AT, after(2))
    (again,) = fed(catalogue, *listing(4, WRITE | {"inputSchema": {"type": "object", "x": 1}}), at=after(3))
    assert again.changed == ("input_schema",)
    assert again.former == changed.former
    (back,) = fed(catalogue, *listing(5, WRITE), at=after(4))
    assert (back.changed, back.former, back.changed_at) == ((), None, after(4))


def test_a_tool_that_comes_back_as_another_is_marked() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE, READ), *listing(2, READ))
    (back,) = fed(catalogue, *listing(3, READ, WRITE | {"annotations": {"readOnlyHint": True}}))
    assert (back.listed, back.changed) == (True, ("annotations",))


def test_one_and_true_are_not_the_same_schema() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE | {"inputSchema": {"minItems": 1}}))
    (changed,) = fed(catalogue, *listing(2, WRITE | {"inputSchema": {"minItems": True}}))
    assert changed.changed == ("input_schema",)


def test_a_participant_can_say_that_its_tools_changed() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, WRITE))
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    fed(catalogue, envelope("mcp/request", "eve", changed, id="n1"))
    assert catalogue.is_complete("files")
    fed(catalogue, envelope("mcp/request", "files", changed, id="n2"))
    assert not catalogue.is_complete("files")
    fed(catalogue, *listing(2, WRITE))
    assert catalogue.is_complete("files")


def test_initialize_tells_what_a_server_calls_itself() -> None:
    catalogue = Catalogue()
    result = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "fs" * 200, "version": "1.2"}}
    fed(
        catalogue,
        asked("q", method="initialize"),
        envelope(
            "mcp/response", "files", {"jsonrpc": "2.0", "id": 1, "result": result}, id="a", correlation_id="q"
        ),
    )
    server = catalogue.server("files")
    assert isinstance(server, Server)
    assert (len(server.name), server.version, server.title) == (256, "1.2", "")
    assert catalogue.tools("files") == ()
    assert catalogue.server("eve") is None


@pytest.mark.parametrize(
    "payload",
    [
        {"result": {"tools": "none"}},
        {"result": {"tools": [1, {}, {"name": ""}, {"name": 5}, {"name": "x", "description": 3}]}},
        {"result": []},
        {"error": {"code": -32601, "message": "no tools"}},
        {"result": 1, "error": 2},
        b'{"result":{"tools":[{"name":"a","name":"b"}]}}',
    ],
)
def test_what_does_not_decode_is_ignored(payload: Any) -> None:
    catalogue = Catalogue()
    assert not fed(
        catalogue, asked("q"), envelope("mcp/response", "files", payload, id="a", correlation_id="q")
    )
    assert catalogue.tools("files") == ()


def test_a_tool_that_does_not_decode_hides_no_other() -> None:
    catalogue = Catalogue()
    fed(catalogue, *listing(1, {"name": 5}, WRITE))
    assert names(catalogue) == ["write"]


def test_there_are_at_most_so_many_of_everything() -> None:
    catalogue = Catalogue(participants_max=2, tools_max=3, pending_max=4)
    many = [{"name": f"t{number}"} for number in range(9)]
    for number, who in enumerate(["a", "b", "c"]):
        fed(catalogue, *listing(number, *many, of=who))
    assert catalogue.participants == ("b", "c")
    assert names(catalogue, "c") == ["t0", "t1", "t2"]


def test_who_asks_without_end_makes_nobody_elses_answer_unheard() -> None:
    catalogue = Catalogue(pending_max=4)
    fed(catalogue, asked("q", by="ann"), *(asked(f"x{number}", by="eve") for number in range(50)))
    fed(catalogue, answered("a", "q", WRITE))
    assert names(catalogue) == ["write"]


def test_tools_no_longer_listed_make_room() -> None:
    catalogue = Catalogue(tools_max=2)
    fed(catalogue, *listing(1, {"name": "a"}, {"name": "b"}), *listing(2, {"name": "b"}))
    fed(catalogue, *listing(3, {"name": "b"}, {"name": "c"}))
    assert names(catalogue) == ["b", "c"]
    assert catalogue.tool("files", "a") is None


def test_a_tool_that_grew_too_large_is_no_longer_known_to_be_what_it_was() -> None:
    catalogue = Catalogue(bytes_max=1000)
    fed(catalogue, *listing(1, WRITE))
    (large,) = fed(catalogue, *listing(2, WRITE | {"description": "x" * 2000}))
    assert (large.listed, large.description) == (False, "Writes a file.")
    assert not fed(catalogue, *listing(3, {"name": "huge", "description": "x" * 2000}))


def test_a_tool_that_changes_again_and_again_takes_no_more_room() -> None:
    catalogue = Catalogue(bytes_max=1000)
    for number in range(100):
        fed(catalogue, *listing(number, WRITE | {"description": str(number)}))
    assert names(catalogue) == ["write"]


def test_a_listing_without_end_is_given_up() -> None:
    catalogue = Catalogue(tools_max=5)
    fed(catalogue, *listing(0, WRITE), asked("q1"), answered("a1", "q1", READ, more="1"))
    for number in range(1, 20):
        page = answered(f"b{number}", f"p{number}", {"name": f"t{number}"}, more=f"{number + 1}")
        fed(catalogue, asked(f"p{number}", cursor=f"{number}"), page)
    fed(catalogue, asked("end", cursor="20"), answered("z", "end"))
    assert "write" in names(catalogue)


VERSIONS = st.sampled_from(
    [WRITE, READ, WRITE | {"description": "another"}, WRITE | {"inputSchema": {"x": 1}}]
)
MOVES = st.one_of(
    st.builds(
        lambda n, who, to: asked(f"q{n}", by=who, of=to),
        st.integers(0, 3),
        st.sampled_from("ab"),
        st.sampled_from(["files", "disk", ()]),
    ),
    st.builds(
        lambda n, m, tools, by, more: answered(f"a{n}", f"q{m}", *tools, by=by, more=more),
        st.integers(0, 9),
        st.integers(0, 3),
        st.lists(VERSIONS, max_size=2),
        st.sampled_from(["files", "disk", "eve"]),
        st.none() | st.just("2"),
    ),
)


@given(st.lists(MOVES, max_size=20), st.data())
def test_seeing_envelopes_twice_is_seeing_them_once(moves: list[Envelope], data: st.DataObject) -> None:
    once, twice = Catalogue(), Catalogue()
    for number, move in enumerate(moves):
        once.apply(move, after(number))
        twice.apply(move, after(number))
        again = data.draw(st.integers(0, number))
        assert not twice.apply(moves[again], after(number))
    for who in ("files", "disk", "eve"):
        assert once.tools(who) == twice.tools(who)
        assert once.is_complete(who) == twice.is_complete(who)


def test_a_response_answers_only_the_first_that_it_names() -> None:
    """To learn a page once for each of a thousand requests would hold up everyone for minutes."""
    catalogue = Catalogue()
    fed(catalogue, asked("i", method="initialize"), asked("q"))
    result = {"serverInfo": {"name": "Files"}, "tools": [WRITE]}
    both = envelope(
        "mcp/response",
        "files",
        {"jsonrpc": "2.0", "id": 1, "result": result},
        id="a",
        correlation_id=("i", "q"),
    )
    fed(catalogue, both)
    assert catalogue.server("files") == Server("Files")
    assert names(catalogue) == []
