"""What is asked of each real server, directly and through a space: each battery returns what came of it, by name.

A battery says nothing about what is right. It is run twice, and the two records must be the same.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from .mcp_host import LEGACY, Host, Json

__all__ = ["BATTERIES", "Battery", "Record", "normalised"]

Record = dict[str, Any]
Battery = Callable[[Host, str], Awaitable[Record]]
"""Takes a host, and the folder or address that the server works on."""

_WHEN = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+( ?[+-][\d:]+|Z)?"
    r"|\d{1,2}:\d\d:\d\d\s[AP]M"
    r"|\w{3} \w{3} +\d+ (\d{4} )?[\d:]{8}( \d{4}| GMT[^\n\"]*)"
)
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_LATER = {"resultType", "ttlMs", "cacheScope"}
"""What only the second generation has beside the result itself."""


def normalised(record: Any, place: str) -> Any:
    """The same without the place it was done at, the time, hashes made of it, and what a generation adds."""
    match record:
        case dict():
            kept = {key: normalised(value, place) for key, value in record.items() if key not in _LATER}
            if kept.get("mode") == "form":
                del kept["mode"]  # which is the same as none
            kept = {key: value for key, value in kept.items() if not _is_mark(key)}
            return {key: value for key, value in kept.items() if value or key not in ("_meta", "data")}
        case list():
            return [normalised(value, place) for value in record]
        case str():
            return _HASH.sub("HASH", _WHEN.sub("WHEN", record.replace(place, "PLACE")))
        case _:
            return record


def _is_mark(key: str) -> bool:
    """Of who answered: what the second generation and a space put into `_meta`."""
    return key.startswith(("mew/", "io.modelcontextprotocol/"))


async def lists(host: Host) -> Record:
    methods = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    return {method: await host.ask(method) for method in methods}


async def mistakes(host: Host) -> Record:
    return {
        "a tool that is not there": await host.call("no_such_tool"),
        "a resource that is not there": await host.ask("resources/read", {"uri": "none://such"}),
        "a prompt that is not there": await host.ask("prompts/get", {"name": "no_such_prompt"}),
    }


async def filesystem(host: Host, folder: str) -> Record:
    note, moved = f"{folder}/note.txt", f"{folder}/moved.txt"
    edits = [{"oldText": "hello", "newText": "goodbye"}]
    steps: list[tuple[str, Json]] = [
        ("list_allowed_directories", {}),
        ("write_file", {"path": note, "content": "hello\nwörld \u2028 \x07\n"}),
        ("read_text_file", {"path": note}),
        ("read_text_file", {"path": note, "head": 1}),
        ("edit_file", {"path": note, "edits": edits, "dryRun": True}),
        ("edit_file", {"path": note, "edits": edits}),
        ("create_directory", {"path": f"{folder}/inner"}),
        ("move_file", {"source": note, "destination": moved}),
        ("read_text_file", {"path": note}),
        ("read_multiple_files", {"paths": [moved, note]}),
        ("read_media_file", {"path": f"{folder}/pixel.png"}),
        ("list_directory", {"path": folder}),
        ("directory_tree", {"path": folder}),
        ("search_files", {"path": folder, "pattern": "*.txt"}),
        ("get_file_info", {"path": moved}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("read_text_file", {"path": f"{folder}/../x"}),
        ("read_text_file", {"path": 7}),
        ("read_text_file", {}),
        ("write_file", {"path": note, "content": "x" * 700_000}),
        ("read_text_file", {"path": note}),
    ]
    done = [await host.call(tool, **arguments) for tool, arguments in steps]
    return {**await lists(host), "calls": done, **await mistakes(host)}


async def memory(host: Host, _: str) -> Record:
    ann = {"name": "Ann", "entityType": "person", "observations": ["reviews"]}
    bot = {"name": "Bot", "entityType": "agent", "observations": []}
    relation = {"from": "Bot", "to": "Ann", "relationType": "asks"}
    steps: list[tuple[str, Json]] = [
        ("create_entities", {"entities": [ann, bot]}),
        ("create_relations", {"relations": [relation]}),
        ("add_observations", {"observations": [{"entityName": "Bot", "contents": ["proposes"]}]}),
        ("search_nodes", {"query": "proposes"}),
        ("open_nodes", {"names": ["Ann"]}),
        ("read_graph", {}),
        ("add_observations", {"observations": [{"entityName": "Eve", "contents": ["x"]}]}),
        ("create_entities", {"entities": "Ann"}),
        ("delete_relations", {"relations": [relation]}),
        ("delete_entities", {"entityNames": ["Bot"]}),
        ("read_graph", {}),
    ]
    done = [await host.call(tool, **arguments) for tool, arguments in steps]
    read = await host.ask("resources/read", {"uri": "memory://knowledge-graph"})
    return {**await lists(host), "calls": done, "read": read, **await mistakes(host)}


async def everything(host: Host, _: str) -> Record:
    steps: list[tuple[str, Json]] = [
        ("echo", {"message": "hello \x1b[31m\u202e"}),
        ("echo", {}),
        ("get-sum", {"a": 2, "b": 0.5}),
        ("get-sum", {"a": "2"}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-resource-links", {"count": 2}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 3}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-tiny-image", {}),
        ("trigger-sampling-request", {"prompt": "How many?", "maxTokens": 9}),
        ("trigger-elicitation-request", {}),
    ]
    done = [await host.call(tool, **arguments) for tool, arguments in steps]
    progress: list[Json] = []
    worked = await host.call("trigger-long-running-operation", progress, duration=0.2, steps=4)
    record = {"calls": done, "asked": host.asked, "progress": progress, "worked": worked}
    return {
        **await lists(host),
        **record,
        **await prompts_of_everything(host),
        **await changes_of_everything(host),
        **await mistakes(host),
    }


async def prompts_of_everything(host: Host) -> Record:
    gets: list[Json] = [
        {"name": "simple-prompt"},
        {"name": "args-prompt", "arguments": {"city": "Ghent", "state": "x"}},
        {"name": "args-prompt"},
        {"name": "resource-prompt", "arguments": {"resourceType": "Text", "resourceId": "1"}},
    ]
    department = {"name": "department", "value": "S"}
    lead = {"name": "name", "value": "D"}
    template = {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}
    prompt = {"type": "ref/prompt", "name": "completable-prompt"}
    completes: list[Json] = [
        {"ref": prompt, "argument": department},
        {"ref": prompt, "argument": lead, "context": {"arguments": {"department": "Sales"}}},
        {"ref": template, "argument": {"name": "resourceId", "value": "7"}},
        {"ref": {"type": "ref/prompt", "name": "none"}, "argument": lead},
    ]
    reads = ["demo://resource/static/document/structure.md", "demo://resource/dynamic/text/5"]
    return {
        "prompts": [await host.ask("prompts/get", params) for params in gets],
        "completions": [await host.ask("completion/complete", params) for params in completes],
        "reads": [await host.ask("resources/read", {"uri": uri}) for uri in reads],
    }


async def changes_of_everything(host: Host) -> Record:
    """What the server says by itself: a resource was updated, one was added, a line of the log."""
    watched = "demo://resource/dynamic/text/1"
    async with host.watching(watched):
        await host.call("toggle-subscriber-updates")
        updated = await host.until(lambda told: told["method"] == "notifications/resources/updated")
        await host.call("toggle-subscriber-updates")
        host.told.clear()
        compressed = await host.call("gzip-file-as-resource", name="a.gz", data="data:text/plain,hello")
        changed = await host.until(lambda told: told["method"] == "notifications/resources/list_changed")
        added = await host.ask("resources/list")
        read = await host.ask("resources/read", {"uri": "demo://resource/session/a.gz"})
    record = {
        "updated": updated["params"]["uri"],
        "changed": changed["method"],
        "added": [compressed, added, read],
    }
    if host.generation == LEGACY:
        assert await host.ask("logging/setLevel", {"level": "debug"}) == {"result": {}}
        await host.call("toggle-simulated-logging")
        await host.until(lambda told: re.search("level.message", str(told.get("params"))) is not None)
        await host.call("toggle-simulated-logging")
    return record


async def clock(host: Host, _: str) -> Record:
    zones = {"source_timezone": "Europe/Warsaw", "target_timezone": "Asia/Tokyo"}
    steps: list[tuple[str, Json]] = [
        ("get_current_time", {"timezone": "UTC"}),
        ("convert_time", {**zones, "time": "12:30"}),
        ("convert_time", {**zones, "time": "half past"}),
        ("get_current_time", {"timezone": "Nowhere/None"}),
        ("get_current_time", {}),
    ]
    done = [await host.call(tool, **arguments) for tool, arguments in steps]
    return {**await lists(host), "calls": done, **await mistakes(host)}


async def git(host: Host, folder: str) -> Record:
    repo = {"repo_path": folder}
    steps: list[tuple[str, Json]] = [
        ("git_status", repo),
        ("git_diff_unstaged", repo),
        ("git_add", {**repo, "files": ["note.txt"]}),
        ("git_diff_staged", repo),
        ("git_commit", {**repo, "message": "Say goodbye"}),
        ("git_log", {**repo, "max_count": 2}),
        ("git_show", {**repo, "revision": "HEAD"}),
        ("git_create_branch", {**repo, "branch_name": "side"}),
        ("git_branch", {**repo, "branch_type": "local"}),
        ("git_checkout", {**repo, "branch_name": "none"}),
        ("git_status", {"repo_path": "/nowhere"}),
        ("git_status", {}),
    ]
    done = [await host.call(tool, **arguments) for tool, arguments in steps]
    return {**await lists(host), "calls": done, **await mistakes(host)}


async def fetch(host: Host, address: str) -> Record:
    steps: list[Json] = [
        {"url": f"{address}/page.html"},
        {"url": f"{address}/page.html", "raw": True},
        {"url": f"{address}/page.html", "raw": True, "max_length": 10, "start_index": 5},
        {"url": f"{address}/missing"},
        {"url": "not a url"},
    ]
    done = [await host.call("fetch", **arguments) for arguments in steps]
    prompt = await host.ask("prompts/get", {"name": "fetch", "arguments": {"url": f"{address}/missing"}})
    return {**await lists(host), "calls": done, "prompt": prompt, **await mistakes(host)}


async def conforming(host: Host, _: str) -> Record:
    """A server of the second generation: it asks by its answers."""
    asking = (
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_multi_round",
    )
    prompt = await host.ask("prompts/get", {"name": "test_input_required_result_prompt"})
    return {"prompt": prompt, **await both_generations(host, *asking)}


async def conforming_legacy(host: Host, _: str) -> Record:
    """A server of the first generation: it asks over the connection."""
    return await both_generations(host, "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums")


async def both_generations(host: Host, *asking: str) -> Record:
    tools = ["test_multiple_content_types", "test_audio_content", "test_error_handling", *asking]
    done = [await host.call(tool) for tool in tools]
    progress: list[Json] = []
    worked = await host.call("test_tool_with_progress", progress)
    if host.generation == LEGACY:
        assert "error" not in await host.ask("logging/setLevel", {"level": "debug"})
    logged = await host.call("test_tool_with_logging")
    if host.generation == LEGACY:  # what is told on the side may come after the answer
        await host.until(lambda told: told.get("params", {}).get("data") == "Tool execution completed")
    lines = [told["params"] for told in host.told if told["method"] == "notifications/message"]
    record = {"calls": done, "asked": host.asked, "progress": progress, "worked": worked}
    return {
        **await lists(host),
        **record,
        "logged": [logged, lines],
        "cancelled": await cancelled(host) if host.cancels else "yes",
        "changed": await changed(host),
        **await mistakes(host),
    }


async def cancelled(host: Host) -> str:
    """A call that is given up stops at the server, too: it says so."""
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(host.call("wait_until_cancelled"))
        assert await host.text("is_waiting") == "yes"
        waiting.cancel()
    return await host.text("was_cancelled")


async def changed(host: Host) -> list[str]:
    async with host.watching():
        host.told.clear()
        await host.call("test_trigger_tool_change")
        await host.call("test_trigger_prompt_change")
        await host.until(lambda told: told["method"] == "notifications/prompts/list_changed")
        await host.until(lambda told: told["method"] == "notifications/tools/list_changed")
    return sorted({told["method"] for told in host.told})


BATTERIES: dict[str, Battery] = {
    "filesystem": filesystem,
    "memory": memory,
    "everything": everything,
    "time": clock,
    "git": git,
    "fetch": fetch,
    "conforming": conforming,
    "conforming-legacy": conforming_legacy,
}
