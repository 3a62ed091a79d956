"""What of a file of witnesses is still needed, stream by stream, and what has been left out of it.

A window without end over a rare stream needs the files of all times, and little of what is in them.
So a file says how many documents of each stream it has, and how new the newest one is.  When half
of its documents are needed no more, it is written anew without them, and then says since when it
has all documents of a stream, for queries that may need earlier ones one day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.files.witnessfile import Header, compacted

__all__ = [
    "Needed",
    "NeededFrom",
    "compact",
    "has_all",
    "is_worth_compacting",
    "rows_in",
    "stream_facts",
]

Flags = npt.NDArray[np.bool_]

Needed = Mapping[str, float]
"""Since when documents are needed, by stream; `*` stands for all from outside.  Nothing is needed
of other streams."""

NeededFrom = Callable[[int], Needed]
"""Says this of the documents up to a docid."""


def stream_facts(witnesses: pa.Table) -> dict[str, str]:
    """Return what a file says of the streams of its documents."""
    ends = witnesses.select(["stream", "end_us"]).group_by("stream")
    counted = ends.aggregate([("end_us", "count"), ("end_us", "max")]).to_pydict()
    columns = (counted[name] for name in ("stream", "end_us_count", "end_us_max"))
    return {"streams": json.dumps({name: found for name, *found in zip(*columns, strict=True)})}


def _streams(header: Header) -> dict[str, tuple[int, int]]:
    """Return by stream how many documents a file has, and the newest event time."""
    streams: dict[str, tuple[int, int]] = json.loads(header.facts["streams"])
    return streams


def rows_in(header: Header) -> int:
    """Return how many documents a file has."""
    return sum(rows for rows, _ in _streams(header).values())


def is_worth_compacting(header: Header, needed: Needed) -> bool:
    """Return whether half of the documents of a file are needed no more, but for a few."""
    streams = _streams(header)
    gone = sum(rows for name, (rows, end_us) in streams.items() if end_us < _since(needed, name))
    return gone > _BOUNDARIES and 2 * gone >= sum(rows for rows, _ in streams.values())


_BOUNDARIES = 3
"""Documents that stay in any case: a file's first, last and newest say what it covers."""


def compact(
    files: Sequence[tuple[Header, pa.Table]], needed: Needed
) -> tuple[pa.Table, dict[str, str]]:
    """Return what is needed of neighbouring files, and what a file of it says of itself."""
    whole = pa.concat_tables([witnesses for _, witnesses in files])
    left = compacted(whole, _kept(whole, needed))
    since = reduce(_later, (_whole_since(header) for header, _ in files), needed)
    facts = files[0][0].facts | stream_facts(left)
    # What is not needed at all has no number in JSON: it is left out.
    finite = {name: time for name, time in since.items() if time < inf}
    return left, facts | {"whole_since": json.dumps(finite)}


def _kept(witnesses: pa.Table, needed: Needed) -> Flags:
    ends = witnesses.column("end_us").to_numpy()
    streams = witnesses.column("stream").combine_chunks().dictionary_encode()
    since = np.array([_since(needed, name) for name in streams.dictionary.to_pylist()])
    found = pc.list_value_length(witnesses.column("nodes")).fill_null(0).to_numpy() > 0
    kept: Flags = found & (ends >= since[streams.indices.to_numpy()])
    kept[[0, -1, int(ends.argmax())]] = True
    return kept


def _since(needed: Needed, stream: str) -> float:
    return min(needed.get(stream, inf), needed.get("*", inf))


def _whole_since(header: Header) -> Needed:
    """Return since when a file has all documents of a stream; `*` is for all that are not named."""
    if "whole_since" not in header.facts:
        return {"*": -inf}
    whole: dict[str, float] = json.loads(header.facts["whole_since"])
    return whole


def _later(one: Needed, other: Needed) -> Needed:
    names = {*one, *other}
    return {name: max(_since(one, name), _since(other, name)) for name in names}


def has_all(header: Header, needed: Needed) -> bool:
    """Return whether a file has all documents that are needed of the files that it was made of."""
    if "whole_since" not in header.facts:
        return True
    whole = _whole_since(header)
    return all(
        time > header.end_max_us or time >= _since(whole, stream) for stream, time in needed.items()
    )
