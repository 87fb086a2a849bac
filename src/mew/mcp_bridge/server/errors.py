"""PURE. Why a server has no answer, as the errors that a participant is told: one code, and `data.mew.why`."""

from typing import Any, Final, Literal

from mew.client.errors import MewError, RpcError

__all__ = ["ServerFailureCode", "ServerUnavailable", "failure"]

ServerFailureCode = Literal[
    "server_died",
    "server_starting",
    "server_restarting",
    "server_gone",
    "server_timeout",
    "server_unreachable",
    "question_unanswered",
]

_UNAVAILABLE: Final = -32000
_TIMEOUT: Final = -32001  # the SDK's own


class ServerUnavailable(MewError):
    """The server never answered, or ended and is not started again; the sentence says which, and why.

    `worked`: it did answer once.
    """

    def __init__(self, message: str, *, worked: bool = False) -> None:
        super().__init__(message)
        self.worked = worked


def failure(why: ServerFailureCode, message: str, **more: Any) -> RpcError:
    """An error of the bridge's own: the server did not say this."""
    code = _TIMEOUT if why == "server_timeout" else _UNAVAILABLE
    return RpcError(code, message, {"mew": {"why": why, **more}})
