"""What can go wrong for who uses the SDK, as one tree under `MewError`.

MewError
  ConnectError      no connection: not reachable, or not let in
  Disconnected      there was one, and it is over for good
  Refused           the gateway said no, and `why`
  Uncertain         the connection was lost; it may or may not have been accepted
  Lagged            an iteration that did not keep up, and what came is too much to keep
  Absent            who should answer is not in the space
  Unanswered        no answer came in time
  RpcError          the answer is a JSON-RPC error
  ToolError         the tool ran and failed
  NotFulfilled      the proposal was rejected, withdrawn, or nobody took it up in time
  AlreadyDecided    the proposal is no longer open
  StreamBroken      some of a stream's data was lost, or may have been
    Corrupt         it has not the size or the checksum that its sender said
  UnknownTool       the participant lists no such tool
  InvalidArguments  a tool's schema does not allow the arguments (in `mcp.validation`)
"""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mew.protocol.envelope import EnvelopeId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import ErrorPayload

if TYPE_CHECKING:
    from .proposals.outcomes import Outcome

__all__ = [
    "Absent",
    "AlreadyDecided",
    "ConnectError",
    "Corrupt",
    "Disconnected",
    "Lagged",
    "MewError",
    "NotFulfilled",
    "Refused",
    "RpcError",
    "StreamBroken",
    "ToolError",
    "Unanswered",
    "Uncertain",
    "UnknownTool",
]


class MewError(Exception):
    """Any of them."""


class ConnectError(MewError):
    """No connection came about. `come_back`: it may be otherwise later; `status`: of the HTTP answer, if any came."""

    def __init__(self, message: str, *, come_back: bool, status: int | None = None) -> None:
        super().__init__(message)
        self.come_back = come_back
        self.status = status


class Disconnected(MewError):
    """The connection is over for good; `code` is why, one of `CloseCode` where the gateway ended it."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"disconnected ({code}): {reason}" if reason else f"disconnected ({code})")
        self.code = code
        self.reason = reason

    def copy(self) -> "Disconnected":
        """One for each who is told: an exception that several raise gathers all their tracebacks."""
        return Disconnected(self.code, self.reason)


class Refused(MewError):
    """The gateway did not accept an envelope. `why` is a stable code; `problem` is all that it said."""

    def __init__(self, envelope_id: EnvelopeId, problem: ErrorPayload) -> None:
        said = problem.error if problem.message is UNSET else f"{problem.error}: {problem.message}"
        super().__init__(said)
        self.envelope_id = envelope_id
        self.problem = problem
        self.why: Refusal | str = (
            Refusal(problem.error) if problem.error in Refusal.__members__.values() else problem.error
        )


class Uncertain(MewError):
    """The connection was lost before the gateway answered, and asking again could make it happen twice."""


class Lagged(MewError):
    """This iteration was so far behind that what waited for it had to be dropped."""


class Absent(MewError):
    """Nobody of that name is in the space."""


class Unanswered(MewError):
    """No answer came in time. Where it was an MCP request, the addressee was told that it is no longer wanted."""


class RpcError(MewError):
    """A JSON-RPC error: raised by `request` for one that came, and by who answers to send one.

    `code` is an integer in JSON-RPC; some participants send a name instead.
    """

    def __init__(self, code: int | str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def integer_code(self) -> int:
        """The code as JSON-RPC requires it: -32603 (internal error) for a name."""
        return self.code if isinstance(self.code, int) else -32603

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class ToolError(MewError):
    """The tool ran and failed: raised by `call`, and by a tool to say exactly this to its caller."""


class NotFulfilled(MewError):
    """What was proposed was not done, or not known to be; `outcome` says which, by whom and why."""

    def __init__(self, outcome: "Outcome") -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class AlreadyDecided(MewError):
    """The proposal was fulfilled, withdrawn or given up before."""


class StreamBroken(MewError):
    """Frames are not kept anywhere: what passed while the connection was lost, or too fast to keep, is gone."""


class Corrupt(StreamBroken):
    """What came does not have the size or the checksum that its sender said."""


class UnknownTool(MewError, LookupError):
    """The participant lists no such tool, and the message names the nearest; nothing was sent."""
