"""What a message to a room says, before any service's markup.

A notice is lines of spans.  What is in them comes from feeds and is not to be trusted: it is cut,
one line each, without control characters, and only web addresses are links.  `fit` leaves out
whole lines from the end where a service has no room for all, and says how many matches those were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from broker.delivery.attempt import Attempt
from broker.delivery.letter import duration, is_web, plain
from broker.delivery.summary import Summary, SummaryPart, summarise
from broker.documents.document import render_time

__all__ = ["Line", "Notice", "TextSpan", "compose", "fit"]

_TITLE_MAX = 150
_HEADLINE_MAX = 200
_BYLINE_MAX = 120
_VALUES_MAX = 120
_LINK_MAX = 500
"""A longer link is left out: it would take the room of many titles."""

_PARTS_MAX = 8
"""Documents of one match that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A piece of a line: text that is not empty, which may lead somewhere."""

    text: str
    link: str = ""
    is_strong: bool = False


Line = tuple[TextSpan, ...]

_CUT: Line = (TextSpan("…"),)


@dataclass(frozen=True, slots=True)
class Notice:
    """A message: its title, what stands above its matches, their lines, and where it is answered.

    `matches_name` is what further matches are called.
    """

    title: str
    remarks: tuple[str, ...]
    matches: tuple[tuple[Line, ...], ...]
    matches_name: str
    answer: TextSpan | None


def compose(attempt: Attempt, alert_url: str = "") -> Notice:
    """Return what to say of a delivery; `alert_url` is the page on which it is answered, or ""."""
    options = attempt.subscription.options
    summaries = [summarise(match) for match in attempt.matches]
    escalates = bool(options.escalate) or attempt.is_escalation
    label = "Acknowledge, or not now" if escalates else "Not now"
    return Notice(
        title=_title(attempt, summaries),
        remarks=tuple(_remarks(attempt)),
        matches=tuple(_lines(summary) for summary in summaries),
        matches_name="of the same key" if options.key else "matches",
        answer=TextSpan(label, alert_url) if alert_url else None,
    )


def fit(
    notice: Notice, room: int, size: Callable[[Line], int], *, has_title: bool = True
) -> list[Line]:
    """Return the lines of a notice that are at most `room` in all, by the `size` of each.

    Title, remarks and answer are always among them; what more there is, is counted in a line.
    """
    head: list[Line] = [(TextSpan(notice.title, is_strong=True),)] if has_title else []
    head += [(TextSpan(remark),) for remark in notice.remarks]
    foot: list[Line] = [(notice.answer,)] if notice.answer else []
    room -= sum(map(size, head + foot)) + size(_CUT) + size(_more(len(notice.matches), notice))
    body: list[Line] = []
    shown = 0
    for lines in notice.matches:
        block = [(), *lines] if len(notice.matches) > 1 else list(lines)
        taken = _beginning(block, room, size)
        if len(taken) < len(block) and shown:
            break
        body += taken
        room -= sum(map(size, taken))
        shown += 1
        if len(taken) < len(block):
            body.append(_CUT)
            break
    if shown < len(notice.matches):
        body.append(_more(len(notice.matches) - shown, notice))
    return head + body + foot


def _beginning(lines: list[Line], room: int, size: Callable[[Line], int]) -> list[Line]:
    taken: list[Line] = []
    for line in lines:
        room -= size(line)
        if room < 0:
            break
        taken.append(line)
    return taken


def _more(count: int, notice: Notice) -> Line:
    name = "match" if count == 1 and notice.matches_name == "matches" else notice.matches_name
    return (TextSpan(f"and {count} more {name}"),)


def _title(attempt: Attempt, summaries: list[Summary]) -> str:
    text = f"{attempt.subscription.query}: {summaries[0].headline}"
    more = f" and {len(summaries) - 1} more" if len(summaries) > 1 else ""
    before = "Sample: " if attempt.is_sample else ""
    before = f"Not acknowledged: {before}" if attempt.is_escalation else before
    return before + _text(text, _TITLE_MAX) + more


def _remarks(attempt: Attempt) -> list[str]:
    said = []
    if attempt.is_sample:
        said.append("This is a sample of what you will get: nothing has been found.")
    if attempt.withheld == 1:
        said.append("Before this, 1 message of the same key was not sent.")
    elif attempt.withheld:
        said.append(f"Before this, {attempt.withheld} messages of the same key were not sent.")
    return said


def _lines(summary: Summary) -> tuple[Line, ...]:
    lines = [_part(part) for part in summary.parts[:_PARTS_MAX]]
    if not lines:
        lines.append((TextSpan(_text(summary.headline, _HEADLINE_MAX)),))
    if len(summary.parts) > _PARTS_MAX:
        lines.append((TextSpan(f"and {len(summary.parts) - _PARTS_MAX} more documents"),))
    joined = _text(", ".join(value for _, value in summary.joined), _VALUES_MAX)
    said = [f"joined by {joined}"] if joined else []
    if summary.apart:
        said.append(f"{duration(summary.apart)} apart")
    if said:
        lines.append((TextSpan(", ".join(said)),))
    return tuple(lines)


def _part(part: SummaryPart) -> Line:
    said = ", ".join(f"{name}: {value}" for name, value in part.fields)
    headline = next(
        (text for text in (part.title, said, plain(part.html), part.link) if text), "a document"
    )
    link = _link(part.link)
    byline = " · ".join(
        text for text in (_text(part.source, 60), _text(part.author, 60), _time(part)) if text
    )
    line = (TextSpan("• "), TextSpan(_text(headline, _HEADLINE_MAX) or "a document", link))
    return (*line, TextSpan(" — " + _text(byline, _BYLINE_MAX))) if byline else line


def _time(part: SummaryPart) -> str:
    if part.time_us is None:
        return ""
    return datetime.fromisoformat(render_time(part.time_us)).strftime("%-d %B %Y, %H:%M UTC")


def _link(given: str) -> str:
    """Return a link that every service takes as one, else ""."""
    link = given.strip()
    if (
        len(link) > _LINK_MAX
        or not is_web(link)
        or not link.isprintable()
        or set(' <>"`\\') & {*link}
    ):
        return ""
    try:
        return link if urlsplit(link).hostname else ""
    except ValueError:
        return ""


def _text(text: str, length_max: int) -> str:
    r"""Return text on one line, without what is not seen, shortened.

    >>> _text("one\n\u202etwo \x1b[31m three", 12)
    'one two [31…'
    """
    # The joiner holds together what is one emoji; it changes no order and no width by itself.
    seen = "".join(c if c.isprintable() or c == "\u200d" else " " for c in text)
    line = " ".join(seen.split())
    return line if len(line) <= length_max else line[: length_max - 1] + "…"
