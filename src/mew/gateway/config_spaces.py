"""The spaces of a `space.yaml`: participants, capabilities, defaults and limits."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId, is_participant_id
from mew.protocol.errors import InvalidCapability

from .config_node import Node
from .settings import Delivery, Limits, ParticipantConfig, SpaceConfig
from .tokens import is_token

__all__ = [
    "DEFAULTS",
    "LAUNCH",
    "LIMITS",
    "PARTICIPANT",
    "SHARED",
    "SPACE",
    "SPACE_LAUNCH",
    "read_capabilities",
    "read_spaces",
]

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

# Spaces name folders and travel in URLs.
_SPACE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,127}")

_BASELINE: Final = ("mcp/response", "capability/grant-ack")

# The keys of each mapping; docs/reference/configuration.md has them all, and a test says so.
LAUNCH: Final = frozenset(
    {
        *("type", "name", "description", "command", "args", "env", "cwd", "restart_policy", "depends_on"),
        *("auto_start", "auto_connect", "fifo", "output_log", "transport", "default_to", "requests"),
        *("mcp_server", "bridge_config"),
    }
)
PARTICIPANT: Final = frozenset({"tokens", "capabilities"}) | LAUNCH
SPACE_LAUNCH: Final = frozenset({"default_participant", "ui_theme"})
SHARED: Final = frozenset({"participants", "defaults", "delivery", "announce_violations", "limits"})
SPACE: Final = frozenset({"id", "name", "description"}) | SPACE_LAUNCH | SHARED
DEFAULTS: Final = frozenset({"capabilities", "baseline_capabilities"})

LIMITS: Final[Mapping[str, Callable[[Node], int]]] = MappingProxyType(
    {
        "envelope_bytes": partial(Node.size, least=_KIB, most=64 * _MIB),
        "frame_bytes": partial(Node.size, least=_KIB, most=64 * _MIB),
        "envelopes_per_second": partial(Node.integer, least=1, most=1_000_000),
        "burst": partial(Node.integer, least=1, most=10_000_000),
        "connections_per_space": partial(Node.integer, least=1, most=1_000_000),
        "connections_per_participant": partial(Node.integer, least=1, most=1_000_000),
        "streams_per_space": partial(Node.integer, least=0, most=1_000_000),
        "outbox_bytes": partial(Node.size, least=64 * _KIB, most=4 * _GIB),
        "history_envelopes": partial(Node.integer, least=0, most=10_000_000),
        "history_bytes": partial(Node.size, least=0, most=64 * _GIB),
    }
)


def read_spaces(top: Mapping[str, Node], root: Node, notes: list[str]) -> Mapping[str, SpaceConfig]:
    """The spaces by id, from `space` or `spaces`; what stands beside them at the top holds for each."""
    match "space" in top, "spaces" in top:
        case True, True:
            raise top["spaces"].error("'space' and 'spaces' in one file, expected one of them")
        case False, False:
            raise root.error("expected 'space' with an 'id', or a list 'spaces', has neither")
    nodes = (top["space"],) if "space" in top else top["spaces"].items()
    if not nodes:
        raise top["spaces"].error("expected at least one space, the list is empty")
    common = _read_shared(_Shared(), top, notes)
    spaces: dict[str, SpaceConfig] = {}
    for node in nodes:
        space = _read_space(node, common, notes)
        if space.id in spaces:
            raise node.error(f"duplicate space id '{space.id}'")
        spaces[space.id] = space
    return MappingProxyType(spaces)


def read_capabilities(node: Node, notes: list[str]) -> tuple[Capability, ...]:
    """A list of capabilities, compiled. Those for `system/…` are left out: only the gateway sends such."""
    found: list[Capability] = []
    for item in node.items():
        written = item.plain()
        kind = written.get("kind") if isinstance(written, dict) else written
        if isinstance(kind, str) and (kind.startswith("system/") or kind == "system"):
            notes.append(str(item.error(f"'{kind}' has no effect, only the gateway sends system kinds")))
            continue
        try:
            found.append(Capability.parse(written))
        except InvalidCapability as error:
            raise item.error(f"not a capability: {error}") from error
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What may stand at the top, for all spaces, and in a space, for that one."""

    participants: Mapping[ParticipantId, ParticipantConfig] = field(
        default_factory=lambda: MappingProxyType({})
    )
    default_capabilities: tuple[Capability, ...] = ()
    baseline: tuple[Capability, ...] = tuple(Capability.parse(kind) for kind in _BASELINE)
    delivery: Delivery = Delivery.EVERYONE
    announce_violations: bool = False
    limits: Limits = field(default_factory=Limits)


