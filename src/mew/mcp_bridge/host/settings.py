"""PURE. How a space is shown to hosts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mew.mcp_bridge.host_profiles import ProfileName

if TYPE_CHECKING:  # they are made of what is here
    from mew.mcp_bridge.host.offers.tool_trust import ToolTrust
    from mew.mcp_bridge.policy.policy import CallPolicy

__all__ = ["HostSettings"]


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """`only`: one participant alone, with its names and URIs as they are. `own_tools`: those to take part, `mew_chat`,
    and to ask what became of a proposal; with `only`, these alone.

    `wait_s` is how long a host waits for an approval before it is told to ask again, `open_s` how long a proposal
    stays open, `call_s` how long a tool may run, `start_s` how long a call waits for `only` to join. `approver` is who
    approves if nobody in the space may.
    """

    only: str | None = None
    own_tools: bool = True
    wait_s: float = 50.0
    open_s: float = 3_600.0
    call_s: float = 3_600.0
    start_s: float = 120.0
    approver: str = "somebody who may; nobody here may now"
    host: ProfileName | None = None
    """Which host it is; None: told from what it says of itself."""
    abandon_s: float = 10.0
    """How long a call whose host gave up stays proposed, so that the same call finds it again."""
    trust: "ToolTrust | None" = None
    """Which tools may be called without approval as far as our capabilities allow; None: all."""
    policy: "CallPolicy | None" = None
    """What becomes of each call to `only`; None: what our capabilities say."""

    @property
    def takes_part(self) -> bool:
        """Whether a host sees the space itself: who is there, and what was said."""
        return self.own_tools and self.only is None
