"""Invitations by e-mail (§3.6.4), through a real mail server on this machine."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from msgspec import Raw
from tests.certificates import make_certificate

from mew.gateway import mail
from mew.gateway.config.settings import SmtpConfig, SmtpSecurity
from mew.protocol.envelope import GATEWAY, PROTOCOL, Envelope
from mew.protocol.json import encode_json
from mew.protocol.kinds import InviteAck, Kind

TOKEN = "the-token-of-dan"


def ack() -> Envelope:
    url = "wss://mew.example/ws?space=demo"
    made = InviteAck(status="created", participant_id="dan", token=TOKEN, connection_url=url)
    return Envelope(
        protocol=PROTOCOL,
        id="ack",
        sender=GATEWAY,
        to=("ann",),
        kind=Kind.INVITE_ACK,
        correlation_id=("i1",),
        payload=Raw(encode_json(made)),
    )


@dataclass
class Mailbox:
    """Where the server puts what it takes."""

    port: int = 0
    reply: str = "250 OK"
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append((envelope.rcpt_tos, message))
        return self.reply


@asynccontextmanager
async def mail_server(*, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Mailbox]:
    mailbox = Mailbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(mailbox, hostname="localhost", loop=loop, **options), "127.0.0.1", 0, ssl=tls
    )
    async with server:
        mailbox.port = server.sockets[0].getsockname()[1]
        yield mailbox


def smtp(port: int, **more: Any) -> SmtpConfig:
    settings: dict[str, Any] = {"sender": "Mew <mew@example.org>", "security": SmtpSecurity.NONE, **more}
    return SmtpConfig(host="127.0.0.1", port=port, **settings)


def invitation(config: SmtpConfig, to: str = "dan@example.org") -> EmailMessage:
    return mail.invitation(config, to, "demo", "ann", ack())


async def test_an_invitation_says_who_invites_where_and_with_what() -> None:
    async with mail_server() as mailbox:
        config = smtp(mailbox.port)
        await mail.send(config, invitation(config))
    ((recipients, message),) = mailbox.mails
    assert recipients == ["dan@example.org"]
    assert message["From"] == "Mew <mew@example.org>"
    assert message["To"] == "dan@example.org"
    assert "demo" in message["Subject"]
    text = message.get_content()
    assert "ann invites you" in text
    assert "wss://mew.example/ws?space=demo" in text
    assert f"Authorization: Bearer {TOKEN}" in text


def test_the_subject_does_not_hold_the_token() -> None:
    assert TOKEN not in invitation(smtp(25))["Subject"]


async def test_a_server_that_refuses_is_logged_without_what_was_in_the_mail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with mail_server() as mailbox:
        mailbox.reply = "554 we want no mail"
        config = smtp(mailbox.port)
        await mail.send(config, invitation(config))
    assert "invitation not sent" in caplog.text
    assert_silent_about_secrets(caplog)


async def test_a_server_that_is_not_there_is_logged_and_nothing_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = smtp(port)
    await mail.send(config, invitation(config))
    assert "invitation not sent" in caplog.text
    assert_silent_about_secrets(caplog)


async def test_a_server_that_offers_no_encryption_gets_no_mail_where_it_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with mail_server() as mailbox:
        config = smtp(mailbox.port, security=SmtpSecurity.STARTTLS)
        await mail.send(config, invitation(config))
    assert mailbox.mails == []
    assert "invitation not sent" in caplog.text


async def test_a_certificate_we_cannot_check_gets_no_mail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with mail_server(tls_context=certified(tmp_path)) as mailbox:
        config = smtp(mailbox.port, security=SmtpSecurity.STARTTLS)
        await mail.send(config, invitation(config))
    assert mailbox.mails == []
    assert "invitation not sent" in caplog.text


@pytest.mark.parametrize("security", [SmtpSecurity.STARTTLS, SmtpSecurity.TLS])
async def test_encrypted_and_with_a_password(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    security: SmtpSecurity,
) -> None:
    context = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    logins: list[tuple[bytes, bytes]] = []

    def authenticate(server: object, session: object, envelope: object, kind: str, said: Any) -> AuthResult:
        logins.append((said.login, said.password))
        return AuthResult(success=True)

    if security is SmtpSecurity.TLS:
        served = mail_server(tls=context, authenticator=authenticate, auth_require_tls=False)
    else:
        served = mail_server(tls_context=context, authenticator=authenticate, require_starttls=True)
    async with served as mailbox:
        config = smtp(mailbox.port, security=security, username="mew", password="a-password")
        await mail.send(config, invitation(config))
    assert logins == [(b"mew", b"a-password")]
    assert len(mailbox.mails) == 1
    assert_silent_about_secrets(caplog, "a-password")


async def test_a_wrong_password_is_logged_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))

    def refuse(*said: object) -> AuthResult:
        return AuthResult(success=False, handled=False)

    async with mail_server(tls_context=context, authenticator=refuse, require_starttls=True) as mailbox:
        config = smtp(mailbox.port, security=SmtpSecurity.STARTTLS, username="mew", password="a-password")
        await mail.send(config, invitation(config))
    assert mailbox.mails == []
    assert "invitation not sent" in caplog.text
    assert_silent_about_secrets(caplog, "a-password")


@asynccontextmanager
async def posting() -> AsyncIterator[mail.InvitationMailer]:
    post = mail.InvitationMailer()
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(post.run())
        yield post
        sending.cancel()


async def test_one_that_cannot_be_written_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with mail_server() as mailbox, posting() as post:
        config = smtp(mailbox.port)
        post.invite(config, "dan@example.org\nBcc: all@example.org", "demo", ack())
        post.invite(config, "dan@example.org", "demo", ack())
        async with asyncio.timeout(5):
            await post.emptied()
    assert [recipients for recipients, _ in mailbox.mails] == [["dan@example.org"]]
    assert len([record for record in caplog.records if record.message == "invitation not sent"]) == 1
    assert_silent_about_secrets(caplog)


async def test_only_so_many_wait_for_a_server_that_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        config = smtp(mute.getsockname()[1])
        async with posting() as post:
            for _ in range(2 * mail.InvitationMailer.WAITING_MAX):
                post.invite(config, "dan@example.org", "demo", ack())
            assert post.unsent == mail.InvitationMailer.WAITING_MAX
            await asyncio.sleep(0)
    assert [record.message for record in caplog.records] == ["invitations not sent: the queue is full"]
    assert_silent_about_secrets(caplog)


def assert_silent_about_secrets(caplog: pytest.LogCaptureFixture, *more: str) -> None:
    ours = [record for record in caplog.records if record.name.startswith("mew.")]
    said = "\n".join(logging.Formatter().format(record) + str(vars(record)) for record in ours)
    for secret in (TOKEN, "dan@example.org", *more):
        assert secret not in said


def certified(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate of its own for 127.0.0.1, kept in `cert.pem`."""
    make_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
