"""Regular expressions and JSONPath in capabilities, written as the gateway under test writes them (§4.2)."""

from typing import Any, Final

from mew.conform.checking import check
from mew.conform.guests import somebody
from mew.conform.holding import held_to
from mew.conform.sayings import CHAT, HELLO, Say, call, calling, request
from mew.conform.stage import Stage

_ITEMS: Final[tuple[Any, ...]] = (
    [{"name": "b"}],
    [{"name": "b"}, {"name": "a"}],
    [],
    {"name": "b"},
    [{}, {"Name": "b"}],
)
_SEEN: Final[tuple[Any, ...]] = ([], [{"by": "you"}], [{}], "me", {"by": "you"})


@check("pattern.regex")
async def a_regular_expression_decides(stage: Stage) -> None:
    """What an expression matches from end to end passes, in the payload and as a kind; what it does not is refused."""
    owner, write = await stage.enter("owner"), stage.cast.notation.expression
    held = [
        calling(write("(read|list)_[a-z]+[0-9]?")),
        {"kind": write("reasoning/(thought|conclusion)")},
        CHAT,
    ]
    kinds = ("reasoning/thought", "reasoning/conclusion")
    passing = [HELLO, *map(call, ("read_file", "list_b", "read_file2")), *map(Say, kinds)]
    near = (
        "write_file",
        "read_",
        "read_FILE",
        "xread_file",
        "read_file22",
        "list-b",
        "read_file2 ",
        "(read|list)_a",
    )
    refused = [
        *map(call, near),
        *map(Say, ("reasoning/thoughts", "reasoning/start", "xreasoning/thought", "reasoning/")),
    ]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)


@check("pattern.jsonpath")
async def a_path_finds_what_must_fit(stage: Stage) -> None:
    """What a JSONPath finds must fit: in a field, at a place in an array, and everywhere in one."""
    owner, looking = await stage.enter("owner"), stage.cast.notation.looking
    held = [
        looking("mcp/request", "$.params.arguments.path", "tmp_*"),
        looking("mcp/proposal", "$.params.items[1].name", "b"),
        looking("chat/cancel", "$.seen[*].by", "me"),
        CHAT,
    ]
    passing = [
        HELLO,
        call("write_file", {"path": "tmp_a", "more": {"path": "x"}}),
        request("tools/call", {"items": [{"name": "a"}, {"name": "b"}]}, "mcp/proposal"),
        Say("chat/cancel", {"seen": [{"by": "me"}, {"by": "me", "at": 1}]}),
    ]
    refused = [
        *(
            call("write_file", arguments)
            for arguments in ({"path": "etc"}, {"path": "x/tmp_a"}, {"file": "tmp_a"}, {})
        ),
        Say("mcp/request", {"path": "tmp_a", "arguments": {"path": "tmp_a"}}),
        Say("mcp/request", ...),
        *(request("tools/call", {"items": items}, "mcp/proposal") for items in _ITEMS),
        *(Say("chat/cancel", {"seen": seen}) for seen in _SEEN),
        Say("chat/cancel", {"by": "me"}),
    ]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)
