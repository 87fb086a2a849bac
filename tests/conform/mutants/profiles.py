"""Gateways that give other profiles."""

import re
from typing import Any, Final

from mew.protocol.capability.glob import Glob
from mew.space import holdings

from .breaks import Break, Mutant, of, replaced
from .deciding import allowing, refusing

__all__ = ["MUTANTS"]


OWN: Final = "patterns.each_is_held_to_its_own"
FULL: Final = "patterns.full_access_sends_any_mcp_message"
FULL_ONLY: Final = "patterns.full_access_is_access_to_mcp"
PROPOSALS: Final = "patterns.proposal_only_makes_no_request"
TOOLS: Final = "patterns.tool_specific_calls_its_tools_only"
LISTS: Final = "patterns.monitoring_lists_and_does_nothing"
ANSWERS: Final = "patterns.response_only_answers_and_does_nothing"


def held_by(whose: dict[str, str]) -> Break:
    """These are judged by what others hold."""
    right = holdings.held
    return replaced(holdings, "held", lambda state, who: right(state, whose.get(who, who)))  # type: ignore[arg-type]


def glob(fits: Any) -> Break:
    return replaced(Glob, "fits", lambda self, value: isinstance(value, str) and fits(self.text, value))


def like(text: str, value: str) -> bool:
    """As in SQL, where `_` stands for one sign."""
    return bool(re.fullmatch(text.replace("_", ".").replace("*", ".*"), value))


MUTANTS: Final = (
    Mutant("profile.any", OWN, held_by({"granter": "proposer"}), "granter may not send reasoning/thought"),
    Mutant("profile.any", OWN, held_by({"listener": "reader"}), "listener may not send mcp/request"),
    Mutant("profile.any", OWN, held_by({"peer": "reader"}), "which peer may send"),
    Mutant(
        "profile.full-access",
        FULL,
        refusing(lambda e: b"initialize" in bytes(e.payload)),
        "which peer may send",
    ),
    Mutant("profile.full-access", FULL, refusing(of("mcp/proposal", sender="peer")), "which peer may send"),
    Mutant("profile.full-access", FULL, refusing(lambda e: b'"error"' in bytes(e.payload)), "mcp/response"),
    Mutant("profile.full-access", FULL_ONLY, allowing(of("chat/cancel")), "may not send chat/cancel"),
    Mutant("profile.proposal-only", PROPOSALS, allowing(of("mcp/request")), "may not send mcp/request"),
    Mutant(
        "profile.proposal-only",
        PROPOSALS,
        allowing(lambda e: b"tools/list" in bytes(e.payload)),
        "tools/list",
    ),
    Mutant(
        "profile.proposal-only",
        PROPOSALS,
        allowing(lambda e: e.kind == "mcp/request" and bool(e.correlation_id)),
        "proposer may not send mcp/request",
    ),
    Mutant("profile.proposal-only", PROPOSALS, refusing(of("mcp/response")), "which proposer may send"),
    Mutant("profile.tool-specific", TOOLS, glob(like), "reader"),
    Mutant("profile.tool-specific", TOOLS, glob(lambda text, value: text[:-1] in value), "re_read_file"),
    Mutant("profile.tool-specific", TOOLS, glob(lambda text, value: value == "read_file"), "may send"),
    Mutant(
        "profile.tool-specific", TOOLS, allowing(lambda e: b"read_file" in bytes(e.payload)), "may not send"
    ),
    Mutant("profile.monitoring", LISTS, glob(lambda text, value: value.endswith(text[2:])), "may not send"),
    Mutant("profile.monitoring", LISTS, glob(lambda text, value: value == "tools/list"), "resources/list"),
    Mutant("profile.monitoring", LISTS, glob(lambda text, value: text[1:] in value), "may not send"),
    Mutant("profile.response-only", ANSWERS, allowing(of("chat")), "may not send chat"),
    Mutant("profile.response-only", ANSWERS, allowing(of("mcp/proposal")), "may not send mcp/proposal"),
    Mutant("profile.response-only", ANSWERS, refusing(of("mcp/response")), "may send"),
)
