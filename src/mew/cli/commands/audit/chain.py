"""A chain as a tree for people, and nested for programs."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any, Final, TypeAlias

from msgspec import UNSET
from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from mew.audit.queries.chain import ChainNode, EnvelopeChain
from mew.audit.queries.proposals import Execution, ProposalStep, RequestMatch
from mew.audit.record.facts import FactKey
from mew.cli.render.table import about, fact_json, lasting, names, outcome, put, short_id, verb, who_did
from mew.proposals.differences import DIFFERENCES_MAX, Difference
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind
from mew.protocol.visible import cut, literal, named, visible

__all__ = ["chain_json", "show_chain"]

Steps: TypeAlias = Mapping[FactKey, ProposalStep]
_VALUE_CHARS_MAX: Final = 200
_PATH_CHARS_MAX: Final = 80
_BLOCKS_MAX: Final = 3
_LINE_CHARS_MAX: Final = 400
_DIFFERENT_LINES_MAX: Final = 400
_VERDICTS: Final = {
    RequestMatch.AS_PROPOSED: ("as proposed", "green"),
    RequestMatch.EDITED: ("edited", "yellow"),
    RequestMatch.UNRELATED: ("asks for something else than was proposed", "red"),
}


def show_chain(chain: EnvelopeChain, steps: Steps, out: Console) -> None:
    """The tree, from the first that led to it."""
    fact = chain.root.fact
    if chain.goes_on_above:
        put(out, Text("… what led to this is left out", "dim"))
    label = _label(chain, steps, chain.root, f"{fact.time.astimezone():%Y-%m-%d %H:%M:%S}")
    tree = Tree(label, guide_style="dim")
    _grow(tree, chain, steps, chain.root)
    put(out, tree)


def chain_json(chain: EnvelopeChain, steps: Steps) -> dict[str, Any]:
    """The same for a program: `root` with its `children`, and theirs."""
    focus = {"seq": chain.focus.seq, "n": chain.focus.n, "id": chain.focus.id}
    return {"focus": focus, "goes_on_above": chain.goes_on_above, "root": _node_json(chain.root, steps)}


def _grow(tree: Tree, chain: EnvelopeChain, steps: Steps, node: ChainNode) -> None:
    for child in node.children:
        there = child.fact.time.astimezone()
        same_day = there.date() == chain.root.fact.time.astimezone().date()
        branch = tree.add(
            _label(chain, steps, child, f"{there:%H:%M:%S}" if same_day else f"{there:%Y-%m-%d %H:%M:%S}")
        )
        _grow(branch, chain, steps, child)
    if node.left_out:
        tree.add(Text(f"… {node.left_out:,} more that name it are left out", "dim"))


def _label(chain: EnvelopeChain, steps: Steps, node: ChainNode, time: str) -> RenderableType:
    fact = node.fact
    is_focus = fact is chain.focus or (fact.seq, fact.n) == (chain.focus.seq, chain.focus.n)
    line = Text.assemble(
        (time, "dim"),
        ("" if node.after_s is None else f" +{lasting(node.after_s)}", "dim"),
        "  ",
        who_did(fact),
        " ",
        verb(fact, steps.get(fact.key)),
        " ",
        _said(node, steps.get(fact.key)),
        Text.assemble(" → ", names(fact.whom)) if fact.whom else "",
        "  ",
        short_id(fact),
        (" ◂", "bold") if is_focus and node is not chain.root else "",
    )
    notes = [*_compared(node.execution), *(Text(remark, "red") for remark in node.remarks)]
    if node.envelope is None and not fact.refusal:
        notes.append(
            Text("its content is no longer at hand: this is what the record says of it", "dim italic")
        )
    return Group(line, *notes) if notes else line


def _said(node: ChainNode, step: ProposalStep | None) -> Text:
    """What is in it, in short; of what is no longer kept, what the record has."""
    fact = node.fact
    if node.envelope is not None:
        try:
            said = _SAYS[fact.kind](node.envelope.content) if fact.kind in _SAYS else None
        except ProtocolError:
            said = None
        if said is not None:
            more = outcome(fact, step) if fact.kind == Kind.MCP_PROPOSAL else Text()
            return Text.assemble(said, "  ", more) if more.plain else said
    parts = [part for part in (about(fact), outcome(fact, step)) if part.plain]
    return Text(": ").join(parts)


def _asked(content: dict[str, Any]) -> Text:
    """`write_file(path: "a.txt")`."""
    method, params = content.get("method"), content.get("params")
    params = params if isinstance(params, dict) else {}
    if method == "tools/call" and isinstance(params.get("name"), str):
        written = literal(params.get("arguments", {}), _VALUE_CHARS_MAX)
        if isinstance(params.get("arguments", {}), dict):
            written = written[1:].removesuffix("}")
        return Text.assemble((cut(named(params["name"]), 80), "bold"), f"({written})")
    more = f" {literal(params, _VALUE_CHARS_MAX)}" if params else ""
    return Text.assemble((visible(str(method), 80), "bold"), more)


def _answered(content: dict[str, Any]) -> Text:
    error, result = content.get("error"), content.get("result")
    if error is not None:
        code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else ("", error)
        return Text(f"error {visible(str(code), 20)}: {visible(str(message), _VALUE_CHARS_MAX)}", "red")
    if not isinstance(result, dict):
        return Text(literal(result, _VALUE_CHARS_MAX))
    style = "red" if result.get("isError") is True else ""
    blocks = result.get("content")
    texts = [
        one["text"]
        for one in (blocks if isinstance(blocks, list) else [])[:_BLOCKS_MAX]
        if isinstance(one, dict) and isinstance(one.get("text"), str)
    ]
    shown = visible("\n".join(texts), _VALUE_CHARS_MAX) if texts else literal(result, _VALUE_CHARS_MAX)
    return Text(f"failed: {shown}" if style else shown, style)


_SAYS: Final = {
    Kind.MCP_PROPOSAL: _asked,
    Kind.MCP_REQUEST: _asked,
    Kind.MCP_RESPONSE: _answered,
}


def _compared(execution: Execution | None) -> list[Text]:
    if execution is None:
        return []
    word, style = _VERDICTS[execution.verdict]
    if execution.verdict is RequestMatch.AS_PROPOSED:
        return [Text(word, style)]
    if execution.changes is None:
        return [Text(f"{word}; what was changed is no longer kept", style)]
    if not execution.changes:
        return [Text(f"{word}: a key occurs twice in it, and who reads it decides which counts", style)]
    lines = [line for change in execution.changes for line in _change(change, style)]
    if len(execution.changes) == DIFFERENCES_MAX:
        lines.append(Text("  … and maybe more", style))
    return [Text(f"{word}:", style), *lines]


def _change(change: Difference, style: str) -> Iterator[Text]:
    """One line; of texts of several lines, those that differ."""
    path = visible(cut(change.path, _PATH_CHARS_MAX), _PATH_CHARS_MAX)
    old, new = change.old, change.new
    if not (isinstance(old, str) and isinstance(new, str) and "\n" in old + new):
        yield Text.assemble(f"  {path}  ", (_value(old), "dim"), (" → ", style), (_value(new), style))
        return
    yield Text(f"  {path}")
    compared = list(unified_diff(old.split("\n"), new.split("\n"), n=2, lineterm=""))[2:]  # no file names
    for line in compared[:_DIFFERENT_LINES_MAX]:
        colour = {"-": "red", "+": "green"}.get(line[:1], "dim")
        yield Text(f"    {visible(line, _LINE_CHARS_MAX)}", colour)
    if len(compared) > _DIFFERENT_LINES_MAX:
        yield Text(f"    … and {len(compared) - _DIFFERENT_LINES_MAX:,} lines more", "dim")


def _value(value: Any) -> str:
    return "nothing" if value is UNSET else literal(value, _VALUE_CHARS_MAX)


def _node_json(node: ChainNode, steps: Steps) -> dict[str, Any]:
    written = fact_json(node.fact, steps.get(node.fact.key)) | {
        "after_s": node.after_s,
        "kept": node.envelope is not None,
        "payload": _payload(node.envelope),
        "remarks": node.remarks,
        "left_out": node.left_out,
        "children": [_node_json(child, steps) for child in node.children],
    }
    execution = node.execution
    if execution is not None:
        changes = None if execution.changes is None else list(map(_change_json, execution.changes))
        written["execution"] = {"verdict": execution.verdict, "changes": changes}
    return written


def _change_json(change: Difference) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    return {"path": change.path, **{side: value for side, value in sides.items() if value is not UNSET}}


def _payload(envelope: Envelope | None) -> Any:
    try:
        return None if envelope is None else envelope.content
    except ProtocolError:
        return None
