"""Texts of documents that values name which are handed on, held for as long as these may be read.

An excerpt that leads upwards is a place in a text, and that text's name (`xscl.sharedtexts`).  An
operator hands on the value, and the text stays with its document.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from xscl.sharedtexts import SHARED, SharedText, held

__all__ = ["NamedTexts"]


class NamedTexts:
    """The texts of documents that a join remembers; none while `are_read` says that nobody asks.

    It looks for texts that are no longer needed once it holds more than `held_min`.
    """

    def __init__(self, are_read: Callable[[], bool], held_min: int) -> None:
        self._are_read = are_read
        self._held_min = self._held_max = held_min
        self._ends: dict[SharedText, int] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def note(self, rows: pa.Table) -> None:
        """Hold the texts that stand in rows of `INSTANCE_SCHEMA`."""
        if not self._are_read():
            self._ends.clear()
            return
        for batch in rows.select(["nodes", "vals", "end_us"]).to_batches():
            nodes, values, ends = batch.columns
            at = np.flatnonzero(nodes.flatten().to_numpy() == SHARED)
            starts = nodes.offsets.to_numpy()
            own = np.searchsorted(starts - starts[0], at, "right") - 1
            texts = held(values.flatten().take(pa.array(at)).to_pylist())
            for text, end_us in zip(texts, ends.to_numpy()[own].tolist(), strict=True):
                self._ends[text] = max(end_us, self._ends.get(text, end_us))

    def forget(self, before_us: int) -> None:
        """Forget texts of documents that end before a time, once enough are known."""
        if len(self._ends) > self._held_max:
            self._ends = {text: end for text, end in self._ends.items() if end >= before_us}
            self._held_max = max(self._held_min, 2 * len(self._ends))
