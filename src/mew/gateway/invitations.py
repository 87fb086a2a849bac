"""Hands over what an invitation is answered with: a token, to who invited and by mail to who is invited."""

from typing import Literal

from msgspec import UNSET

from mew.protocol.codec import encode
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import InviteAck
from mew.space import Entry, Invite, Sent

from . import answers
from .intake import Intake
from .outbox import Outboxes
from .ports import Shell
from .websocket import text_frame

__all__ = ["Invitations"]


class Invitations:
    """Those of one space. Tokens that were made elsewhere are nothing to us."""

    def __init__(self, space: str, intake: Intake, outboxes: Outboxes, shell: Shell) -> None:
        self._space = space
        self._intake = intake
        self._outboxes = outboxes
        self._shell = shell

    def hand_over(self, entry: Entry, invite: Invite) -> None:
        """Tell the inviter, and send mail where that is asked for and can be done."""
        ack = self.ack(entry, invite)
        if ack is None:
            return  # another node made the token, and tells the inviter
        if invite.connection is not None:
            self._outboxes.to((invite.connection,), text_frame(encode(ack)))
        if invite.email is not None and self._shell.sends_mail():
            self._shell.invite_by_mail(invite.email, self._space, ack)

    def ack(self, entry: Entry, invite: Invite) -> Envelope | None:
        """What the inviter is told; None: another node does."""
        assert isinstance(entry.event, Sent), f"an invitation from {entry.event}"
        token = self._intake.token(entry.event)
        if token is None:
            return None
        made = InviteAck(
            status="created",
            participant_id=invite.participant,
            token=token,
            connection_url=self._shell.connection_url(self._space),
            email=UNSET if invite.email is None else self._mailing(),
        )
        return answers.invite_ack(entry.at, invite.envelope, made)

    def _mailing(self) -> Literal["sending", "not_configured"]:
        return "sending" if self._shell.sends_mail() else "not_configured"
