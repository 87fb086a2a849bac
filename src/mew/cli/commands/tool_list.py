"""PURE. The tools of participants as people read them: how to call each, and what it says of itself."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from mew.cli.render.envelope import colour_of
from mew.proposals.catalogue import Tool
from mew.protocol.visible import cut, named, visible

__all__ = ["shown_offers"]

_DESCRIPTION_CHARS: Final = 200
_PARAMETERS_MAX: Final = 24
_HINTS: Final = (
    ("readOnlyHint", True, "says it only reads", "dim"),
    ("destructiveHint", True, "says it may destroy", "red"),
)


def shown_offers(offers: Mapping[str, Sequence[Tool] | None]) -> Iterator[Text]:
    """A block for each participant that has any."""
    silent = [named(who) for who, listed in offers.items() if listed is None]
    for who, listed in offers.items():
        if listed:
            yield Text(named(who), f"bold {colour_of(who)}")
            for tool in listed:
                yield from _shown(tool)
    if not any(offers.values()):
        yield Text("nobody here offers tools")
    if silent:
        yield Text(f"did not say, or you may not ask: {', '.join(silent)}", "dim")


def _shown(tool: Tool) -> Iterator[Text]:
    called = Text.assemble("  ", (named(tool.name), "bold"))
    called.append(f"({', '.join(_parameters(tool.input_schema))})")
    for hint, value, text, style in _HINTS:
        if tool.hint(hint) is value:
            called.append("  ").append(text, style)
    yield called
    description = tool.description or tool.title
    if description is not None and description.strip():
        first = description.strip().split("\n\n")[0]
        yield Text(f"      {visible(cut(' '.join(first.split()), _DESCRIPTION_CHARS))}", "dim")


def _parameters(schema: Any) -> Iterator[str]:
    """`path`, `mode=...` for what may be left out, and of which type each is."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    ordered = sorted(properties, key=lambda name: name not in required)
    for name in ordered[:_PARAMETERS_MAX]:
        kind = properties[name].get("type") if isinstance(properties[name], dict) else None
        of = f": {visible(kind, 20)}" if isinstance(kind, str) and kind != "string" else ""
        shown = f"{named(name, 40)}{of}"
        yield shown if name in required else f"[{shown}]"
    if len(ordered) > _PARAMETERS_MAX:
        yield "…"
