"""PURE. Why somebody may do something, or not: what allows it and from whom that came, or what comes nearest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.text import Text

from mew.cli.render.capability import words_of
from mew.cli.render.envelope import colour_of
from mew.cli.render.ids import short
from mew.protocol.capability import Capability, CapabilitySet, short_text
from mew.protocol.envelope import Envelope
from mew.protocol.errors import InvalidCapability, ProtocolError
from mew.protocol.kinds import Kind
from mew.protocol.visible import literal, named, visible

__all__ = ["CapabilityVerdict", "explained", "given_in", "verdict_of"]

_BASELINE: Final = frozenset({"mcp/response", "capability/grant-ack"})
_CHARS_MAX: Final = 400
_NEAREST_MAX: Final = 5


class CapabilityChange(NamedTuple):
    """A grant or an invitation that gave somebody capabilities; or what took some away."""

    id: str
    by: str
    kind: str
    capabilities: tuple[Capability, ...]
    ended: bool = False


class Reason(NamedTuple):
    """One capability that somebody holds, and where it is from."""

    capability: Capability
    source: str
    change_id: str | None = None


class CapabilityVerdict(NamedTuple):
    """`may`: all of it. `partly`: those that allow some of it; `instead`: whether it may at least propose it."""

    who: str
    asked: Capability
    because: tuple[Reason, ...]
    partly: tuple[Reason, ...]
    nearest: tuple[Reason, ...]
    taken: tuple[CapabilityChange, ...]
    instead: Capability | None
    givers: tuple[str, ...]
    state: tuple[str, ...]

    @property
    def may(self) -> bool:
        return len(self.because) > 0

    def as_dict(self) -> dict[str, Any]:
        def told(reasons: Iterable[Reason]) -> list[dict[str, Any]]:
            return [
                {"capability": one.capability.source, "from": one.source, "grant": one.change_id}
                for one in reasons
            ]

        return {
            "participant": self.who,
            "asked": self.asked.source,
            "may": self.may,
            "because": told(self.because),
            "partly": told(self.partly),
            "nearest": told(self.nearest),
            "taken": [{"id": one.id, "by": one.by} for one in self.taken],
            "may_propose": self.instead is not None,
            "could_be_granted_by": list(self.givers),
            "state": list(self.state),
        }


def given_in(past: Iterable[Envelope], who: str) -> list[CapabilityChange]:
    """What was given to somebody and taken from them, in the order it happened."""
    changes: dict[str, CapabilityChange] = {}
    for envelope in past:
        try:
            content = envelope.content
        except ProtocolError:
            continue
        if envelope.kind == Kind.GRANT and content.get("recipient") == who:
            changes[envelope.id] = _gift(envelope, content.get("capabilities"))
        elif envelope.kind == Kind.INVITE and content.get("participant_id") == who:
            changes[envelope.id] = _gift(envelope, content.get("initial_capabilities"))
        elif envelope.kind == Kind.REVOKE and content.get("recipient") == who:
            ended = changes.get(str(content.get("grant_id")))
            if ended is not None:
                changes[ended.id] = ended._replace(ended=True)
                changes[envelope.id] = _gift(envelope, [one.source for one in ended.capabilities])
            else:
                changes[envelope.id] = _gift(envelope, content.get("capabilities"))
    return list(changes.values())


def verdict_of(
    who: str, asked: Capability, everyone: Sequence[Mapping[str, Any]], changes: Sequence[CapabilityChange]
) -> CapabilityVerdict:
    """The answer, from what everyone holds now."""
    one = next(member for member in everyone if member["id"] == who)
    held = _parsed(one.get("capabilities"))
    fits = [capability for capability in held if capability.covers(asked)]
    if not fits and CapabilitySet(held).covers(asked):
        fits = [capability for capability in held if not capability.disjoint(asked)]  # together they do
    some = [] if fits else [capability for capability in held if not capability.disjoint(asked)]
    near = [] if fits or some else [one for one in held if _kind(one) == _kind(asked)]
    return CapabilityVerdict(
        who=who,
        asked=asked,
        because=tuple(_reason(capability, changes) for capability in fits),
        partly=tuple(_reason(capability, changes) for capability in some),
        nearest=tuple(_reason(capability, changes) for capability in near[:_NEAREST_MAX]),
        taken=() if fits else tuple(_taking(asked, changes)),
        instead=None if fits else _proposed(asked, held),
        givers=() if fits else tuple(_givers(who, asked, everyone)),
        state=tuple(_state(one)),
    )


def explained(verdict: CapabilityVerdict) -> Iterator[Text]:
    """For people."""
    what = _written(verdict.asked)
    who = Text(named(verdict.who), colour_of(verdict.who))
    if verdict.may:
        yield Text.assemble(("yes", "bold green"), ", ", who, f" may send {what}")
        yield from _listed(verdict.because)
    elif verdict.partly:
        yield Text.assemble(("not all of it", "bold yellow"), ": ", who, f" may send some of {what}")
        yield from _listed(verdict.partly)
    else:
        yield Text.assemble(("no", "bold red"), ", ", who, f" may not send {what}")
        if verdict.nearest:
            yield Text("  nearest to it is:")
            yield from _listed(verdict.nearest)
        else:
            yield Text(f"  it holds nothing about {visible(_kind(verdict.asked), 80)}")
    for one in verdict.taken:
        yield Text.assemble("  it was taken by ", named(one.by), (f" ({short(one.id)})", "dim"))
    if verdict.instead is not None:
        yield Text("  but it may propose it, and somebody who may can approve that")
    if verdict.givers:
        yield Text.assemble("  could be granted by ", ", ".join(map(named, verdict.givers)))
    for line in verdict.state:
        yield Text(f"  {line}", "yellow")


def _listed(reasons: Iterable[Reason]) -> Iterator[Text]:
    for one in reasons:
        written = _written(one.capability)
        grant = f" ({short(one.change_id)})" if one.change_id else ""
        yield Text.assemble(
            f"  {written}", (f"  {words_of(one.capability.source)}; ", "dim"), one.source, (grant, "dim")
        )


def _written(capability: Capability) -> str:
    """As people write it; whom it is for is said beside it."""
    to = capability.source.get("to")
    bare = {name: value for name, value in capability.source.items() if name != "to"}
    text = visible(short_text(bare), _CHARS_MAX).replace('\\"', '"')
    return text if to is None else f"{text} to {named(to) if isinstance(to, str) else literal(to)}"


def _gift(envelope: Envelope, capabilities: Any) -> CapabilityChange:
    return CapabilityChange(envelope.id, envelope.sender, envelope.kind, tuple(_parsed(capabilities)))


def _parsed(written: Any) -> list[Capability]:
    found = []
    for one in written if isinstance(written, list) else ():
        try:
            found.append(Capability.parse(one))
        except InvalidCapability:
            continue
    return found


def _reason(capability: Capability, changes: Sequence[CapabilityChange]) -> Reason:
    """The last that gave it and was not taken back; else it was there from the start."""
    bare = _without_exceptions(capability)
    for change in reversed([one for one in changes if one.kind != Kind.REVOKE and not one.ended]):
        if bare in map(_without_exceptions, change.capabilities):
            verb = "invited with it" if change.kind == Kind.INVITE else "granted"
            return Reason(capability, f"{verb} by {named(change.by)}", change.id)
    return Reason(
        capability, "what everyone may" if _kind(capability) in _BASELINE else "from the configuration"
    )


def _without_exceptions(capability: Capability) -> Capability:
    return Capability.parse({name: value for name, value in capability.source.items() if name != "except"})


def _kind(capability: Capability) -> str:
    return str(capability.source["kind"])


def _taking(asked: Capability, changes: Sequence[CapabilityChange]) -> Iterator[CapabilityChange]:
    for change in changes:
        if change.kind == Kind.REVOKE and any(not one.disjoint(asked) for one in change.capabilities):
            yield change


def _proposed(asked: Capability, held: Sequence[Capability]) -> Capability | None:
    if _kind(asked) != Kind.MCP_REQUEST:
        return None
    proposal = Capability.parse({**asked.source, "kind": Kind.MCP_PROPOSAL})
    return proposal if CapabilitySet(held).covers(proposal) else None


def _givers(who: str, asked: Capability, everyone: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Those who hold it and may grant."""
    for member in everyone:
        held = CapabilitySet(_parsed(member.get("capabilities")))
        grant = Capability.parse({"kind": Kind.GRANT})
        if member["id"] != who and held.covers(asked) and held.covers(grant):
            yield member["id"]


def _state(member: Mapping[str, Any]) -> Iterator[str]:
    if not member.get("connected"):
        yield "it is not here now"
    paused = member.get("paused")
    if isinstance(paused, dict):
        yield f"it is paused by {named(str(paused.get('by')))}, and may send nothing until that is over"
    if member.get("shut_down"):
        yield "it was shut down, and may send nothing until it has come back"
