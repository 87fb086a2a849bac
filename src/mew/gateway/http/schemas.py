"""PURE. What the HTTP door may be asked and what it answers: each shape is both checked and documented."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from mew.gateway.history.query import HistoryQuery
from mew.proposals.record import ProposalStatus
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import InvalidCapability

from .listings import ListedParticipant, ListedProposal

__all__ = [
    "EnvelopesPage",
    "EnvelopesQuery",
    "Health",
    "InvalidQuery",
    "LinkCode",
    "LinkMade",
    "ListedSpace",
    "MessagesPage",
    "MessagesQuery",
    "NoQuery",
    "ParticipantsPage",
    "ProblemDetails",
    "ProposalsPage",
    "ProposalsQuery",
    "Ready",
    "Receipt",
    "SessionEnded",
    "SessionOpened",
    "SpaceQuery",
    "SpacesPage",
    "read_query",
]

WAIT_S_MAX: Final = 60

Asked = TypeVar("Asked", bound=Struct)
Value = TypeVar("Value")

_LOST_PLUS: Final = re.compile(r" (?=\d\d:\d\d$)")
_PLACE: Final = re.compile(r"(.*) - at `\$\.(\w+)`")

_Id = Annotated[str, Meta(min_length=1, max_length=256)]
_Space = Annotated[str, Meta(description="Which space; may be left out where the gateway serves one.")]
_Limit = Annotated[int, Meta(ge=1, le=1000, description="At most so many; fewer where they are large.")]
_Since = Annotated[
    datetime, Meta(tz=True, description="Shown at this moment (RFC 3339, the gateway's time) or later.")
]
_Until = Annotated[datetime, Meta(tz=True, description="Shown at this moment or before.")]
_After = Annotated[
    _Id, Meta(description="Shown after the envelope with this id, or where `next` of a page says.")
]
_Shown = Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Envelope"})]


class _Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class NoQuery(_Query, frozen=True):
    pass


class SpaceQuery(_Query, frozen=True):
    space: _Space | UnsetType = UNSET


class MessagesQuery(SpaceQuery, frozen=True):
    after: _After | UnsetType = UNSET
    since: _Since | UnsetType = UNSET
    limit: _Limit = 100
    wait_s: Annotated[
        float, Meta(ge=0, le=WAIT_S_MAX, description="Where there is nothing, wait so long for something.")
    ] = 0

    def asked_by(self, who: ParticipantId) -> HistoryQuery:
        return HistoryQuery(who=who, after=_given(self.after), since=_given(self.since), limit=self.limit)


class EnvelopesQuery(_Query, frozen=True):
    after: _After | UnsetType = UNSET
    before: (
        Annotated[_Id, Meta(description="Shown before the envelope with this id, or where `next` says.")]
        | UnsetType
    ) = UNSET
    since: _Since | UnsetType = UNSET
    until: _Until | UnsetType = UNSET
    kind: (
        Annotated[str, Meta(min_length=1, max_length=256, description="A kind, or a pattern like `mcp/*`.")]
        | UnsetType
    ) = UNSET
    participant: Annotated[_Id, Meta(description="Whose envelopes.")] | UnsetType = UNSET
    correlation: (
        Annotated[
            _Id,
            Meta(
                description="All that hangs together with this envelope through `correlation_id`, in both directions."
            ),
        ]
        | UnsetType
    ) = UNSET
    order: Annotated[Literal["asc", "desc"], Meta(description="`asc`: oldest first.")] = "asc"
    limit: _Limit = 100

    def asked_by(self, who: ParticipantId) -> HistoryQuery:
        """Raises `InvalidQuery` where the kind is no pattern."""
        return HistoryQuery(
            who=who,
            after=_given(self.after),
            before=_given(self.before),
            since=_given(self.since),
            until=_given(self.until),
            kind=_pattern(self.kind),
            participant=_given(self.participant),
            correlation=_given(self.correlation),
            newest_first=self.order == "desc",
            limit=self.limit,
        )


class ProposalsQuery(_Query, frozen=True):
    status: (
        Annotated[ProposalStatus, Meta(description="Only these; `open`: what a reviewer can still decide.")]
        | UnsetType
    ) = UNSET
    before: Annotated[_Id, Meta(description="Proposed before the proposal with this id.")] | UnsetType = UNSET
    limit: Annotated[
        int, Meta(ge=1, le=1000, description="The newest so many; fewer where they are large.")
    ] = 100


class LinkQuery(_Query, frozen=True):
    lifetime_s: Annotated[
        int, Meta(ge=1, le=86_400, description="For so long the code is good: up to a day.")
    ] = 600


class Receipt(Struct, frozen=True):
    """`timestamp` is the gateway's; `reply`: what the gateway itself answered, if it did; `token`: of an invitation."""

    id: str
    status: Literal["accepted"]
    timestamp: datetime
    reply: _Shown | UnsetType = UNSET
    token: str | UnsetType = UNSET


