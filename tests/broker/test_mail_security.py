"""Mail over encrypted connections and with a password, to real servers with real certificates."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from support.subscribers import IMPATIENT, Broker, Mailbox, broker_in, found, until

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.channels import open_channels
from broker.delivery.deliveries import Deliveries
from broker.delivery.store import DeliveryState, open_deliveries
from broker.delivery.worker import DeliveryEventKind as Event
from broker.settings.config import Settings, SmtpSettings

USER, PASSWORD = "broker", "correct-horse-battery"
WRONG = "wrong-mule-accumulator"


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.delenv("XSCL_SMTP_PASSWORD", raising=False)
    with broker_in(tmp_path) as broker:
        yield broker


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Return an authority that this machine trusts, and no other."""
    bundle = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    return authority


def certified(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def authenticate(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
) -> AuthResult:
    right = LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=data == right, handled=False)


@contextlib.asynccontextmanager
async def guarded(
    kind: type[SMTP] = SMTP, *, implicit: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[Mailbox]:
    """Serve a mailbox; with `implicit`, all of it over TLS."""
    box, loop = Mailbox(), asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: kind(box, loop=loop, enable_SMTPUTF8=True, hostname="test", **options),
        "127.0.0.1",
        0,
        ssl=implicit,
    )
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()


def wants_password(context: ssl.SSLContext) -> dict[str, Any]:
    """Return the options of a server that takes mail after STARTTLS and a login only."""
    return {
        "tls_context": context,
        "require_starttls": True,
        "auth_required": True,
        "authenticator": authenticate,
    }


def mailing(
    broker: Broker, box: Mailbox, security: Literal["none", "starttls", "tls"], password: str = ""
) -> dict[str, Any]:
    """Return what delivers as the settings say, with the password in a file if there is one."""
    smtp = SmtpSettings("127.0.0.1", "broker@xscl.example", port=box.port, security=security)
    if password:
        kept = broker.directory / "secrets" / "smtp"
        kept.parent.mkdir()
        kept.write_text(password + "\n", encoding="utf-8")
        smtp = replace(smtp, username=USER, password_file=kept)
    return {
        "channels": open_channels(Settings(smtp=smtp), broker.registry, lambda _: "", lambda _: "")
    }


async def failure(broker: Broker, settings: dict[str, Any]) -> Outcome:
    """Return what came of the first attempt to deliver a match, which is to be tried again."""
    async with broker.delivering(**settings):
        broker.subscribe("ann@reader.example")
        broker.commit(found(1))
        await until(lambda: any(event.outcome for event in broker.events))
    event = next(event for event in broker.events if event.outcome)
    assert event.kind is Event.FAILED
    assert event.next_us is not None
    assert event.outcome is not None
    return event.outcome


async def test_starttls_and_a_password_deliver(broker: Broker, trusted: trustme.CA) -> None:
    async with (
        guarded(**wants_password(certified(trusted))) as box,
        broker.delivering(**mailing(broker, box, "starttls", PASSWORD)),
    ):
        broker.subscribe("ann@reader.example")
        broker.commit(found(1))
        (message,) = await box.wait_for(1)
    assert message["Subject"] == "Q1: Story 2"


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
@pytest.mark.parametrize("password", ["", PASSWORD], ids=["open", "password"])
async def test_tls_from_the_first_byte_delivers(
    broker: Broker, trusted: trustme.CA, password: str
) -> None:
    options: dict[str, Any] = {}
    if password:
        # The server does not see that what it reads has been deciphered before.
        options = {"auth_required": True, "auth_require_tls": False, "authenticator": authenticate}
    async with (
        guarded(implicit=certified(trusted), **options) as box,
        broker.delivering(**mailing(broker, box, "tls", password)),
    ):
        broker.subscribe("ann@reader.example")
        broker.commit(found(1))
        (message,) = await box.wait_for(1)
    assert message["Subject"] == "Q1: Story 2"


async def test_a_wrong_password_is_a_failed_attempt_that_says_so(
    broker: Broker, trusted: trustme.CA
) -> None:
    async with guarded(**wants_password(certified(trusted))) as box:
        outcome = await failure(broker, mailing(broker, box, "starttls", WRONG))
    assert (outcome.kind, outcome.status) == (OutcomeKind.FAILED, 535)
    assert "credentials invalid" in outcome.detail
    assert not box.raw


