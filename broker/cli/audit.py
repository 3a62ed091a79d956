"""`xscl audit`: who changed what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from broker.cli.connection import BrokerConnection, asked_or_done
from broker.cli.terminal import emit_rows, format_option, limit_option, message

__all__ = ["audit"]

_COLUMNS = ["number", "time", "by", "address", "action", "subject", "outcome", "detail"]


@click.command()
@click.option("--by", metavar="NAME", help="Only what was done with the token NAME.")
@click.option("--subject", metavar="ID", help="Only what was done to this query, feed, token, ...")
@limit_option
@format_option
@click.pass_context
def audit(
    context: click.Context, by: str | None, subject: str | None, limit: int, output: str
) -> None:
    """List who changed what, and when, newest first.

    A token with the scope admin is wanted.  Where no broker runs, the trail in the data directory
    of the settings is read.

    \b
    Examples:
      xscl audit
      xscl audit --by ann --format csv
      xscl audit --subject same-story -n 5
    """

    def ask(connection: BrokerConnection) -> list[dict[str, Any]]:
        found = connection.rows("audit", turned_by="before", limit=limit, by=by, subject=subject)
        return list(found)

    def work(data: Path) -> list[dict[str, Any]]:
        from broker.api.audit import rendered
        from broker.registry.audit import AUDIT_FILE, AuditTrail

        if not (data / AUDIT_FILE).exists():
            return []
        trail = AuditTrail(data / AUDIT_FILE)
        try:
            return [rendered(each) for each in trail.entries(who=by, subject=subject, limit=limit)]
        finally:
            trail.close()

    rows, place = asked_or_done(context, ask, work)
    if output != "json":
        rows = [{**row, "detail": _text(row["detail"])} for row in rows]
    emit_rows(rows, _COLUMNS, output)
    if not rows and output == "table":
        message(f"nothing of that is in the audit trail of {place}")


def _text(detail: dict[str, Any]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in detail.items() if value)


def _value(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text else text
