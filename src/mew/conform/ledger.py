"""PURE. The ledger: every requirement of the specification, with its level, whom it binds and where it is written."""

import tomllib
from enum import StrEnum
from typing import Annotated, Any

import msgspec

__all__ = ["Feature", "LedgerError", "Requirement", "RequirementLevel", "Side", "Testable", "read_ledger"]


class LedgerError(ValueError):
    """The ledger cannot be read; the text names the entry."""


class RequirementLevel(StrEnum):
    """How binding it is, in the words of RFC 2119."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    SHOULD_NOT = "SHOULD NOT"
    MAY = "MAY"


class Side(StrEnum):
    """Whose conduct is tried; with `both`, each half of the kit has a check of its own."""

    GATEWAY = "gateway"
    PARTICIPANT = "participant"
    BOTH = "both"


class Feature(StrEnum):
    """What not every gateway offers, or not every participant does: the others owe nothing that is `given` it."""

    EMAIL = "e-mail"
    HTTP_INJECTION = "http-injection"
    HTTP_POLLING = "http-polling"
    SEVERAL_SPACES = "several-spaces"

    CHATTING = "chatting"
    FULFILLING = "fulfilling"
    GRANTING = "granting"
    INVITING = "inviting"
    MCP = "mcp"
    MEMORY = "memory"
    PROPOSING = "proposing"
    REASONING = "reasoning"
    STREAMING = "streaming"
    TOOLS = "tools"
    USER_INTERFACE = "user-interface"

    @property
    def side(self) -> Side:
        """Who may have it."""
        of_gateways = (Feature.EMAIL, Feature.HTTP_INJECTION, Feature.HTTP_POLLING, Feature.SEVERAL_SPACES)
        return Side.GATEWAY if self in of_gateways else Side.PARTICIPANT


class Testable(StrEnum):
    """Whether somebody outside, with a scripted partner, can see it kept or broken."""

    WIRE = "wire"
    NOT_ON_THE_WIRE = "not-on-the-wire"

    __test__ = False  # its name looks like a test's to pytest


Section = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)*$")]
Line = Annotated[str, msgspec.Meta(pattern=r"^\S[^\n]*\S$")]


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that can be right or wrong about a gateway or a participant; the ledger's head explains the fields."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]+(-[a-z0-9]+)*$")]
    section: Section
    also: tuple[Section, ...] = ()
    level: RequirementLevel
    side: Side
    given: Feature | None = None
    sentence: Line
    quotes: Annotated[tuple[Line, ...], msgspec.Meta(min_length=1)]
    note: Line | None = None
    testable: Testable = Testable.WIRE
    why: Line | None = None

    def __post_init__(self) -> None:
        if (self.testable is Testable.NOT_ON_THE_WIRE) != (self.why is not None):
            raise ValueError("`why` belongs to what is not on the wire, and to nothing else")
        if self.given is not None and (self.given.side is Side.GATEWAY) != (self.side is Side.GATEWAY):
            raise ValueError(f"{self.given} is of a {self.given.side}, the side is {self.side}")


def read_ledger(source: bytes) -> tuple[Requirement, ...]:
    """The requirements in their order.

    Raises:
        LedgerError: it is not TOML, an entry is not a requirement, or two have the same id.
    """
    try:
        entries = msgspec.convert(tomllib.loads(source.decode()), _File).requirement
    except ValueError as error:
        raise LedgerError(f"no ledger: {error}") from error
    ledger: dict[str, Requirement] = {}
    for number, entry in enumerate(entries, start=1):
        named = f"requirement {number}, {entry.get('id', 'without an id')}"
        try:
            requirement = msgspec.convert(entry, Requirement)
        except msgspec.ValidationError as error:
            raise LedgerError(f"{named}: {error}") from error
        if requirement.id in ledger:
            raise LedgerError(f"{named}: there is one of this id")
        ledger[requirement.id] = requirement
    return tuple(ledger.values())


class _File(msgspec.Struct, forbid_unknown_fields=True):
    requirement: list[dict[str, Any]]
