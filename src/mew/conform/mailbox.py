"""A mail server for the gateway under test to send to (§3.6.4): it takes every letter and keeps it."""

import asyncio
from email import message_from_bytes, policy
from email.message import EmailMessage
from types import TracebackType
from typing import Any

from .outcome import NotOffered, Violation

__all__ = ["Mailbox"]


class Mailbox:
    """Listens at an address like 127.0.0.1:2525, in plain SMTP. An async context."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._timeout_s = timeout_s
        self._letters: list[tuple[str, EmailMessage]] = []
        self._news = asyncio.Event()
        self._server: asyncio.Server

    async def __aenter__(self) -> "Mailbox":
        """Begin to listen.

        Raises:
            NotOffered: there one cannot listen.
        """
        try:
            self._server = await asyncio.start_server(self._serve, self._host, int(self._port))
        except (OSError, ValueError, OverflowError) as error:
            raise NotOffered(f"no mail can be taken at {self._host}:{self._port}: {error}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def letter(self, to: str) -> EmailMessage:
        """The first letter to this address, waited for.

        Raises:
            Violation: none came.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    for address, letter in self._letters:
                        if address == to:
                            return letter
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise Violation(
                f"expected that a mail to {to} is sent; none came within {self._timeout_s:g} s"
            ) from None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receivers: list[str] = []
        try:
            await _say(writer, "220 mew conform")
            while line := await reader.readline():
                command = line.decode(errors="replace").strip()
                match command.upper().split(" ")[0].split(":")[0]:
                    case "QUIT":
                        await _say(writer, "221 bye")
                        return
                    case "RCPT":
                        receivers.append(command.partition("<")[2].partition(">")[0])
                        await _say(writer, "250 ok")
                    case "DATA":
                        await _say(writer, "354 go on")
                        self._keep(receivers, await reader.readuntil(b"\r\n.\r\n"))
                        receivers = []
                        await _say(writer, "250 ok")
                    case "HELO" | "EHLO" | "MAIL" | "RSET" | "NOOP":
                        await _say(writer, "250 ok")
                    case _:
                        await _say(writer, "502 not here")
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it went, or writes more than an invitation may have
        finally:
            writer.close()

    def _keep(self, receivers: list[str], raw: bytes) -> None:
        letter: Any = message_from_bytes(raw.replace(b"\r\n..", b"\r\n."), policy=policy.default)
        self._letters += [(receiver, letter) for receiver in receivers]
        self._news.set()


async def _say(writer: asyncio.StreamWriter, line: str) -> None:
    writer.write(f"{line}\r\n".encode())
    await writer.drain()
