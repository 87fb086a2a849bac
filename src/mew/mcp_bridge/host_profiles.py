"""PURE. What is known of MCP hosts: how long they wait for a tool, and whether they can ask again by themselves."""

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

__all__ = ["HostProfile", "ProfileName", "detect_profile", "profile_of"]


class ProfileName(StrEnum):
    """A host by the name that `--host` takes."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    CURSOR = "cursor"
    FASTMCP = "fastmcp"
    GEMINI_CLI = "gemini-cli"
    INSPECTOR = "inspector"
    LANGCHAIN = "langchain"
    OPENAI_AGENTS = "openai-agents"
    PYDANTIC_AI = "pydantic-ai"
    VSCODE = "vscode"
    WINDSURF = "windsurf"
    ZED = "zed"


@dataclass(frozen=True)
class HostProfile:
    """`wait_s`: answer within this time, because the host gives up soon after. `retries`: it takes `input_required`
    without questions in it, and asks again by itself.
    """

    wait_s: float = inf
    retries: bool = False


_UNKNOWN: Final = HostProfile()
_SHORT_S: Final = 4.0
"""Below the five seconds after which openai-agents gives up by default."""
_PROFILES: Final = {ProfileName.OPENAI_AGENTS: HostProfile(wait_s=_SHORT_S)}
_ANONYMOUS: Final = "mcp"
"""What a client of the Python SDK is called that was given no name; openai-agents is one."""


def profile_of(name: ProfileName) -> HostProfile:
    return _PROFILES.get(name, _UNKNOWN)


def detect_profile(
    client: str | None, *, is_modern: bool, can_be_asked: bool, has_progress: bool
) -> HostProfile:
    """The profile of a host that calls itself `client`, told from what it declares.

    A nameless client of 2026-07-28 that declares nothing and wants no progress may be openai-agents, which gives up
    after five seconds and raises on `input_required`: it is answered before that.
    """
    if is_modern and client == _ANONYMOUS and not can_be_asked and not has_progress:
        return HostProfile(wait_s=_SHORT_S)
    return HostProfile(retries=is_modern and can_be_asked)
