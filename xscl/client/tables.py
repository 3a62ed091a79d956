"""Matches as tables: `xscl-client[arrow]` and `xscl-client[pandas]` bring what they need."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from xscl.client.values import Match

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["matches_frame", "matches_table"]


def matches_table(matches: Iterable[Match]) -> pyarrow.Table:
    """Return matches as a table of Arrow, a row each, in their order; of none it has no rows.

    Lists have an element for each document (`docids`, `streams`, `keys`, `times`) or value
    (`joined`); `parameters` is JSON.
    """
    import pyarrow

    time = pyarrow.timestamp("us", tz="UTC")
    text, texts = pyarrow.string(), pyarrow.list_(pyarrow.string())
    schema = pyarrow.schema(
        {
            "seq": pyarrow.int64(),
            "id": text,
            "query": text,
            "start": time,
            "end": time,
            "docids": pyarrow.list_(pyarrow.int64()),
            "streams": texts,
            "keys": texts,
            "times": pyarrow.list_(time),
            "joined": texts,
            "parameters": text,
            "output": text,
        }
    )
    rows = [
        {
            "seq": match.seq,
            "id": match.id,
            "query": match.query,
            "start": match.start,
            "end": match.end,
            "docids": [each.docid for each in match.documents],
            "streams": [each.stream for each in match.documents],
            "keys": [each.key for each in match.documents],
            "times": [each.time for each in match.documents],
            "joined": list(match.joined),
            "parameters": json.dumps(dict(match.parameters), ensure_ascii=False),
            "output": match.output,
        }
        for match in matches
    ]
    return pyarrow.Table.from_pylist(rows, schema=schema)


def matches_frame(matches: Iterable[Match]) -> pandas.DataFrame:
    """Return matches as a frame of pandas, with the columns of `matches_table`, by `seq`."""
    frame: pandas.DataFrame = matches_table(matches).to_pandas()
    return frame.set_index("seq")
