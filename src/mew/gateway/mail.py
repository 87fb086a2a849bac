"""Invitations by e-mail (§3.6.4), if SMTP is configured."""

import asyncio
import logging
from email.message import EmailMessage
from typing import Final

import aiosmtplib

from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_payload
from mew.protocol.kinds import InviteAck

from .config.settings import SmtpConfig, SmtpSecurity

__all__ = ["InvitationMailer", "invitation", "send"]

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30


class InvitationMailer:
    """Send invitations one at a time from a bounded queue."""

    WAITING_MAX: Final = 256

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[tuple[SmtpConfig, str, str, Envelope]] = asyncio.Queue(self.WAITING_MAX)
        self._unsent = 0
        self._is_full = False

    @property
    def unsent(self) -> int:
        """Number of invitations queued or being sent."""
        return self._unsent

    def invite(self, smtp: SmtpConfig, to: str, space: str, ack: Envelope) -> None:
        """Queue the invitation e-mail and return at once."""
        try:
            self._waiting.put_nowait((smtp, to, space, ack))
        except asyncio.QueueFull:
            if not self._is_full:  # once, not for each in a flood of them
                _log.warning("invitations not sent: the queue is full", extra={"waiting": self.WAITING_MAX})
            self._is_full = True
        else:
            self._unsent += 1
            self._is_full = False

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            smtp, to, space, ack = await self._waiting.get()
            try:
                await send(smtp, invitation(smtp, to, space, ack.to[0], ack))
            except Exception as error:  # one that cannot be written does not hold up the others
                _log.error("invitation not sent", extra={"smtp": smtp.host, "error": type(error).__name__})
            self._unsent -= 1
            self._waiting.task_done()

    async def emptied(self) -> None:
        """Wait until the queue is empty."""
        await self._waiting.join()


def invitation(smtp: SmtpConfig, to: str, space: str, inviter: str, ack: Envelope) -> EmailMessage:
    made = decode_payload(ack.payload, InviteAck)
    message = EmailMessage()
    message["From"] = smtp.sender
    message["To"] = to
    message["Subject"] = f"You are invited to the space {space}"
    message.set_content(
        f"{inviter} invites you to the space {space!r} as {made.participant_id!r}.\n\n"
        f"Connect to   {made.connection_url}\n"
        f"with header  Authorization: Bearer {made.token}\n\n"
        "Keep the token secret: anyone who has it can act as you.\n"
    )
    return message


async def send(smtp: SmtpConfig, message: EmailMessage) -> None:
    """Deliver to the mail server; log a failure without the message."""
    try:
        await aiosmtplib.send(
            message,
            hostname=smtp.host,
            port=smtp.port,
            username=smtp.username,
            password=smtp.password,
            use_tls=smtp.security is SmtpSecurity.TLS,
            start_tls=smtp.security is SmtpSecurity.STARTTLS,
            timeout=_TIMEOUT_S,
        )
    except (aiosmtplib.SMTPException, OSError) as error:
        _log.warning("invitation not sent", extra={"smtp": smtp.host, "error": type(error).__name__})
    else:
        _log.info("invitation sent", extra={"smtp": smtp.host})
