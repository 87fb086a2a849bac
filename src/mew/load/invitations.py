"""Participants for the time of a run: invited by somebody who may, and removed at its end, however it ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from mew.protocol.capability import Capability, CapabilitySet
from mew.protocol.envelope import PROTOCOL
from mew.protocol.errors import InvalidCapability, ProtocolError, Refusal
from mew.protocol.json import decode_json, encode_json

from .connections import (
    Credentials,
    GatewayAddress,
    LoadFailed,
    LoadPhase,
    LoadRefused,
    ReadingConnection,
    close_all,
    enter,
    fresh_run,
    was_refused,
)
from .frames import text_frame

__all__ = ["Inviter", "inviting"]


_ANSWER_S: Final = 10.0
_NAMES_MAX: Final = 4_000
_RATE_TRIES: Final = 50
_GIVEN_AT_ONCE: Final = 32
_SHOWN: Final = frozenset({"space/kick", "capability/grant"})
"""What has no other answer than that it is shown."""


class _Speaker(ReadingConnection):
    """Sends what is to be answered, and knows who waits for which answer."""

    def __init__(self, phase: LoadPhase) -> None:
        super().__init__(phase)
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        for waits in self.waiting.values():
            if not waits.done():
                waits.set_exception(LoadFailed("the gateway ended the connection before it answered"))

    def heard(self, payload: bytes) -> None:
        with suppress(ProtocolError, AttributeError, TypeError):
            envelope = decode_json(payload)
            kind = envelope.get("kind")
            named = [envelope.get("id")] if kind in _SHOWN else envelope.get("correlation_id", [])
            for ident in [named] if isinstance(named, str) else named:
                waits = self.waiting.pop(ident, None)
                if waits is not None and not waits.done():
                    waits.set_result(envelope)


class Inviter:
    """Somebody who is in the space, and may invite others or not."""

    def __init__(self, address: GatewayAddress, credentials: Credentials) -> None:
        self.address = address
        self.credentials = credentials
        self.holds = CapabilitySet(())
        self.participants: list[str] = []
        """Who else was there."""
        self.invited: list[Credentials] = []
        self._line = _Speaker(LoadPhase())
        self._name = fresh_run()
        self._sent = 0
        self._number = 0

    async def enter(self) -> None:
        """Join, and learn who one is.

        Raises:
            LoadFailed: nobody is there, or one is not let in.
        """
        welcome = await enter(self.address, self.credentials, self._line)
        self.credentials = Credentials(welcome["you"]["id"], self.credentials.token)
        self.address = GatewayAddress(
            self.address.host,
            self.address.port,
            self.address.space or (welcome.get("space") or {}).get("id"),
            self.address.secure,
            self.address.path,
        )
        self.holds = CapabilitySet(_parsed(welcome["you"].get("capabilities")))
        self.participants = [str(one.get("id")) for one in welcome.get("participants", ())]

    def may(self, *capabilities: Any) -> bool:
        """Whether one holds all of these."""
        return all(self.holds.covers(Capability.parse(one)) for one in capabilities)

    def may_invite(self, *capabilities: Any) -> bool:
        return self.may("space/invite", "space/kick", *capabilities)

    async def invite(self, capabilities: Sequence[Any]) -> Credentials:
        """Somebody new: the first of `bench-1`, `bench-2`, … who is not there.

        The same names each time, for a space never forgets whom it removed. What one cannot be invited with at once is
        granted.

        Raises:
            LoadFailed: the gateway says no.
        """
        while self._number < _NAMES_MAX:
            self._number += 1
            who = f"bench-{self._number}"
            given = {"initial_capabilities": list(capabilities[:_GIVEN_AT_ONCE])}
            payload = {"participant_id": who, **given, "reason": "mew bench"}
            try:
                answer = await self._ask("space/invite", payload)
            except LoadRefused as refused:
                if refused.code != Refusal.ALREADY_EXISTS:
                    raise
                continue
            token = answer.get("payload", {}).get("token")
            if not isinstance(token, str):
                raise LoadFailed("the gateway gives no token for an invitation")
            self.invited.append(Credentials(who, token))
            for start in range(_GIVEN_AT_ONCE, len(capabilities), _GIVEN_AT_ONCE):
                more = list(capabilities[start : start + _GIVEN_AT_ONCE])
                await self._ask("capability/grant", {"recipient": who, "capabilities": more})
            return Credentials(who, token)
        raise LoadFailed("every name for somebody new is taken: remove some of bench-1, bench-2, …")

    async def dismiss(self) -> list[str]:
        """Remove all who were invited; who could not be is told."""
        left = []
        self._number = 0
        while self.invited:
            who = self.invited.pop().who
            try:
                await self._ask("space/kick", {"participant_id": who, "reason": "mew bench is over"})
            except LoadFailed:
                left.append(who)
        return left

    async def leave(self) -> None:
        await close_all([self._line])

    async def _come_back(self) -> None:
        """The gateway may have cut this connection off, in a run that was too much for it."""
        if self._line.transport is None:
            self._line = _Speaker(LoadPhase())
            await enter(self.address, self.credentials, self._line)

    async def _ask(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """The answer to an envelope; of a kick, that it is shown. Who is told to wait, waits."""
        for _ in range(_RATE_TRIES):
            answer = await self._answer(kind, payload)
            if answer.get("kind") != "system/error":
                return answer
            said = answer.get("payload", {})
            if said.get("error") != Refusal.RATE_LIMITED:
                raise was_refused(str(said.get("error", "")), str(said.get("message", "")))
            await asyncio.sleep(min(float(said.get("retry_after_s", 0.1)), 1.0))
        raise LoadFailed(f"the gateway takes no {kind} now: too many envelopes came before it")

    async def _answer(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        await self._come_back()
        self._sent += 1
        ident = f"{self._name}-{self._sent}"
        waits: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._line.waiting[ident] = waits
        fields = {
            "protocol": PROTOCOL,
            "id": ident,
            "from": self.credentials.who,
            "kind": kind,
            "payload": payload,
        }
        self._line.say(text_frame(encode_json(fields)))
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await waits
        except TimeoutError as late:
            raise LoadFailed(f"the gateway did not answer a {kind} within {_ANSWER_S:.0f} s") from late


@asynccontextmanager
async def inviting(address: GatewayAddress, token: str, left: list[str]) -> AsyncIterator[Inviter]:
    """Somebody in the space; all whom it invites are removed at the end, also of what is cancelled.

    `left` gets the names of those who could not be.

    Raises:
        LoadFailed: one is not let in.
    """
    host = Inviter(address, Credentials("", token))
    await host.enter()
    try:
        yield host
    finally:
        removing = asyncio.ensure_future(host.dismiss())
        try:
            await asyncio.shield(removing)
        except asyncio.CancelledError:  # a second Ctrl-C does not leave somebody behind, either
            left += await removing
            raise
        else:
            left += removing.result()
        finally:
            await host.leave()


def _parsed(written: Any) -> list[Capability]:
    found = []
    for one in written if isinstance(written, list) else ():
        with suppress(InvalidCapability):
            found.append(Capability.parse(one))
    return found
