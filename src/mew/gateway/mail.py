"""Invitations by e-mail (§3.6.4), where SMTP is configured."""

import logging
from email.message import EmailMessage
from typing import Final

import aiosmtplib
import msgspec

from mew.protocol.codec import decode_payload
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import InviteAck

from .settings import SmtpConfig, SmtpSecurity

__all__ = ["invitation", "invite", "send"]

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30


async def invite(smtp: SmtpConfig, to: str, space: str, ack: Envelope) -> None:
    """Send what the inviter was answered to the one invited."""
    await send(smtp, invitation(smtp, to, space, ack.to[0], ack))


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
        "The token is yours alone: whoever has it speaks in your name.\n"
    )
    return message


async def send(smtp: SmtpConfig, message: EmailMessage) -> None:
    """Deliver to the mail server; what goes wrong is logged, without what was in it."""
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
    except (aiosmtplib.SMTPException, OSError, msgspec.MsgspecError) as error:
        _log.warning("invitation not sent", extra={"smtp": smtp.host, "error": type(error).__name__})
    else:
        _log.info("invitation sent", extra={"smtp": smtp.host})
