"""The gateway, the page and `mew can` say the same of what somebody may do."""

import json
import subprocess
from copy import copy
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mew.cli.commands.can_reasons import verdict_of
from mew.protocol.capability import Capability, CapabilitySet
from mew.protocol.errors import InvalidCapability

WEB = Path(__file__).parents[2] / "web"
ASKED = """
import { mayDo } from "CAPABILITY_MATCH";
let text = "";
for await (const part of process.stdin) text += part;
console.log(JSON.stringify(JSON.parse(text).map(({ held, draft }) => mayDo(held, draft))));
"""

PATHS = [
    *("/a/b/c", "/a/b", "/a", "a/b", "./a/b", "./a/./b", "/a/./b/c", "/a//b/c", "//a/b", "/a/b/", "/a/b/."),
    *("/a/../b", "..", "/a/b/..", "/a/%2e%2e/b", "/a/.%2E/b", "/a%2fb/c", "/a%5Cb/c", "/a\\b\\c", "\\a\\b"),
    *("/a/%62/c", "/a/%2562/c", "/a/%252e%252e/b", "/a/100%", "/a/b%20c", "/a/b\\c", "/a/x\\..\\b", "", "."),
    *("file:///a/b/c", "file:///a//b", "file:///a/%2e/b", "https://h/a/b?x=//y/../z", "https://h//a/b"),
]
PATTERNS = [
    *("*", "**", "/a/**", "/a/*", "/a/b/**", "/a/?", "/a/?/c", "**/c", "/a/b/c", "./a/*", "/a*", "/a/./b/c"),
    *("!/a/b/**", "!/a/*", "!/a/b/c", "!**/c", "file:///a/**", "https://h/**", "\\a\\*", "/a\\*", "!!/a/*"),
    *("/a/../**", ["/a/b", "/a/b/*"], ["!/a/*", "/a/b"]),
]
SCALARS: list[Any] = [0, 1, 1.0, True, False, None, "1", ["/a"], {"a": 1}]
ADDRESSEES = [[], ["shell"], ["x"], ["shell", "x"], ["x", "shell"], ["files", "x"]]
CLAUSES: list[dict[str, Any]] = [{"to": "shell"}, {"to": "*"}, {"to": "!shell"}, {"to": ["shell", "x"]}, {}]
KINDS = ["mcp/request", "mcp/proposal", "chat", "mcp/request/deep"]


class Case(NamedTuple):
    held: list[dict[str, Any]]
    draft: dict[str, Any]

    def passes_the_gateway(self) -> bool:
        capabilities = CapabilitySet(map(Capability.parse, self.held))
        return capabilities.fits(
            self.draft["kind"], self.draft.get("to", []), lambda: self.draft.get("payload")
        )


def on_path(value: Any) -> dict[str, Any]:
    return {"kind": "mcp/request", "payload": {"path": value}}


def cases() -> list[Case]:
    allowed = (Case([on_path(pattern)], on_path(path)) for pattern, path in product(PATTERNS, PATHS))
    excepted = (
        Case([on_path(wide) | {"except": [on_path(pattern)]}], on_path(path))
        for wide, pattern, path in product(["*", "/a/**", "!/x"], PATTERNS, PATHS)
    )
    values = (
        Case([on_path(pattern)], on_path(value))
        for pattern, value in product(["*", "a", *SCALARS[:6]], SCALARS)
    )
    addressed = (
        Case([held], {"kind": kind, "to": to, "payload": {}})
        for clause, kind, to in product(CLAUSES, KINDS, ADDRESSEES)
        for held in (
            {"kind": "mcp/*"} | clause,
            {"kind": "*", "except": [{"kind": "mcp/request"} | clause]},
            {"kind": "!chat", "except": [{"kind": "mcp/*"} | clause]},
            {"kind": ["chat", "mcp/**"], "to": "*", "except": [{"kind": "**"} | clause]},
        )
    )
    without_payload = (
        Case([on_path("*"), {"kind": "chat", "except": [{"kind": "*", "payload": {}}]}], {"kind": kind})
        for kind in KINDS
    )
    return list(chain(allowed, excepted, values, addressed, without_payload))


def the_page_says(asked: list[Case], folder: Path) -> list[bool]:
    (folder / "asked.mjs").write_text(
        ASKED.replace("CAPABILITY_MATCH", str(WEB / "src/space/capability_match.ts"))
    )
    bundle = [WEB / "node_modules/.bin/rolldown", folder / "asked.mjs", "-o", folder / "bundle.mjs"]
    subprocess.run([*map(str, bundle), "-p", "node"], check=True, capture_output=True, cwd=WEB)
    said = subprocess.run(
        ["node", str(folder / "bundle.mjs")],
        input=json.dumps([case._asdict() for case in asked]),
        check=True,
        capture_output=True,
        text=True,
    )
    answers: list[bool] = json.loads(said.stdout)
    return answers


def test_the_page_says_what_the_gateway_says(tmp_path: Path) -> None:
    asked = cases()
    differ = [
        case
        for case, said in zip(asked, the_page_says(asked, tmp_path), strict=True)
        if said is not case.passes_the_gateway()
    ]
    assert differ == []


def test_what_mew_can_says_yes_to_passes_the_gateway() -> None:
    for case in cases():
        try:
            asked = Capability.parse(
                {name: value for name, value in case.draft.items() if value not in ([], {}) or name == "kind"}
            )
        except InvalidCapability:  # a value that no capability can ask about, such as one in slashes
            continue
        to, payload = case.draft.get("to", []), case.draft.get("payload")
        verdict = verdict_of("bot", asked, [{"id": "bot", "capabilities": case.held}], [])
        if verdict.may and asked.fits(case.draft["kind"], to, partial(copy, payload)):
            assert case.passes_the_gateway(), case


@pytest.mark.parametrize("to", ADDRESSEES)
def test_a_revocation_with_an_addressee_holds_whoever_else_is_named(to: list[str], tmp_path: Path) -> None:
    left = Capability.parse("mcp/*").without(Capability.parse({"kind": "mcp/request", "to": "shell"}))
    assert left is not None
    case = Case([left.source], {"kind": "mcp/request", "to": to, "payload": {}})
    asked = Capability.parse({"kind": "mcp/request"} | ({"to": to} if to else {}))
    verdict = verdict_of("bot", asked, [{"id": "bot", "capabilities": case.held}], [])
    expected = len(to) > 0 and "shell" not in to
    assert case.passes_the_gateway() is verdict.may is the_page_says([case], tmp_path)[0] is expected
