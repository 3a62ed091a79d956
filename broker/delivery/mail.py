"""Hand matches over by SMTP."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from email.message import EmailMessage
from typing import Literal

import aiosmtplib

from broker.delivery.attempt import Attempt, Outcome, OutcomeKind
from broker.delivery.letter import Letters
from broker.registry.subscription import Destination

__all__ = ["MailChannel", "Security"]

Security = Literal["none", "starttls", "tls"]

_NO_SUCH_MAILBOX = frozenset({550, 551, 553})


class _NotLetInError(Exception):
    """The server refused the connection, STARTTLS or the login: that is about no message."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


class MailChannel:
    """Sends over a few kept connections to one mail server.

    `unsubscribe_url` returns the address of a subscription's one-click page, `alert_url` that of
    the page on which a message is answered, or "";
    `is_suppressed` says which addresses must not be written to.
    """

    def __init__(
        self,
        letters: Letters,
        *,
        host: str,
        sender: str,
        port: int = 25,
        security: Security = "none",
        username: str | None = None,
        password: str | None = None,
        timeout_s: float = 30.0,
        connections_max: int = 4,
        unsubscribe_url: Callable[[str], str] = lambda subscription_id: "",
        alert_url: Callable[[str], str] = lambda delivery_id: "",
        is_suppressed: Callable[[str], bool] = lambda address: False,
    ) -> None:
        self._letters = letters
        self._sender = sender
        self._server = f"{host}:{port}"
        self._unsubscribe_url = unsubscribe_url
        self._alert_url = alert_url
        self._is_suppressed = is_suppressed
        self._room = asyncio.Semaphore(connections_max)
        self._idle: list[aiosmtplib.SMTP] = []

        def new() -> aiosmtplib.SMTP:
            return aiosmtplib.SMTP(
                hostname=host,
                port=port,
                timeout=timeout_s,
                use_tls=security == "tls",
                start_tls=security == "starttls",
                username=username,
                password=password,
            )

        self._new = new

    async def send(self, attempt: Attempt) -> Outcome:
        """Mail the matches once; what goes wrong is an outcome, never an exception."""
        address = attempt.subscription.destination.address
        if self._is_suppressed(address):
            return Outcome(OutcomeKind.GONE, detail="the address is on the suppression list")
        alert_url = "" if attempt.is_sample else self._alert_url(attempt.delivery_id)
        is_subscriber = not attempt.is_escalation
        unsubscribe_url = self._unsubscribe_url(attempt.subscription.id) if is_subscriber else ""
        message = self._letters.write(attempt, unsubscribe_url, alert_url)
        began = time.perf_counter_ns()
        outcome = await self._send(message, address)
        elapsed_us = (time.perf_counter_ns() - began) // 1_000
        return Outcome(outcome.kind, outcome.status, outcome.detail, elapsed_us=elapsed_us)

    async def refusal(self, destination: Destination) -> str | None:
        """Return why an address is not written to."""
        if self._is_suppressed(destination.address):
            return (
                f"{destination.address} is on the suppression list: mails to it have bounced"
                " (`GET /v1/suppressed` says why, and `DELETE` takes it off)"
            )
        return None

    async def notify(self, address: str, subject: str, text: str) -> Outcome:
        """Mail a message of the broker's own, once."""
        try:
            message = self._letters.notice(address, subject, text)
        except ValueError as error:
            return Outcome(OutcomeKind.REFUSED, detail=f"{address!r} is no address: {error}")
        return await self._send(message, address)

    async def close(self) -> None:
        """Take leave of the mail server."""
        while self._idle:
            smtp = self._idle.pop()
            try:
                await smtp.quit()
            except (aiosmtplib.SMTPException, OSError):
                smtp.close()

    async def _send(self, message: EmailMessage, address: str) -> Outcome:
        try:
            async with self._connection() as smtp:
                _, answer = await smtp.send_message(
                    message, sender=self._sender, recipients=[address]
                )
        except _NotLetInError as error:
            outcome = judge(error.code, error.text, is_about_recipient=False)
            if outcome.kind is OutcomeKind.REFUSED:
                return replace(outcome, kind=OutcomeKind.FAILED)
            return outcome
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = error.recipients[0]
            return judge(refused.code, refused.message, is_about_recipient=True)
        except aiosmtplib.SMTPResponseException as error:
            return judge(error.code, error.message, is_about_recipient=False)
        except aiosmtplib.SMTPNotSupported:
            detail = "the mail server takes no addresses beyond ASCII (SMTPUTF8)"
            return Outcome(OutcomeKind.REFUSED, detail=detail)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            # Whether a message was accepted before the connection broke cannot be known; it is
            # sent again under its Message-ID.
            return Outcome(OutcomeKind.THROTTLED, detail=self._reason(error))
        return Outcome(OutcomeKind.DELIVERED, 250, answer)

    def _reason(self, error: Exception) -> str:
        """Return why a server did not answer, in words where it could not be reached at all."""
        cause = error.__cause__ if isinstance(error, aiosmtplib.SMTPConnectError) else None
        said: str | None = None
        if isinstance(cause, socket.gaierror):
            said = cause.strerror
        elif isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):
            said = os.strerror(cause.errno or 0) if cause.errno in errno.errorcode else None
        if said:
            return f"the mail server {self._server} cannot be reached: {said}"
        return f"{type(error).__name__}: {error}"

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[aiosmtplib.SMTP]:
        """Lend a connection; after a failure it is not used again."""
        async with self._room:
            smtp = await self._connected()
            try:
                yield smtp
            except BaseException:
                smtp.close()
                raise
            self._idle.append(smtp)

    async def _connected(self) -> aiosmtplib.SMTP:
        while self._idle:
            smtp = self._idle.pop()
            try:
                # Servers end idle connections; a refused NOOP costs less than a failed delivery.
                await smtp.noop()
            except (aiosmtplib.SMTPException, OSError):
                smtp.close()
            else:
                return smtp
        smtp = self._new()
        try:
            await smtp.connect()
        except aiosmtplib.SMTPResponseException as error:
            raise _NotLetInError(error.code, error.message) from error
        return smtp


def judge(code: int, text: str, *, is_about_recipient: bool) -> Outcome:
    """Return what a server's refusal means.

    4xx is for now.  5xx about the recipient is for ever, if it says that there is no such
    mailbox; 5xx about the message ends this delivery only.
    """
    if code == 421 or code in (450, 451, 452):
        return Outcome(OutcomeKind.THROTTLED, code, text)
    if code < 500:
        return Outcome(OutcomeKind.FAILED, code, text)
    if is_about_recipient and code in _NO_SUCH_MAILBOX and not _is_policy(text):
        return Outcome(OutcomeKind.GONE, code, text)
    if code in (530, 534, 535, 538):
        # Our own settings are wrong: the operator mends them and nothing is lost.
        return Outcome(OutcomeKind.FAILED, code, text)
    return Outcome(OutcomeKind.REFUSED, code, text)


def _is_policy(text: str) -> bool:
    """Return whether an enhanced code (RFC 3463) says policy or authentication: 5.7.x."""
    return text.startswith("5.7.")
