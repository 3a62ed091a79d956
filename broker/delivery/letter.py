"""A delivery as an e-mail: what is in it depends on the matches and the subscription alone.

A repeated attempt gives the same message under the same Message-ID, so that a mailbox that got
it twice can show it once.  Everything from a feed is text for a template or cleaned HTML; what
goes in a header is one line.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.headerregistry import HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime, formataddr, make_msgid
from hashlib import blake2b
from pathlib import Path

import jinja2
import nh3
from markupsafe import Markup

from broker.delivery.attempt import Attempt
from broker.delivery.summary import SummaryPart, summarise
from broker.documents.document import render_time

__all__ = ["Letters", "Sender", "duration", "is_web", "plain"]

TEMPLATES = Path(__file__).parent / "templates"

_SUBJECT_MAX = 150
_TEXT_MAX = 1_200
"""Characters of an item's own text; an article is read where it was published."""

_TAGS = {"a", "b", "blockquote", "br", "code", "em", "i", "li", "ol", "p", "pre", "strong", "ul"}
# No images: they would tell the publisher who reads, and when.
_CONTROLS = re.compile(r"[\s\x00-\x1f\x7f\u2028\u2029]+")


class _Whole(UnstructuredHeader):
    """A header on one line: a URL or an id, in which nothing may be encoded.

    Python folds at 78 characters, and makes encoded words of what it cannot fold: no mailbox
    provider looks for a URL in these.  The longest URL leaves room below 998 octets, the most that
    a line may have (RFC 5322): `broker.settings.config.PUBLIC_URL_MAX`.
    """

    def fold(self, *, policy: Policy) -> str:
        """Return the header as it is sent."""
        return f"{self.name}: {self}{policy.linesep}"  # type: ignore[attr-defined]


_HEADERS = HeaderRegistry()
for _name in ("list-unsubscribe", "list-id", "in-reply-to", "references", "x-xscl-delivery"):
    _HEADERS.map_to_type(_name, _Whole)  # type: ignore[arg-type]  # a mixin: it adds BaseHeader

_POLICY = SMTP.clone(header_factory=_HEADERS)


@dataclass(frozen=True, slots=True)
class Sender:
    """Who writes."""

    address: str
    name: str = "XSCL"

    @property
    def domain(self) -> str:
        """The domain of message ids."""
        return self.address.rpartition("@")[2] or "localhost"


