"""What queries will cost, for the verbs that estimate it from a file of documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.cli.terminal import Failure

if TYPE_CHECKING:
    from broker.estimate import QueryEstimate
    from xscl import Query

__all__ = ["estimates_from", "render_estimates", "statistics_option"]

statistics_option = click.option(
    "--statistics",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recent document lines: estimate from them what the queries will cost and match.",
)


def estimates_from(statistics: Path, queries: Sequence[Query]) -> list[QueryEstimate]:
    """Return an estimate for each query, from the last document lines of a file."""
    from broker.documents.recorded import RecordedError, recent_documents
    from broker.estimate import estimate

    try:
        return estimate(queries, recent_documents(statistics))
    except RecordedError as error:
        raise Failure(str(error)) from error


def render_estimates(estimates: Sequence[QueryEstimate]) -> str:
    """Return estimates as text."""
    from broker.estimate import render_estimate

    return "\n".join(map(render_estimate, estimates))