def _read_shared(above: _Shared, fields: Mapping[str, Node], notes: list[str]) -> _Shared:
    changes: dict[str, Any] = {}
    if "participants" in fields:
        changes["participants"] = _read_participants(above, fields["participants"], notes)
    if "defaults" in fields:
        defaults = fields["defaults"].fields(DEFAULTS)
        if "capabilities" in defaults:
            changes["default_capabilities"] = read_capabilities(defaults["capabilities"], notes)
        if "baseline_capabilities" in defaults:
            changes["baseline"] = read_capabilities(defaults["baseline_capabilities"], notes)
    if "delivery" in fields:
        changes["delivery"] = fields["delivery"].choice(Delivery)
    if "announce_violations" in fields:
        changes["announce_violations"] = fields["announce_violations"].boolean()
    if "limits" in fields:
        changes["limits"] = _read_limits(above.limits, fields["limits"])
    return replace(above, **changes)


def _read_space(node: Node, common: _Shared, notes: list[str]) -> SpaceConfig:
    fields = node.fields(SPACE)
    if "id" not in fields:
        raise node.error("expected an 'id', has none")
    space_id = fields["id"].string()
    if _SPACE_ID.fullmatch(space_id) is None:
        raise fields["id"].error("expected letters, digits and ._@- (up to 128), is another text")
    shared = _read_shared(common, fields, notes)
    return SpaceConfig(
        id=space_id,
        name=fields["name"].prose() if "name" in fields else space_id,
        description=fields["description"].prose() if "description" in fields else "",
        participants=shared.participants,
        default_capabilities=shared.default_capabilities,
        baseline=shared.baseline,
        delivery=shared.delivery,
        announce_violations=shared.announce_violations,
        limits=shared.limits,
        launch=_only(fields, SPACE_LAUNCH),
    )


def _read_participants(
    above: _Shared, node: Node, notes: list[str]
) -> Mapping[ParticipantId, ParticipantConfig]:
    participants = dict(above.participants)
    for name, child in node.entries().items():
        participants[ParticipantId(name)] = _read_participant(name, child, notes)
    holders: dict[str, ParticipantId] = {}
    for one in participants.values():
        for token in one.tokens:
            holder = holders.setdefault(token, one.id)
            if holder != one.id:
                raise (
                    node.entries().get(one.id, node).error(f"a token of '{one.id}' is also one of '{holder}'")
                )
    return MappingProxyType(participants)


def _read_participant(name: str, node: Node, notes: list[str]) -> ParticipantConfig:
    if not is_participant_id(name):
        raise node.error(
            "expected an id of letters, digits and ._@- (up to 128, a letter or digit first),"
            " other than 'system' and 'gateway'"
        )
    if node.value is None:
        return ParticipantConfig(id=ParticipantId(name))
    fields = node.fields(PARTICIPANT)
    return ParticipantConfig(
        id=ParticipantId(name),
        tokens=fields["tokens"].list_of(_read_token) if "tokens" in fields else (),
        capabilities=read_capabilities(fields["capabilities"], notes) if "capabilities" in fields else None,
        launch=_only(fields, LAUNCH),
    )


def _read_token(node: Node) -> str:
    token = node.prose()
    if not is_token(token):  # and never shown
        raise node.error("expected a token of printable ASCII without space and comma, is another text")
    return token


def _read_limits(above: Limits, node: Node) -> Limits:
    limits = replace(above, **node.read(LIMITS))
    largest = max(limits.envelope_bytes, limits.frame_bytes)
    if limits.outbox_bytes < largest:
        raise node.error(
            f"outbox_bytes is {limits.outbox_bytes}, less than an envelope or frame may have, {largest}"
        )
    return limits


def _only(fields: Mapping[str, Node], keys: frozenset[str]) -> Mapping[str, Node]:
    return MappingProxyType({key: child for key, child in fields.items() if key in keys})