class Letters:
    """Writes e-mails from templates.

    Templates of the same name in `directory` stand before ours: `mail.txt.j2`, `mail.html.j2`,
    `mail.subject.j2`.
    """

    def __init__(self, sender: Sender, *, directory: Path | None = None) -> None:
        self._sender = sender
        paths = [path for path in (directory, TEMPLATES) if path is not None]
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(paths),
            autoescape=jinja2.select_autoescape(["html.j2"], default=False),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            byline=_byline, plain=plain, clean=_clean, web=is_web, duration=duration
        )

    def write(
        self, attempt: Attempt, unsubscribe_url: str = "", alert_url: str = ""
    ) -> EmailMessage:
        """Return the message for a delivery."""
        facts = self._facts(attempt, unsubscribe_url, alert_url)
        message = EmailMessage(policy=_POLICY)
        message["From"] = formataddr((self._sender.name, self._sender.address))
        message["To"] = attempt.subscription.destination.address
        message["Subject"] = str(facts["subject"])
        committed_us = attempt.matches[-1].committed_us
        message["Date"] = format_datetime(datetime.fromisoformat(render_time(committed_us)))
        self._identify(message, attempt)
        if unsubscribe_url:
            message["List-Unsubscribe"] = f"<{unsubscribe_url}>"
            if unsubscribe_url.startswith("https://"):  # RFC 8058 knows no other
                message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        message.set_content(self._text(facts))
        message.add_alternative(self._render("mail.html.j2", facts), subtype="html")
        return message

    def text(self, attempt: Attempt) -> tuple[str, str]:
        """Return the subject and the text for a delivery that is not by mail."""
        facts = self._facts(attempt)
        return str(facts["subject"]), self._text(facts)

    def _facts(
        self, attempt: Attempt, unsubscribe_url: str = "", alert_url: str = ""
    ) -> dict[str, object]:
        facts: dict[str, object] = {
            "query": attempt.subscription.query,
            "address": attempt.subscription.destination.shown,
            "matches": [summarise(match) for match in attempt.matches],
            "unsubscribe_url": unsubscribe_url,
            "alert_url": alert_url,
            "is_sample": attempt.is_sample,
            "withheld": attempt.withheld,
            "is_escalation": attempt.is_escalation,
            "escalates": bool(attempt.subscription.options.escalate) or attempt.is_escalation,
        }
        return {**facts, "subject": self._subject(facts)}

    def notice(self, address: str, subject: str, text: str) -> EmailMessage:
        """Return a message of the broker's own."""
        message = EmailMessage(policy=_POLICY)
        message["From"] = formataddr((self._sender.name, self._sender.address))
        message["To"] = address
        message["Subject"] = _one_line(subject)
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = make_msgid(domain=self._sender.domain)
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        return message

    def _identify(self, message: EmailMessage, attempt: Attempt) -> None:
        domain, subscription = self._sender.domain, attempt.subscription
        message["Message-ID"] = f"<{attempt.delivery_id}@{domain}>"
        # All mails of a subscription answer one that was never sent: clients show them together.
        thread = f"<{subscription.id}.thread@{domain}>"
        message["In-Reply-To"] = thread
        message["References"] = thread
        label = blake2b(subscription.query.encode(), digest_size=8).hexdigest()
        message["List-Id"] = f"<{label}.{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message["X-XSCL-Query"] = _one_line(subscription.query)
        message["X-XSCL-Delivery"] = attempt.delivery_id

    def _subject(self, facts: dict[str, object]) -> str:
        text = _one_line(self._render("mail.subject.j2", facts))
        text = f"Sample: {text}" if facts["is_sample"] else text
        text = f"Not acknowledged: {text}" if facts["is_escalation"] else text
        return text if len(text) <= _SUBJECT_MAX else text[: _SUBJECT_MAX - 1] + "…"

    def _text(self, facts: dict[str, object]) -> str:
        text = self._render("mail.txt.j2", facts)
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"

    def _render(self, name: str, facts: dict[str, object]) -> str:
        return self._templates.get_template(name).render(facts)


def _one_line(text: str) -> str:
    return _CONTROLS.sub(" ", text).strip()


def _byline(part: SummaryPart) -> str:
    time = ""
    if part.time_us is not None:
        time = datetime.fromisoformat(render_time(part.time_us)).strftime("%-d %B %Y, %H:%M UTC")
    return " · ".join(text for text in (part.source, part.author, time) if text)


def plain(markup: str) -> str:
    """Return the text of HTML, shortened.

    >>> plain("<p>One &amp; <b>two</b></p><p>three<script>x</script></p>")
    'One & two three'
    """
    spaced = re.sub(r"(?i)<(?:/p|/li|/h\d|/div|br)\b[^>]*>", r"\g<0> ", markup)
    text = _one_line(html.unescape(nh3.clean(spaced, tags=set())))
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1].rstrip() + "…"


def _clean(markup: str) -> Markup:
    """Return HTML with nothing in it but text, paragraphs, lists and links."""
    text = plain(markup)
    if len(markup) > 2 * _TEXT_MAX or "<" not in markup:
        return Markup(html.escape(text))
    cleaned = nh3.clean(
        markup,
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(cleaned)


def is_web(link: str) -> bool:
    """Return whether a link may be one that people click."""
    return link.lower().startswith(("http://", "https://"))


def duration(apart: timedelta) -> str:
    """Return a length of time as people say it, to two units.

    >>> duration(timedelta(days=1, hours=2, minutes=3)), duration(timedelta(milliseconds=3))
    ('1 day 2 hours', 'less than a second')
    """
    seconds = int(apart.total_seconds())
    said = []
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            said.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(said[:2]) or "less than a second"