@pytest.mark.parametrize("wrong", [WRONG, "falsch-mäuse-größe"], ids=["ascii", "beyond"])
async def test_a_wrong_password_ends_as_a_dead_letter_and_is_told_nowhere(
    broker: Broker, trusted: trustme.CA, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    caplog.set_level(logging.DEBUG)
    async with (
        guarded(**wants_password(certified(trusted))) as box,
        broker.delivering(**mailing(broker, box, "starttls", wrong), policy=IMPATIENT),
    ):
        broker.subscribe("ann@reader.example")
        broker.commit(found(1))
        await until(lambda: any(event.kind is Event.DEAD for event in broker.events))
    db = open_deliveries(broker.directory / "deliveries.db")
    try:
        (dead,) = Deliveries(db).find(state=DeliveryState.DEAD)
        _, attempts = Deliveries(db).show(dead.id)
    finally:
        db.close()
    assert {(attempt.outcome, attempt.status) for attempt in attempts} == {("failed", 535)}
    # "mail." is the log of the server, which is in this process for the test only.
    logged = [r.getMessage() for r in caplog.records if not r.name.startswith("mail.")]
    told = "\n".join([repr(broker.events), *logged]).encode()
    files = [path for path in broker.directory.iterdir() if path.is_file()]
    told += b"".join(path.read_bytes() for path in files)
    assert b"credentials invalid" in told
    for secret in (wrong.encode(), base64.b64encode(wrong.encode()), _plain(wrong)):
        assert secret not in told


@pytest.mark.parametrize("answer", ["550 5.7.1 no", "554 5.7.0 no", "504 5.5.4 no"])
async def test_a_login_that_is_refused_with_any_code_costs_no_match(
    broker: Broker, trusted: trustme.CA, answer: str
) -> None:
    def refuse(*_: Any) -> AuthResult:
        return AuthResult(success=False, handled=False, message=answer)

    options = {**wants_password(certified(trusted)), "authenticator": refuse}
    async with guarded(**options) as box:
        outcome = await failure(broker, mailing(broker, box, "starttls", PASSWORD))
    assert f"{outcome.status} {outcome.detail}" == answer


async def test_a_starttls_that_is_refused_costs_no_match(broker: Broker) -> None:
    class Unable(SMTP):  # type: ignore[misc]
        async def smtp_STARTTLS(self, arg: str) -> None:  # noqa: N802
            await self.push("502 5.5.1 not today")

    async with guarded(Unable, tls_context=certified(trustme.CA())) as box:
        outcome = await failure(broker, mailing(broker, box, "starttls", PASSWORD))
    assert (outcome.status, outcome.detail) == (502, "5.5.1 not today")


def _plain(password: str) -> bytes:
    """Return a password as AUTH PLAIN sends it."""
    return base64.b64encode(f"\0{USER}\0{password}".encode())


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_certificate_of_an_unknown_authority_is_refused(
    broker: Broker, trusted: trustme.CA, security: Literal["starttls", "tls"]
) -> None:
    context = certified(trustme.CA())
    implicit, options = (context, {}) if security == "tls" else (None, wants_password(context))
    async with guarded(implicit=implicit, **options) as box:
        outcome = await failure(broker, mailing(broker, box, security, PASSWORD))
    assert "certificate verify failed" in outcome.detail
    assert not box.raw


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_certificate_of_another_host_is_refused(
    broker: Broker, trusted: trustme.CA, security: Literal["starttls", "tls"]
) -> None:
    context = certified(trusted, "mail.elsewhere.example")
    implicit, options = (context, {}) if security == "tls" else (None, wants_password(context))
    async with guarded(implicit=implicit, **options) as box:
        outcome = await failure(broker, mailing(broker, box, security, PASSWORD))
    assert "IP address mismatch" in outcome.detail
    assert not box.raw


async def test_nothing_is_told_to_a_server_without_the_starttls_that_is_asked_for(
    broker: Broker,
) -> None:
    tried: list[str] = []

    def listen(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> Any:
        tried.append(mechanism)
        return AuthResult(success=True)

    async with guarded(authenticator=listen, auth_require_tls=False) as box:
        outcome = await failure(broker, mailing(broker, box, "starttls", PASSWORD))
    assert "STARTTLS extension not supported" in outcome.detail
    assert not box.raw
    assert not tried
