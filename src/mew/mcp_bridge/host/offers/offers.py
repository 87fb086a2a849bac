"""What a host may use of a space: the tools, resources, templates and prompts of its participants, under their names.

Filtered to what our capabilities allow or let us propose: what some arguments could be allowed for is shown.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from mew.client.client import Client
from mew.client.mcp.model_tools import exposed_name, split_exposed_name
from mew.mcp_bridge.host.settings import HostSettings
from mew.mcp_bridge.marks import CHANGED, unmarked_fields
from mew.mcp_bridge.policy.permits import Permit

from .discovery import OfferDiscovery, OfferKind
from .resource_uris import ResourceUris

__all__ = ["ORIGIN", "HostOffer", "HostOffers", "OfferOrigin", "shown"]

ORIGIN: Final = "mew/origin"
NEEDS_APPROVAL: Final = "mew/needs_approval"


@dataclass(frozen=True)
class OfferOrigin:
    """Whose it is."""

    participant: str
    space: str

    def mark(self) -> dict[str, str]:
        """As `_meta` has it. Nobody else's word for it counts: it replaces what is there."""
        return {"participant": self.participant, "space": self.space}


def shown(
    item: dict[str, Any],
    name: dict[str, str],
    origin: OfferOrigin,
    permit: Permit,
    *,
    changed: str | None,
    alone: bool,
) -> dict[str, Any]:
    """The item under that `name` (or `uri`), marked; of marks that are on it, only the one that it changed stays.

    `changed` says in what it is not as it was when first seen.
    `alone`: no other participant is shown, and what needs no note is as if the host had listed it itself.
    """
    meta = item.get("_meta")
    theirs = meta if isinstance(meta, dict) else {}
    marks: dict[str, Any] = {ORIGIN: origin.mark(), NEEDS_APPROVAL: permit.needs_approval}
    described = _described(item, origin, permit, changed, alone=alone)
    return {
        **item,
        **name,
        **({"description": described} if described else {}),
        "_meta": {
            **unmarked_fields(theirs),
            **({CHANGED: theirs[CHANGED]} if CHANGED in theirs else {}),
            **marks,
        },
    }


def _described(
    item: dict[str, Any], origin: OfferOrigin, permit: Permit, changed: str | None, *, alone: bool
) -> str:
    said = item.get("description")
    notes = [] if alone else [f"{origin.participant} in the space {origin.space}"]
    if permit.note:
        notes.append(permit.note)
    if changed is not None:
        notes.append(f"CHANGED since it was first seen ({changed}): do not take it for what it was")
    text = said if isinstance(said, str) else ""
    if not notes:
        return text
    return f"{text}\n\n[{'; '.join(notes)}]".lstrip()


_WITHOUT_TRUST: Final = {
    **{permit: permit for permit in Permit},
    Permit.DIRECT: Permit.PROPOSED,
    Permit.MIXED: Permit.PROPOSED,
}


@dataclass(frozen=True)
class HostOffer:
    """One thing that a participant offers. `item` is as it lists it, `shown` as the host sees it."""

    participant: str
    name: str
    """Its own, or its URI or template."""
    item: dict[str, Any]
    shown: dict[str, Any]
    permit: Permit


