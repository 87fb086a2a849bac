"""A real mail server on this machine, and what it was handed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP

__all__ = ["Mailbox", "mail_server"]


@dataclass
class Mailbox:
    """Where the server puts what it takes."""

    port: int = 0
    mails: asyncio.Queue[tuple[list[str], EmailMessage]] = field(default_factory=asyncio.Queue)

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        await self.mails.put((envelope.rcpt_tos, mail))
        return "250 OK"

    async def next(self) -> tuple[list[str], EmailMessage]:
        async with asyncio.timeout(5):
            return await self.mails.get()


@asynccontextmanager
async def mail_server(**options: Any) -> AsyncIterator[Mailbox]:
    """A server that takes mail for anyone."""
    mailbox = Mailbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(mailbox, hostname="localhost", loop=loop, **options), "127.0.0.1", 0
    )
    async with server:
        mailbox.port = server.sockets[0].getsockname()[1]
        yield mailbox
