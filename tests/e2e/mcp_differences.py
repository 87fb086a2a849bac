"""What a host sees otherwise through a space than directly, on purpose; `docs/reference/mcp.md` lists the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CLIENT_EXCEPTIONS",
    "DIFFERENCES",
    "EXCEPTIONS",
    "VARYING",
    "Different",
    "compared",
    "explanation",
]

_SHOWN_MAX = 300
_STEP_MAX = 0.001
_NOTE = "\n\n[needs approval]"


@dataclass(frozen=True)
class Different:
    """One place where two records are not the same."""

    at: str
    wanted: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.at}: {_short(self.wanted)} directly, {_short(self.found)} through the space"


def compared(wanted: Any, found: Any, at: str = "") -> Iterator[Different]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in {**wanted, **found}:
            yield from compared(wanted.get(key), found.get(key), f"{at}/{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from compared(one, other, f"{at}/{number}")
    elif wanted != found:
        yield Different(at, wanted, found)


def _noted(one: Different) -> bool:
    return re.fullmatch(r"/tools/list/.+/description", one.at) is not None and one.found == one.wanted + _NOTE


def _empty_list(one: Different) -> bool:
    return re.fullmatch(r"/(resources/|resources/templates/|prompts/)list/(error|result)", one.at) is not None


def _unknown_tool(one: Different) -> bool:
    return one.at.startswith("/a tool that is not there/")


def _only_grows(one: Different) -> bool:
    return one.at == "/progress/0/progress" and one.wanted == 0 and 0 < one.found < _STEP_MAX


def _told_of_approval(one: Different) -> bool:
    if one.at != "/progress":
        return False
    told = [note["message"] for note in one.found]
    waited = told[:1] == ["waiting for approval by ann"]  # not where she is quicker than we are told of it
    if told[waited : waited + 1] != ["approved by ann, running"]:
        return False
    return all(map(_only_grows, compared(one.wanted, one.found[waited + 1 :], one.at)))


DIFFERENCES = {
    "a tool that needs approval says so": _noted,
    "a list that a server does not have is empty": _empty_list,
    "an unknown tool is an error of JSON-RPC": _unknown_tool,
    "progress tells of the approval too": _told_of_approval,
    "progress only grows": _only_grows,
}


EXCEPTIONS = {
    ("2025-11-25", "server-sse-polling"): "a stream that was lost is not taken up again",
    ("2026-07-28", "input-required-result-basic-elicitation"): "questions have keys of their own",
    ("2026-07-28", "input-required-result-ignore-extra-params"): "questions have keys of their own",
    ("2026-07-28", "input-required-result-multiple-input-requests"): "questions come one at a time",
    ("2026-07-28", "input-required-result-basic-list-roots"): "roots are those of the bridge",
    (
        "2026-07-28",
        "input-required-result-capability-check",
    ): "what the client can do is what the bridge can do",
    ("2026-07-28", "server-stateless"): "what the client can do is what the bridge can do",
}
"""Scenarios for servers with another verdict through a space, and why."""

VARYING = {("2026-07-28", "input-required-result-capability-check")}
"""Of these, those where it depends on which of two questions is answered first."""

CLIENT_EXCEPTIONS = {
    ("2026-07-28", "request-metadata"): "a server is first met as one of the first generation",
    ("2026-07-28", "http-standard-headers"): "a server is first met as one of the first generation",
}
"""The same for clients."""


def explanation(one: Different) -> str | None:
    """Which of those it is, if it is one."""
    return next((name for name, fits in DIFFERENCES.items() if fits(one)), None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
