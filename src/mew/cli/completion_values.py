"""The values a parameter may have that its type does not tell: names and ids of what there is here."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mew.protocol.envelope import is_participant_id

from .completion_words import Offer
from .locate.journal import Failed

if TYPE_CHECKING:
    from typer._click import Context, Parameter

    from .locate.gateway import Door
    from .locate.space_file import Folder

__all__ = ["values_of"]

_FLAGS: Final = ("gateway", "space", "who", "token", "token_file", "config", "wrapped")
_RECENT: Final = "100"
_REASONS: Final = {
    "disagree": "I do not want it",
    "inappropriate": "not here, not now",
    "unsafe": "it may do harm",
    "busy": "I have no time for it",
    "incapable": "I cannot do it",
    "policy": "it is against a rule",
    "invalid": "it makes no sense as it is",
}


def values_of(context: "Context", param: "Parameter") -> Iterable[Offer] | None:
    """All there are; None where nothing is known of this parameter."""
    command = context.command_path.partition(" ")[2]
    name = param.name or ""
    found = _BY_NAME.get((command, name)) or _BY_NAME.get(("", name)) or _BY_METAVAR.get(param.metavar or "")
    return None if found is None else found(context)


def _participants(context: "Context") -> Iterator[Offer]:
    """Of the gateway that runs, else of the file."""
    from .completion_asked import ask_here

    door = _door(context)
    told = [] if door is None else ask_here(door, "participants")
    if told:
        for one in told:
            yield Offer(str(one.get("id")), "is here" if one.get("connected") else "is away")
    else:
        yield from _named(context)


def _named(context: "Context") -> Iterator[Offer]:
    folder = _folder(context)
    if folder is not None:
        wanted = context.params.get("space")
        for space in folder.config.spaces.values():
            if wanted in (None, space.id):
                yield from map(Offer, space.participants)


def _spaces(context: "Context") -> Iterator[Offer]:
    folder = _folder(context)
    yield from map(Offer, () if folder is None else folder.config.spaces)


def _proposals(context: "Context") -> Iterator[Offer]:
    from .completion_asked import ask_here

    door = _door(context)
    for one in reversed([] if door is None else ask_here(door, "proposals", status="open")):
        params = one.get("params")
        what = params.get("name") if isinstance(params, dict) else None
        to = one.get("to") or ()
        whom = f" of {', '.join(map(str, to))}" if isinstance(to, list) and to else ""
        yield Offer(str(one.get("id")), f"{one.get('proposer')}: {what or one.get('method') or ''}{whom}")


def _tools(context: "Context") -> Iterator[Offer]:
    listed = _listed_tools(context)
    for one in listed:
        yield Offer(str(one.get("name")), _said(one.get("description")))
    if not listed:
        yield from map(Offer, _pinned(context))


def _pinned(context: "Context") -> list[str]:
    """The tools that a bridge here has seen, where nobody in the space has asked for them lately."""
    folder, who = _folder(context), str(context.params.get("participant"))
    if folder is None or not is_participant_id(who):
        return []
    with suppress(OSError, ValueError):
        kept = json.loads((folder.config.state_dir / "bridge" / f"{who}.json").read_bytes())
        return [*kept["tools"]]
    return []


def _arguments(context: "Context") -> Iterator[Offer]:
    """`key=` for each that the tool takes and that is not there yet."""
    tool = next((one for one in _listed_tools(context) if one.get("name") == context.params.get("tool")), {})
    schema = tool.get("inputSchema")
    known = schema.get("properties") if isinstance(schema, dict) else None
    given = {str(pair).partition("=")[0].rstrip(":") for pair in context.params.get("pairs") or ()}
    for name, about in known.items() if isinstance(known, dict) else ():
        if name not in given:
            yield Offer(f"{name}=", _said(about.get("description") if isinstance(about, dict) else None))


def _listed_tools(context: "Context") -> list[dict[str, Any]]:
    """As the participant told somebody last: asking it anew would be seen by everyone in the space."""
    from .completion_asked import ask_here

    door, who = _door(context), context.params.get("participant")
    if door is None or not who:
        return []
    for envelope in ask_here(
        door, "envelopes", kind="mcp/response", participant=who, order="desc", limit=_RECENT
    ):
        match envelope:
            case {"payload": {"result": {"tools": list(tools)}}}:
                return [one for one in tools if isinstance(one, dict)]
    return []


def _running(context: "Context") -> Iterator[Offer]:
    from .completion_asked import running_programs

    folder = _folder(context)
    programs: Mapping[str, str] = {} if folder is None else running_programs(folder.config.state_dir)
    for name, phase in programs.items():
        yield Offer(name, phase)


def _with_logs(context: "Context") -> Iterator[Offer]:
    from mew.supervise.preparing import logs_folder

    folder = _folder(context)
    if folder is not None:
        yield from (Offer(path.stem) for path in sorted(logs_folder(folder.config.state_dir).glob("*.log")))


def _templates(context: "Context") -> Iterator[Offer]:
    from .commands.init.templates import TEMPLATES

    for name, template in TEMPLATES.items():
        yield Offer(name, template.does)


def _kinds(context: "Context") -> Iterator[Offer]:
    from mew.protocol.kinds import PAYLOADS

    yield from map(Offer, sorted(PAYLOADS))


def _wrapped(context: "Context") -> Iterator[Offer]:
    from mew.mcp_bridge.wrap.state_folder import running_wraps

    yield from map(Offer, running_wraps(os.environ))


def _reasons(context: "Context") -> Iterator[Offer]:
    yield from (Offer(name, says) for name, says in _REASONS.items())


def _nothing(context: "Context") -> Iterable[Offer]:
    return ()


def _door(context: "Context") -> "Door | None":
    """Where the command itself would connect, and as whom."""
    from .locate.gateway import Flags, reach_as_person

    given = {name: value for name in _FLAGS if (value := context.params.get(name)) is not None}
    for name in {"config", "token_file"} & given.keys():
        given[name] = Path(given[name])
    with suppress(Failed):
        return reach_as_person(Flags(**given), unseal=_ask_nobody)
    return None


def _ask_nobody(sealed: object, who: str) -> str:
    raise Failed(f"the token of {who} is sealed, and this is no moment to ask")


def _folder(context: "Context") -> "Folder | None":
    from .locate.space_file import nearest, typed

    config, wrapped = context.params.get("config"), context.params.get("wrapped")
    with suppress(Failed):
        if wrapped:
            return typed(None, wrapped, os.environ)
        if config is not None and Path(config).is_file():
            return typed(Path(config), None, os.environ)
        return nearest(Path.cwd(), os.environ)
    return None


def _said(text: Any) -> str:
    return text if isinstance(text, str) else ""


_Find = Callable[["Context"], Iterable[Offer]]

_BY_METAVAR: Final[dict[str, _Find]] = {
    "PARTICIPANT": _participants,
    "[PARTICIPANT]": _participants,
    "ID|PARTICIPANT": _participants,
    "NAME": _participants,
    "TOOL": _tools,
    "KIND": _kinds,
}
_BY_NAME: Final[dict[tuple[str, str], _Find]] = {
    ("logs", "name"): _with_logs,
    ("restart", "name"): _running,
    ("init", "template"): _templates,
    ("init", "space"): _nothing,
    ("approve", "proposal"): _proposals,
    ("reject", "proposal"): _proposals,
    ("reject", "reason"): _reasons,
    ("proposals", "which"): _proposals,
    ("call", "pairs"): _arguments,
    ("propose", "pairs"): _arguments,
    ("invite", "participant"): _nothing,
    ("mcp install", "wrap_existing"): _nothing,
    ("token show", "whose"): _named,
    ("token new", "whose"): _named,
    ("", "wrapped"): _wrapped,
    ("", "space"): _spaces,
    ("", "kind"): _kinds,
    ("", "participant"): _participants,
    ("", "who"): _participants,
    ("", "whom"): _participants,
}
"""By command and parameter; without a command, in all of them that have no other."""
