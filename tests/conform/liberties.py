"""Gateways that differ from ours in what the document leaves open: no check may hold that against them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mew.conform.roles import KICKED, PEER_SECOND_TOKEN, JoinMethod, KitConfig, PatternNotation
from mew.conform.runner import all_checks
from mew.gateway.http import schemas as shapes
from mew.gateway.room import replies
from mew.gateway.room.outbox import Outboxes
from mew.gateway.room.rate_limit import RateLimiter
from mew.gateway.room.room import Room
from mew.gateway.room.streams import FrameRelay
from mew.gateway.websocket import endpoint as door
from mew.gateway.websocket.connection import WebSocketConnection
from mew.gateway.websocket.endpoint import WebSocketEndpoint
from mew.gateway.websocket.frames import binary_frame
from mew.protocol.kinds import Kind
from mew.space import grants, presence, streams

from .differing import (
    as_doubles,
    backwards,
    bare_stream_open,
    closed_not_denied,
    curt,
    cutting_off,
    disconnecting,
    echoing_frames,
    grants_end_at_a_restart,
    in_a_while,
    join_each_time,
    kicked_for_a_moment,
    leave_each_time,
    more_of_its_own,
    no_cause,
    no_echo,
    no_token,
    not_there,
    nothing,
    opened_by_the_gateway,
    strict_about_urls,
    taking_back_nothing,
    the_last_counts,
    the_next_free_id,
)
from .mutants.breaks import Break, replaced, ruled, shown, wrapping
from .mutants.deciding import changed, deciding, dropped
from .mutants.doors import POLLS, POSTS, afterwards, arriving, framing, framing_streams, saying, signing

__all__ = ["LIBERTIES", "Liberty"]

# What the kit is told of it.


def as_it_is(config: KitConfig) -> KitConfig:
    return config


def joining(how: JoinMethod) -> Callable[[KitConfig], KitConfig]:
    return lambda config: replace(config, join=how)


def bare(config: KitConfig) -> KitConfig:
    """One space, and no HTTP API, expressions or mail."""
    return replace(
        config, http=None, second_space=None, mail=None, notation=PatternNotation(), timeout_s=0.12
    )


def without_ids(config: KitConfig) -> KitConfig:
    """The kit does not know who its tokens are, and has none for some."""
    roles = {
        name: replace(role, id=None)
        for name, role in config.roles.items()
        if name not in (PEER_SECOND_TOKEN, KICKED)
    }
    return replace(config, roles=roles, second_space=None)


def checks(*starts: str) -> frozenset[str]:
    """The names of all that begin so."""
    return frozenset(one.name for one in all_checks() if one.name.startswith(starts))


SUPPRESSED: Final = ("chat/acknowledge", "participant/status")
NOTICE: Final = checks("capabilities.a_notice_shows_nothing_of_it")
ENFORCED: Final = checks("control.a_pause_holds_back_work")
PAUSES_SEEN_TO_END: Final = checks("control.a_pause_may_end_by_itself")
STATUSES: Final = checks(
    "control.a_status_may_",
    "control.who_asked_for_a_status_gets_it",
    "talk.an_acknowledgement_has_any_status",
)
EXPRESSIONS: Final = checks("patterns.a_regular_expression_decides", "patterns.a_path_finds_what_must_fit")
POLLING: Final = checks(
    "http_api.envelopes_can_be_fetched",
    "http_api.since_says_from_when_on",
    "http_api.fetched_envelopes_are_whole",
    "http_api.what_is_anothers_is_not_fetched",
)
CLOSED_BY_THE_GATEWAY: Final = checks("streams.the_gateway_")
TWO_CONNECTIONS: Final = checks("presence.who_ha")
BY_GUESTS: Final = checks(
    "grants.nobody_invites_with_what_it_lacks",
    "members.a_token_goes_to_the_inviter",
    "members.everyone_sees_how_the_space_is_managed",
    "members.the_invited_can_come",
    "members.the_invited_holds_the_same_when_it_comes_back",
    "members.the_invited_holds_what_it_was_invited_with",
    "members.the_kicked_do_not_just_come_back",
    "senders.no_capability_opens_what_is_the_gateways",
    "spaces.removed_from_one_space_is_still_in_the_other",
)
WITHOUT_CHAT: Final = checks(
    "patterns.a_chat_passes_under_nothing_else",
    "patterns.a_wildcard_allows_nothing_of_other_kinds",
    "patterns.response_only_answers_and_does_nothing",
)
BY_GRANTS: Final = checks(
    "capabilities.a_change_counts_at_once",
    "access.the_gateway_knows_what_they_hold_now",
    "control.the_kind_is_request_status_with_a_hyphen",
    "grants.a_grant_names_recipient_and_capabilities",
    "grants.granted_capabilities_are_patterns",
    "grants.grants_add_up",
    "grants.nobody_grants",
    "patterns.a_payload_pattern_counts_under_any_kind",
    "patterns.a_sign_stands_for_itself",
    "patterns.a_value_that_is_no_text_must_be_the_same",
    "patterns.a_wildcard_may_stand_anywhere",
    "patterns.every_field_of_one_capability_must_fit",
    "patterns.the_examples_for_a_request_hold",
    "patterns.full_access_is_access_to_mcp",
    "patterns.monitoring_lists_and_does_nothing",
    "proposals.mcp_reject_alone_is_enough_to_reject",
    "grants.a_grant_is_revoked",
    "grants.a_pattern_",
    "grants.a_revocation_",
    "grants.only_the_grant_of_that_id_is_revoked",
    "control.grants_outlive_a_restart",
    "capabilities.the_error_knows_what_changed",
    "presence.the_list_is_exact_after_a_grant_and_a_revocation",
)


class Liberty(NamedTuple):
    """How a gateway differs, which requirements it breaks by that, and for which checks it offers nothing then."""

    differs: tuple[Break, ...] = ()
    settings: Mapping[str, Any] = {}
    told: Callable[[KitConfig], KitConfig] = as_it_is
    breaks: frozenset[str] = frozenset()
    not_offered: frozenset[str] = NOTICE


LIBERTIES: Final[dict[str, Liberty]] = {
    "does not echo": Liberty(
        (no_echo,),
        breaks=frozenset({"delivery.one-stream"}),
    ),
    "says little in its errors": Liberty(
        (wrapping(replies, "error", no_cause), signing("system/error", payload={"error": "no"}, ts=...)),
        breaks=frozenset({"error.correlates", "violation.payload"}),
    ),
    "cuts off whom it refuses something": Liberty(
        (wrapping(Room, "reject", cutting_off),),
        not_offered=NOTICE | ENFORCED | PAUSES_SEEN_TO_END,
    ),
    "refuses a second connection, and lets the kicked come back": Liberty(
        (ruled(Kind.KICK, act=kicked_for_a_moment),),
        settings={"limits": {"connections_per_participant": 1}},
        told=joining(JoinMethod.SUBPROTOCOL),
        breaks=frozenset({"kick.lasting"}),
        not_offered=NOTICE | TWO_CONNECTIONS,
    ),
    "closes the first connection for the second, and gives an id of a stream again": Liberty(
        (
            wrapping(Room, "enter", the_last_counts),
            wrapping(WebSocketEndpoint, "handle", strict_about_urls),
            ruled(Kind.STREAM_REQUEST, act=the_next_free_id),
        ),
        not_offered=NOTICE | TWO_CONNECTIONS,
    ),
    "gives no token to who is invited": Liberty(
        (saying(no_token),), not_offered=NOTICE | BY_GUESTS | WITHOUT_CHAT
    ),
    "gives no token to who is invited, and leaves what somebody gave on when that one loses it": Liberty(
        (
            saying(no_token),
            wrapping(grants, "take_back", taking_back_nothing),
        ),
        not_offered=NOTICE | BY_GUESTS | WITHOUT_CHAT,
    ),
    "announces each connection, reads numbers as doubles, and is curt to what it cannot read": Liberty(
        (
            arriving(curt),
            wrapping(presence, "join", join_each_time),
            wrapping(presence, "leave", leave_each_time),
            framing(as_doubles),
        ),
    ),
    "does not answer invitations, nor grant, and has no HTTP": Liberty(
        (ruled("space/invite", act=nothing), ruled("capability/grant", act=nothing)),
        told=bare,
        breaks=frozenset({"grant.adds"}),
        not_offered=NOTICE
        | BY_GUESTS
        | WITHOUT_CHAT
        | BY_GRANTS
        | CLOSED_BY_THE_GATEWAY
        | checks("http_api.", "members.the_invited_gets_a_mail", "spaces.")
        | EXPRESSIONS,
    ),
    "suppresses acknowledgements and statuses, and enforces no pause": Liberty(
        (
            dropped(shown(*SUPPRESSED)),
            ruled(Kind.PAUSE, act=None),
            replaced(streams, "close_owned", nothing),
            changed(opened_by_the_gateway, bare_stream_open),
        ),
        not_offered=NOTICE
        | ENFORCED
        | CLOSED_BY_THE_GATEWAY
        | STATUSES
        | checks("streams.a_stream_open_may_say_more"),
    ),
    "routes by to": Liberty(
        settings={"delivery": "addressed"}, breaks=frozenset({"delivery.visible-to-all"})
    ),
    "is slow, and joined by a first message": Liberty(
        (
            wrapping(Outboxes, "flush", in_a_while),
            replaced(
                door,
                "WebSocketConnection",
                lambda admission, wire, now, **_: WebSocketConnection(admission, wire, now),
            ),
        ),
        told=joining(JoinMethod.FRAME),
    ),
    "has binary frames only, and echoes those of streams": Liberty(
        (
            framing(lambda right, raw: binary_frame(raw)),
            framing_streams(text=binary_frame),
            wrapping(FrameRelay, "forward", echoing_frames),
        )
    ),
    "says more, and in another order": Liberty(
        (
            framing(backwards),
            afterwards(more_of_its_own),
            saying(lambda said: said["kind"].startswith("system/") and said.update(vendor={"a": 1})),
        ),
    ),
    "announces violations, lets all chat, and gives a bare list to fetch": Liberty(
        (
            replaced(shapes, "MessagesPage", lambda raw, following, complete: raw),
            replaced(RateLimiter, "take", lambda limiter, now_s, count=1: count),
        ),
        {"announce_violations": True, "defaults": {"baseline_capabilities": ["chat"]}},
        not_offered=WITHOUT_CHAT,
    ),
    "disconnects who is shut down, takes grants back at a restart, and takes nothing over HTTP": Liberty(
        (
            deciding(disconnecting),
            grants_end_at_a_restart,
            replaced(*POSTS, not_there),
        ),
        {"defaults": {"baseline_capabilities": []}},
        not_offered=NOTICE | (checks("http_api.") - POLLING) | checks("control.grants_outlive_a_restart"),
    ),
    "closes who brings a wrong token, has nothing to fetch, and is known by its tokens alone": Liberty(
        (wrapping(WebSocketEndpoint, "handle", closed_not_denied), replaced(*POLLS, not_there)),
        {"limits": {"connections_per_participant": 1}},
        told=without_ids,
        not_offered=NOTICE
        | TWO_CONNECTIONS
        | checks("access.capabilities_hang_on_the_identity", "spaces.")
        | POLLING,
    ),
    "does much of this at once": Liberty(
        (
            no_echo,
            wrapping(replies, "error", no_cause),
            wrapping(Room, "reject", cutting_off),
            saying(no_token),
            dropped(shown(*SUPPRESSED)),
        ),
        {"delivery": "addressed", "limits": {"connections_per_participant": 1}},
        breaks=frozenset({"delivery.one-stream", "delivery.visible-to-all", "error.correlates"}),
        not_offered=NOTICE
        | ENFORCED
        | BY_GUESTS
        | WITHOUT_CHAT
        | STATUSES
        | PAUSES_SEEN_TO_END
        | TWO_CONNECTIONS,
    ),
}
