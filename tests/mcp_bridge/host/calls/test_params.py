"""What belongs to the connection with the host stays there, and all else passes."""

from mew.mcp_bridge.host.calls.notes import CallNotes, LogNote, ProgressNote, logged
from mew.mcp_bridge.host.calls.params import NotificationOptions, finished, inward, with_news
from mew.mcp_bridge.host.server import instructions
from mew.mcp_bridge.host.settings import HostSettings

SERVER = {"name": "mew"}


def test_what_a_host_sent_passes_but_for_what_is_between_it_and_us() -> None:
    params = {
        "name": "files__read",
        "arguments": {"a": None},
        "requestState": "1.p.x",
        "inputResponses": {},
        "vendor": 7,
        "_meta": {"progressToken": 1, "io.modelcontextprotocol/clientInfo": {}, "vendor/id": 2},
    }

    assert inward(params, name="read") == {
        "name": "read",
        "arguments": {"a": None},
        "vendor": 7,
        "_meta": {"vendor/id": 2},
    }
    assert params["name"] == "files__read"
    assert "_meta" not in inward({"_meta": {"progressToken": 1}})


def test_the_same_call_is_the_same_proposal() -> None:
    marked = with_news({"name": "x"}, NotificationOptions(progress=True, level="debug"), proposed=True)

    assert marked == with_news(
        {"name": "x"}, NotificationOptions(progress=True, level="debug"), proposed=True
    )
    assert inward(marked) == {"name": "x"}
    assert with_news({"name": "x"}, NotificationOptions(), proposed=True) == {"name": "x"}
    assert with_news({"name": "x"}, NotificationOptions(progress=True), proposed=False) == {"name": "x"}


def test_a_result_is_as_its_generation_expects_it() -> None:
    said = {"tools": [], "resultType": "odd"}

    assert finished("tools/list", said, SERVER, is_modern=False) == {"tools": []}
    assert finished("tools/list", said, SERVER, is_modern=True) == {
        "tools": [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
    }


def test_each_reads_the_notes_from_where_it_was() -> None:
    notes = CallNotes()
    for n in range(300):
        notes.add(ProgressNote(str(n)))
    read, fresh = notes.since(298)

    assert [note.message for note in fresh if isinstance(note, ProgressNote)] == ["298", "299"]
    assert notes.since(read) == (300, ())
    assert len(notes.since(0)[1]) == 256, "the last of them"
    notes.add(LogNote({"level": "info"}))
    assert notes.since(read) == (301, (LogNote({"level": "info"}),))


def test_a_line_of_a_log_says_whose_it_is() -> None:
    assert logged("files", {"logger": "disk"}, None)["logger"] == "files/disk"
    assert logged("files", {}, None)["logger"] == "files"
    assert logged("files", {"logger": "disk"}, "files") == {"logger": "disk"}


def test_instructions_name_no_tool_that_is_not_there() -> None:
    assert "mew_outcome" in instructions("me", "demo", HostSettings())
    assert "mew_" not in instructions("me", "demo", HostSettings(own_tools=False))
    assert "mew_chat" not in instructions("me", "demo", HostSettings(only="files"))
