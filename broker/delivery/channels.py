"""The ways to reach subscribers that the settings allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.delivery.apprise import AppriseChannel
from broker.delivery.attempt import Channel, Notifier
from broker.delivery.chats.channel import ChatChannel
from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.webhook import WebhookChannel
from broker.registry.queries import Registry
from broker.registry.subscription import DestinationKind
from broker.settings.config import Settings, SmtpSettings
from broker.settings.reader import SettingsError
from feeds import networks

__all__ = ["notifier", "open_channels"]


def open_channels(
    settings: Settings,
    registry: Registry,
    unsubscribe_url: Callable[[str], str],
    alert_url: Callable[[str], str],
) -> dict[DestinationKind, Channel]:
    """Return a channel for each kind of destination; e-mail only where a mail server is set.

    `unsubscribe_url` returns the page on which a subscription is ended, `alert_url` the one on
    which a message is answered, or "".

    To be called, and each channel closed, in the event loop.
    """
    webhooks = WebhookChannel(
        allowed=networks(settings.allow_networks),
        allow_http=settings.webhooks.allow_http,
        timeout_s=settings.webhooks.timeout.total_seconds(),
        alert_url=alert_url,
    )
    channels: dict[DestinationKind, Channel] = {DestinationKind.WEBHOOK: webhooks}
    telegram_url = settings.webhooks.telegram_url
    for kind in filter(lambda each: each.is_chat, DestinationKind):
        channels[kind] = ChatChannel(kind, webhooks, alert_url=alert_url, telegram_url=telegram_url)
    sinks = SinkChannel(
        settings.tables or settings.data / "tables",
        allowed=networks(settings.allow_networks),
        timeout_s=settings.webhooks.timeout.total_seconds(),
        alert_url=alert_url,
    )
    channels.update(dict.fromkeys(filter(lambda each: each.is_sink, DestinationKind), sinks))
    if settings.smtp is not None:
        channels[DestinationKind.EMAIL] = _mail(settings.smtp, registry, unsubscribe_url, alert_url)
    if settings.apprise:
        channels[DestinationKind.APPRISE] = _apprise()
    return channels


def notifier(channels: Mapping[DestinationKind, Channel]) -> Notifier | None:
    """Return the way to tell the owners of subscriptions: by mail, where a mail server is set."""
    mail = channels.get(DestinationKind.EMAIL)
    return mail if isinstance(mail, MailChannel) else None


def _apprise() -> Channel:
    try:
        return AppriseChannel(Letters(Sender("")))
    except ImportError as error:
        raise SettingsError("apprise = true needs `pip install xscl-broker[apprise]`") from error


def _mail(
    smtp: SmtpSettings,
    registry: Registry,
    unsubscribe_url: Callable[[str], str],
    alert_url: Callable[[str], str],
) -> MailChannel:
    return MailChannel(
        Letters(Sender(smtp.sender), directory=smtp.templates),
        host=smtp.host,
        port=smtp.port,
        sender=smtp.sender,
        security=smtp.security,
        username=smtp.username,
        password=smtp.password(),
        unsubscribe_url=unsubscribe_url,
        alert_url=alert_url,
        is_suppressed=registry.suppressed.has,
    )