class MessagesPage(Struct, frozen=True):
    """`next` goes into `after` to go on; not `complete`: some that came before these are gone."""

    messages: list[_Shown]
    next: str | None
    complete: bool


class EnvelopesPage(Struct, frozen=True):
    """`next` goes into `after` (`before` with `order=desc`); null: there are no more.

    Where it takes long to find any, a page may be short, or empty, and have a `next`. Not `complete`: some that may
    have fitted are gone.
    """

    envelopes: list[_Shown]
    next: str | None
    complete: bool


class ParticipantsPage(Struct, frozen=True):
    participants: list[ListedParticipant]


class ProposalsPage(Struct, frozen=True):
    """`next` goes into `before` for older ones; null: there are no more. Not `complete`: some may be gone."""

    proposals: list[ListedProposal]
    next: str | None
    complete: bool


class ListedSpace(Struct, frozen=True):
    """`participant`: who one is there, with this token."""

    id: str
    name: str
    description: str
    participant: str


class SpacesPage(Struct, frozen=True):
    spaces: list[ListedSpace]


class LinkMade(Struct, frozen=True):
    """`code` goes behind `#link=` in the address of the page. It works once, until `expires`.

    `page` is that address if the gateway has a `public_url`.
    """

    code: str
    expires: datetime
    page: str | None


class LinkCode(Struct, frozen=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(min_length=1, max_length=256)]


class SessionOpened(Struct, frozen=True):
    """`token` is told this once. It is good until `expires`, and no longer than the token that asked for the link."""

    token: str
    space: str
    participant: str
    expires: datetime


class SessionEnded(Struct, frozen=True):
    status: Literal["ended"]


class Health(Struct, frozen=True):
    status: Literal["ok"]
    version: str


class Ready(Struct, frozen=True, omit_defaults=True):
    """`warnings`: what needs an operator soon, a sentence each; left out if there is nothing."""

    status: Literal["ready"]
    spaces: int
    warnings: tuple[str, ...] = ()


class ProblemDetails(Struct, frozen=True):
    """RFC 9457. `error` is a stable code, `detail` a sentence; the rest is what helps."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    attempted_kind: str | UnsetType = UNSET
    your_capabilities: list[Any] | UnsetType = UNSET
    retry_after_s: float | UnsetType = UNSET


class InvalidQuery(ValueError):
    """What is wrong with a query string, and where."""


def _pattern(written: str | UnsetType) -> Capability | None:
    try:
        return None if isinstance(written, UnsetType) else Capability.parse({"kind": written})
    except InvalidCapability as error:
        raise InvalidQuery(f"kind: {error}") from None


def _given(value: Value | UnsetType) -> Value | None:
    return None if isinstance(value, UnsetType) else value


def read_query(query: Mapping[str, str], shape: type[Asked]) -> Asked:
    """Read a query string; one that asks for what there is not gets no answer to another question.

    Raises:
        InvalidQuery: an unknown parameter, one given twice, or a wrong value.
    """
    given = dict(query)
    if len(given) != len(query):
        raise InvalidQuery("a parameter is given twice")
    for name in {"since", "until"} & given.keys():
        given[name] = _LOST_PLUS.sub("+", given[name])  # unescaped, the plus of an offset arrives as a space
    try:
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        place = _PLACE.fullmatch(str(error))
        what = str(error).replace("Object contains unknown field", "there is no parameter")
        raise InvalidQuery(what if place is None else f"{place[2]}: {place[1]}") from None
