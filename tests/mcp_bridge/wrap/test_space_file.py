"""The space of a wrapped server, and one that is written by hand: what each in it may do."""

from pathlib import Path
from typing import Any

import pytest

import mew
import mew.testing
from mew.gateway.config.loader import Config, load_config
from mew.mcp_bridge.policy.policy import CallPolicy, PolicySettings
from mew.mcp_bridge.wrap.space_file import space_text
from mew.protocol.capability import CapabilitySet
from mew.protocol.envelope import ParticipantId

EXAMPLE = Path(__file__).parents[3] / "examples" / "read-only" / "space.yaml"


def written(folder: Path, rules: PolicySettings, *, ephemeral: bool = False) -> Config:
    policy = CallPolicy(rules, host="host", server="files", clock=lambda: 0.0)
    file = folder / "space.yaml"
    file.write_text(space_text("files-2", "files", policy, ephemeral=ephemeral))
    return load_config(file, {})


def held(config: Config, who: str) -> CapabilitySet:
    return CapabilitySet(config.spaces["files-2"].capabilities_of(ParticipantId(who)))


def may(config: Config, method: str, **params: Any) -> tuple[bool, bool]:
    """Whether the host may ask the server for this, and whether it may propose it."""
    payload = {"method": method, "params": params}
    request, proposal = (
        held(config, "host").fits(kind, ["files"], lambda: payload)
        for kind in ("mcp/request", "mcp/proposal")
    )
    return request, proposal


@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
def test_a_host_sees_what_there_is(tmp_path: Path, method: str) -> None:
    assert may(written(tmp_path, PolicySettings()), method) == (True, True)


def test_a_host_that_is_allowed_nothing_reads_nothing_and_proposes_everything(tmp_path: Path) -> None:
    config = written(tmp_path, PolicySettings())
    assert may(config, "tools/call", name="read_file") == (False, True)
    assert may(config, "resources/read", uri="file:///x") == (False, True)
    assert may(config, "prompts/get", name="p") == (False, True)
    assert may(config, "completion/complete", ref={"type": "ref/prompt", "name": "p"}) == (False, True)


def test_what_is_allowed_is_made(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        PolicySettings(
            allow=(
                "tools/call:read_*",
                "tools/call:stat",
                "resources/read:file:///data/**",
                "prompts/get:greet",
            )
        ),
    )
    assert may(config, "tools/call", name="read_file") == (True, True)
    assert may(config, "tools/call", name="stat") == (True, True)
    assert may(config, "tools/call", name="write_file") == (False, True)
    assert may(config, "resources/read", uri="file:///data/a/b") == (True, True)
    assert may(config, "resources/subscribe", uri="file:///data/a") == (True, True)
    assert may(config, "resources/read", uri="file:///etc/passwd") == (False, True)
    assert may(config, "prompts/get", name="greet") == (True, True)
    assert may(config, "prompts/get", name="other") == (False, True)


def test_everything_may_be_allowed(tmp_path: Path) -> None:
    config = written(tmp_path, PolicySettings(allow=("tools/call:*",)))
    assert may(config, "tools/call", name="any/thing") == (True, True)
    assert may(config, "resources/read", uri="file:///x") == (False, True)


def test_a_host_decides_nothing_and_a_server_calls_nobody(tmp_path: Path) -> None:
    config = written(tmp_path, PolicySettings(allow=("tools/call:*",)))
    for kind in ("mcp/reject", "capability/grant", "space/invite", "participant/pause", "mcp/response"):
        assert not held(config, "host").fits(kind, [], dict)
        assert not held(config, "files").fits(kind, [], dict)
    call = {"method": "tools/call", "params": {"name": "x"}}
    assert not held(config, "files").fits("mcp/request", ["host"], lambda: call)
    assert not held(config, "host").fits("mcp/request", ["user"], lambda: call)
    assert held(config, "user").fits("mcp/request", ["files"], lambda: call)


def test_nothing_is_kept_of_what_is_ephemeral(tmp_path: Path) -> None:
    assert written(tmp_path, PolicySettings()).journal is not None
    assert written(tmp_path, PolicySettings(), ephemeral=True).journal is None


# The example.


def test_three_lines_make_what_reads_direct_and_everything_else_proposed() -> None:
    config = load_config(EXAMPLE, {})
    lines = config.spaces["files"].participants[ParticipantId("assistant")].capabilities
    assert lines is not None
    assert len(lines) == 3


async def test_the_assistant_of_the_example_reads_at_once_and_waits_with_everything_else() -> None:
    space = load_config(EXAMPLE, {}).spaces["files"]
    participants = {
        str(who): [one.source for one in space.capabilities_of(who)] for who in space.participants
    }
    files = mew.Participant("files")
    done: list[str] = []

    @files.tool
    def read_file(path: str) -> str:
        done.append(f"read {path}")
        return "text"

    @files.tool
    def write_file(path: str) -> str:
        done.append(f"wrote {path}")
        return "ok"

    async with (
        mew.testing.Space(participants) as gateway,
        gateway.serving(files, "files"),
        gateway.connect("ann") as ann,
        gateway.connect("assistant") as assistant,
    ):
        names = [tool.name for tool in await assistant.tools("files")]
        assert names == ["read_file", "write_file"]
        assert await assistant.call("files", "read_file", {"path": "a"}) == "text"
        proposals = ann.proposals()
        proposed = await assistant.propose_call("files", "write_file", {"path": "b"})
        with pytest.raises(mew.Refused):
            await assistant.request("files", "tools/call", {"name": "write_file", "arguments": {"path": "c"}})
        review = await anext(proposals)
        await review.approve()
        assert await proposed.value() == "ok"
        assert done == ["read a", "wrote b"]
