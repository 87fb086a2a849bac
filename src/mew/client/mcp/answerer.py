"""The port of who answers MCP requests: a toolbox of functions (`server`), or a server elsewhere that is asked."""

from typing import Any, Protocol

from .call import Call

__all__ = ["Answerer"]


class Answerer(Protocol):
    """Whoever feeds it decides how many calls run at once, and sends what it returns."""

    async def answer(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
        """The result of a request.

        Raises:
            RpcError: the error to answer with.
            CallCancelled: its sender cancelled it, and expects no answer.
        """
        ...

    def notice(self, method: str, params: dict[str, Any], sender: str) -> None:
        """Take a notification, `notifications/cancelled` for a call that runs among them. Must not wait."""

    def forget(self, sender: str) -> None:
        """A participant has left: what was kept for it goes."""