class HostOffers:
    """Kept current while `run` runs; `changed` is told what hosts would now list differently."""

    def __init__(
        self,
        me: Client,
        settings: HostSettings,
        changed: Callable[[OfferKind], None],
        reserved: Iterable[str] = (),
    ) -> None:
        """`reserved` are names that no participant's tool is shown under."""
        self.uris = ResourceUris(settings.only)
        self._me = me
        self._only = settings.only
        self._trust = settings.trust
        self._policy = settings.policy
        self._changed = changed
        self._reserved = frozenset(reserved)
        self._discovery = OfferDiscovery(me, settings.only, self._update)
        self._offers: dict[OfferKind, dict[str, HostOffer]] = {what: {} for what in OfferKind}

    async def run(self) -> None:
        """Until cancelled."""
        if self._policy is not None:
            self._policy.on_change(self._update)
        await self._discovery.run()

    async def settled(self) -> None:
        """Return when those who are here have said what they offer, or have had the time to."""
        await self._discovery.settled()

    async def answered(self, participant: str) -> None:
        """Return when the participant is here and has said what it offers, or has left that unanswered."""
        await self._discovery.answered(participant)

    @property
    def participants(self) -> tuple[str, ...]:
        return self._discovery.participants

    def of(self, what: OfferKind) -> tuple[HostOffer, ...]:
        """All that hosts are shown, in the order of the participants' names."""
        return tuple(self._offers[what].values())

    def find(self, what: OfferKind, name: str) -> HostOffer | None:
        """The one that hosts know by this name or URI."""
        return self._offers[what].get(name)

    def meant(self, what: OfferKind, name: str) -> tuple[str, str] | None:
        """Whose it is and what they call it, listed or not; None where a name says neither."""
        offer = self.find(what, name)
        if offer is not None:
            return offer.participant, offer.name
        if what in (OfferKind.RESOURCES, OfferKind.TEMPLATES):
            return self.uris.inward(name, self.participants)
        return (self._only, name) if self._only is not None else split_exposed_name(name)

    def lists(self, what: OfferKind, participant: str, name: str) -> bool | None:
        """Whether the participant lists something of this name, be it shown or not; None where it has not said."""
        said = self._discovery.said(participant, what)
        return None if said is None else any(item[what.key] == name for item in said)

    def trusts(self, offer: HostOffer | None) -> bool:
        """Whether a tool may be called without approval, as far as our capabilities allow it."""
        return self._trust is None or (offer is not None and self._trust.trusts(offer.item))

    def approve(self, offer: HostOffer | None) -> None:
        """Trust a tool that somebody has approved, as it was when it was offered."""
        if self._trust is not None and offer is not None and self._trust.approve(offer.item):
            self._me.connection.spawn(self._trust.save())
            self._update()

    def _update(self) -> None:
        self._see_tools()
        for what in OfferKind:
            before = [offer.shown for offer in self._offers[what].values()]
            self._offers[what] = {}
            for participant in self._discovery.participants:
                for item in self._discovery.said(participant, what) or ():
                    self._add(what, participant, item)
            if [offer.shown for offer in self._offers[what].values()] != before:
                self._changed(what)

    def _see_tools(self) -> None:
        if self._trust is not None and self._only is not None:
            said = self._discovery.said(self._only, OfferKind.TOOLS)
            if said is not None and self._trust.see(said):
                self._me.connection.spawn(self._trust.save())

    def _add(self, what: OfferKind, participant: str, item: dict[str, Any]) -> None:
        name = item[what.key]
        annotations = item.get("annotations") if what is OfferKind.TOOLS else None
        if self._policy is None:
            allowed = self._discovery.permits.of(participant, what.use, name)
            is_hidden = allowed is Permit.NONE
        else:
            allowed = self._policy.permit(what.use, name, annotations)
            is_hidden = self._policy.hides(what.use, name, annotations)
        if what is OfferKind.TOOLS and self._trust is not None and not self._trust.trusts(item):
            allowed = _WITHOUT_TRUST[allowed]
        outward = self._outward(what, participant, name)
        if is_hidden or outward in self._offers[what]:
            return
        self._offers[what][outward] = HostOffer(
            participant,
            name,
            item,
            shown(
                item,
                {what.key: outward},
                OfferOrigin(participant, self._me.space),
                allowed,
                changed=self._change(what, participant, item),
                alone=self._only is not None,
            ),
            allowed,
        )

    def _outward(self, what: OfferKind, participant: str, name: str) -> str:
        if what in (OfferKind.RESOURCES, OfferKind.TEMPLATES):
            return self.uris.outward(participant, name)
        if self._only is not None and not (what is OfferKind.TOOLS and name in self._reserved):
            return name
        return exposed_name(participant, name)

    def _change(self, what: OfferKind, participant: str, item: dict[str, Any]) -> str | None:
        """In what it is not as first seen: as its participant says, or as we saw it."""
        if what is not OfferKind.TOOLS:
            return None
        tool = self._me.catalogue.tool(participant, item["name"])
        if tool is not None and tool.changed:
            return ", ".join(tool.changed)
        meta = item.get("_meta")
        return "its participant says so" if isinstance(meta, dict) and meta.get(CHANGED) else None
