"""PURE. A first policy for a server, from what its tools say of themselves."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mew.protocol.visible import visible

__all__ = ["proposed_policy"]

_HEAD: Final = """\
# A policy for {name}, proposed by 'mew wrap --scan' from what its {count} tools say of themselves. Nothing proves
# that they say the truth: look at each line. The first list with a rule for a call decides, in the order hide, deny,
# ask, allow, default.
# A rule is 'tools/call:NAME' or {{tool: NAME, arguments: {{path: "docs/**"}}}}; patterns are those of capabilities.
# mew wrap --policy FILE -- COMMAND reads it, and reads it again when it has changed.

hide: []    # not shown to hosts
deny: []    # never called, and hosts are told so
"""
_TAIL: Final = """\
default: ask
# limits:
#   - {tool: "*", calls: 200, per: hour}    # per minute, hour or day; then: deny (default) or ask
"""
_NOTE_CHARS_MAX: Final = 70


def proposed_policy(name: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """The text of a policy file: what only reads and stays here is allowed, everything else is asked about."""
    allow = [tool for tool in tools if _says(tool, "readOnlyHint") and not _says_open(tool)]
    ask = [tool for tool in tools if tool not in allow]
    return (
        _HEAD.format(name=visible(name), count=len(tools))
        + _list("ask", "calls that wait for a person", ask)
        + _list("allow", "say that they only read, and reach nothing outside", allow)
        + _TAIL
    )


def _list(action: str, note: str, tools: Iterable[Mapping[str, Any]]) -> str:
    lines = [
        f"  - {json.dumps('tools/call:' + tool['name'], ensure_ascii=False)}{_why(tool)}\n" for tool in tools
    ]
    return f"{action}:    # {note}\n{''.join(lines)}" if lines else f"{action}: []    # {note}\n"


def _why(tool: Mapping[str, Any]) -> str:
    """What the tool says of itself, for whoever reads the file."""
    said = [
        word
        for hint, word in (
            ("readOnlyHint", "reads"),
            ("destructiveHint", "destructive"),
            ("openWorldHint", "reaches outside"),
        )
        if _says(tool, hint)
    ]
    about = tool.get("title") or tool.get("description")
    line = about.strip().splitlines()[0] if isinstance(about, str) and about.strip() else ""
    note = "; ".join([*([", ".join(said)] if said else []), *([line] if line else [])])
    return f"    # {visible(note, _NOTE_CHARS_MAX)}" if note else ""


def _says(tool: Mapping[str, Any], hint: str) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, Mapping) and annotations.get(hint) is True


def _says_open(tool: Mapping[str, Any]) -> bool:
    return _says(tool, "openWorldHint") or _says(tool, "destructiveHint")
