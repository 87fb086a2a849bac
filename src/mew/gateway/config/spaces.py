"""The spaces of a `space.yaml`: participants, capabilities, defaults and limits."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

from mew.gateway.auth.tokens import is_token
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId, is_participant_id, similar_id
from mew.protocol.errors import InvalidCapability

from .settings import DeliveryMode, Limits, ParticipantConfig, SpaceConfig
from .value import ConfigValue

__all__ = [
    "APPROVALS",
    "AUTOPILOT",
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

_SPACE_ID = re.compile(r"[^/\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,128}")

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
SPACE_LAUNCH: Final = frozenset({"default_participant", "reviewer", "ui_theme"})
SHARED: Final = frozenset(
    {"participants", "defaults", "delivery", "announce_violations", "approvals", "limits", "autopilot"}
)
SPACE: Final = frozenset({"id", "name", "description", "revision"}) | SPACE_LAUNCH | SHARED
DEFAULTS: Final = frozenset({"capabilities", "baseline_capabilities"})
APPROVALS: Final = frozenset({"unattended"})
AUTOPILOT: Final = frozenset(
    {
        *("mode", "reviewers", "risk", "delta", "min_review_s", "audit", "careful", "budget_per_hour"),
        *("idle_days", "never", "allow"),
    }
)
_AUTOPILOT_ID: Final = ParticipantId("autopilot")
_AUTOPILOT_SENDS: Final = (
    "mcp/request",
    "autopilot/decision",
    "autopilot/rule",
    "autopilot/summary",
    "participant/status",
)

LIMITS: Final[Mapping[str, Callable[[ConfigValue], int]]] = MappingProxyType(
    {
        "envelope_bytes": partial(ConfigValue.size, least=_KIB, most=64 * _MIB),
        "frame_bytes": partial(ConfigValue.size, least=_KIB, most=64 * _MIB),
        "envelopes_per_second": partial(ConfigValue.integer, least=1, most=1_000_000),
        "burst": partial(ConfigValue.integer, least=1, most=10_000_000),
        "bytes_per_second": partial(ConfigValue.size, least=64 * _KIB, most=64 * _GIB),
        "bytes_burst": partial(ConfigValue.size, least=64 * _KIB, most=64 * _GIB),
        "connections_per_space": partial(ConfigValue.integer, least=1, most=1_000_000),
        "connections_per_participant": partial(ConfigValue.integer, least=1, most=1_000_000),
        "streams_per_space": partial(ConfigValue.integer, least=0, most=1_000_000),
        "streams_per_participant": partial(ConfigValue.integer, least=0, most=1_000_000),
        "outbox_bytes": partial(ConfigValue.size, least=64 * _KIB, most=4 * _GIB),
        "history_envelopes": partial(ConfigValue.integer, least=0, most=10_000_000),
        "history_bytes": partial(ConfigValue.size, least=0, most=64 * _GIB),
    }
)


def read_spaces(
    top: Mapping[str, ConfigValue], root: ConfigValue, notes: list[str]
) -> Mapping[str, SpaceConfig]:
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


def read_capabilities(node: ConfigValue, notes: list[str]) -> tuple[Capability, ...]:
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
    delivery: DeliveryMode = DeliveryMode.EVERYONE
    announce_violations: bool = False
    unattended_approvals: bool = False
    limits: Limits = field(default_factory=Limits)


def _read_shared(above: _Shared, fields: Mapping[str, ConfigValue], notes: list[str]) -> _Shared:
    changes: dict[str, Any] = {}
    changes["participants"] = _read_everyone(above, fields, notes)
    if "defaults" in fields:
        defaults = fields["defaults"].fields(DEFAULTS)
        if "capabilities" in defaults:
            changes["default_capabilities"] = read_capabilities(defaults["capabilities"], notes)
        if "baseline_capabilities" in defaults:
            changes["baseline"] = read_capabilities(defaults["baseline_capabilities"], notes)
    if "delivery" in fields:
        changes["delivery"] = fields["delivery"].choice(DeliveryMode)
    if "announce_violations" in fields:
        changes["announce_violations"] = fields["announce_violations"].boolean()
    if "approvals" in fields:
        approvals = fields["approvals"].fields(APPROVALS)
        if "unattended" in approvals:
            changes["unattended_approvals"] = approvals["unattended"].boolean()
    if "limits" in fields:
        changes["limits"] = _read_limits(above.limits, fields["limits"])
    return replace(above, **changes)


def _read_space(node: ConfigValue, common: _Shared, notes: list[str]) -> SpaceConfig:
    fields = node.fields(SPACE)
    if "id" not in fields:
        raise node.error("expected an 'id', has none")
    space_id = fields["id"].string()
    if _SPACE_ID.fullmatch(space_id) is None:
        raise fields["id"].error("expected up to 128 characters without '/' and control characters")
    shared = _read_shared(common, fields, notes)
    return SpaceConfig(
        id=space_id,
        name=fields["name"].prose() if "name" in fields else space_id,
        description=fields["description"].prose() if "description" in fields else "",
        revision=fields["revision"].integer(least=0, most=10**9) if "revision" in fields else 0,
        participants=shared.participants,
        default_capabilities=shared.default_capabilities,
        baseline=shared.baseline,
        delivery=shared.delivery,
        announce_violations=shared.announce_violations,
        unattended_approvals=shared.unattended_approvals,
        limits=shared.limits,
        launch=_only(fields, SPACE_LAUNCH),
    )


def _read_everyone(
    above: _Shared, fields: Mapping[str, ConfigValue], notes: list[str]
) -> Mapping[ParticipantId, ParticipantConfig]:
    everyone = above.participants
    if "participants" in fields:
        everyone = _read_participants(above, fields["participants"], notes)
    return _with_autopilot(everyone, fields["autopilot"]) if "autopilot" in fields else everyone


def _read_participants(
    above: _Shared, node: ConfigValue, notes: list[str]
) -> Mapping[ParticipantId, ParticipantConfig]:
    participants = dict(above.participants)
    for name, child in node.entries().items():
        if (similar := similar_id(name, participants)) is not None:
            raise child.error(f"'{name}' is easily taken for '{similar}': choose another id for one of them")
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


def _with_autopilot(
    participants: Mapping[ParticipantId, ParticipantConfig], node: ConfigValue
) -> Mapping[ParticipantId, ParticipantConfig]:
    """The participants and the autopilot, which `mew up` starts; what the file says of it stays.

    The values are checked by the autopilot, which reads them itself.
    """
    node.fields(AUTOPILOT)
    written = ("autopilot", "--config", PurePath(node.file).name)
    arguments = tuple(ConfigValue(text, node.file, node.line, node.path) for text in written)
    launch = {
        "command": ConfigValue("mew", node.file, node.line, node.path),
        "args": ConfigValue(arguments, node.file, node.line, node.path),
    }
    known = participants.get(_AUTOPILOT_ID, ParticipantConfig(id=_AUTOPILOT_ID))
    held = known.capabilities
    if held is None:
        held = tuple(Capability.parse(kind) for kind in _AUTOPILOT_SENDS)
    if "command" not in known.launch:
        known = replace(known, launch=MappingProxyType({**known.launch, **launch}))
    return MappingProxyType({**participants, _AUTOPILOT_ID: replace(known, capabilities=held)})


def _read_participant(name: str, node: ConfigValue, notes: list[str]) -> ParticipantConfig:
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


def _read_token(node: ConfigValue) -> str:
    token = node.prose()
    if not is_token(token):  # and never shown
        raise node.error("expected a token of printable ASCII without space and comma, is another text")
    return token


def _read_limits(above: Limits, node: ConfigValue) -> Limits:
    limits = replace(above, **node.read(LIMITS))
    largest = max(limits.envelope_bytes, limits.frame_bytes)
    if limits.outbox_bytes < largest:
        raise node.error(
            f"outbox_bytes is {limits.outbox_bytes}, less than an envelope or frame may have, {largest}"
        )
    return limits


def _only(fields: Mapping[str, ConfigValue], keys: frozenset[str]) -> Mapping[str, ConfigValue]:
    return MappingProxyType({key: child for key, child in fields.items() if key in keys})
