"""The logs of participants, passed on to hosts; what belongs to a call goes the way of that call."""

from typing import Any, Final, Self, get_args

from msgspec import UNSET

from mew.client.client import Client
from mew.client.errors import MewError
from mew.client.mcp.call import Level
from mew.mcp_bridge.host.calls.notes import logged
from mew.mcp_bridge.host.calls.registry import HostCalls
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest, Presence

from .notifications import ConnectedHosts
from .settings import HostSettings

__all__ = ["LogForwarder"]

_MESSAGE: Final = "notifications/message"
_SET_LEVEL: Final = "logging/setLevel"
_ANSWER_S: Final = 10.0
_LEVELS: Final[tuple[str, ...]] = get_args(Level)


class LogForwarder:
    """A context: inside, it listens."""

    def __init__(self, me: Client, settings: HostSettings, calls: HostCalls, hosts: ConnectedHosts) -> None:
        self._me = me
        self._only = settings.only
        self._calls = calls
        self._hosts = hosts
        self._asked: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._me.connection.listen(self._listen, (Kind.MCP_REQUEST, Kind.PRESENCE))
        return self

    def __exit__(self, *_: object) -> None:
        self._me.connection.unlisten(self._listen)

    def want(self, participants: tuple[str, ...], level: str) -> None:
        """Ask them for lines of this level and above, where we may and have not; nobody waits for it.

        What one host wants less of than another, it is not passed on.
        """
        params = {"level": level}
        payload = {"jsonrpc": "2.0", "id": 0, "method": _SET_LEVEL, "params": params}
        for participant in participants:
            least = self._asked.get(participant)
            is_more = least is None or _LEVELS.index(level) < _LEVELS.index(least)
            if is_more and self._me.can_send(Kind.MCP_REQUEST, payload, to=participant):
                self._asked[participant] = level
                self._me.connection.spawn(self._ask(participant, params))

    async def _ask(self, participant: str, params: dict[str, Any]) -> None:
        try:
            await self._me.request(participant, _SET_LEVEL, params, timeout_s=_ANSWER_S)
        except MewError:
            return  # it has no log, or keeps it to itself

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        match payload:
            case Presence(participant=participant):
                self._asked.pop(participant.id, None)  # who comes back may have forgotten it
            case McpRequest(method=method, id=request_id, params=dict(params)):
                is_line = method == _MESSAGE and request_id is UNSET and self._is_shown(envelope)
                if is_line and not self._calls.concerns(envelope):
                    self._hosts.log(logged(envelope.sender, params, self._only))

    def _is_shown(self, envelope: Envelope) -> bool:
        is_ours = not envelope.to or self._me.id in envelope.to
        return is_ours and envelope.sender != self._me.id and self._only in (None, envelope.sender)
