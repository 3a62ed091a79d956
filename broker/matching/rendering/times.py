"""Times as match lines have them, of many matches at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import render_time
from broker.matching.boxes.columns import Ints

__all__ = ["render_times"]

_FEW = 100
"""Fewer times are rendered one by one: they take less than the first of many."""


def render_times(times_us: Ints) -> list[str]:
    """Return several times as `render_time` renders each."""
    if len(times_us) < _FEW:
        return [*map(render_time, times_us.tolist())]
    seconds, fractions = np.divmod(times_us, 1_000_000)
    spelled = pa.array(seconds).cast(pa.timestamp("s")).cast(pa.string())
    texts = pc.replace_substring(spelled, " ", "T", max_replacements=1).to_pylist()
    some = np.flatnonzero(fractions)
    for i, fraction in zip(some.tolist(), fractions[some].tolist(), strict=True):
        texts[i] = f"{texts[i]}.{fraction:06}"
    return [f"{text}Z" for text in texts]
