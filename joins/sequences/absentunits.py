"""Units that must be absent before a run, or before a step of a chain: UNLESS.

It is asked once, when a run is decided, of what is there by then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from joins.sequences.runparts import Part, Parts, is_remembered
from templates.rundecision import AbsentElement

__all__ = ["AbsentTuples", "Key", "KeyedElements"]

Key = tuple[str, ...]


class KeyedElements:
    """Elements under one key, by end; `longest_us` is the length of the longest."""

    def __init__(self) -> None:
        self.ends_us: list[int] = []
        self.parts: list[Part] = []
        self.longest_us = 0

    def __len__(self) -> int:
        return len(self.parts)

    def add(self, part: Part) -> None:
        """Add an element."""
        self.longest_us = max(self.longest_us, part.end_us - part.start_us)
        if not self.ends_us or part.end_us >= self.ends_us[-1]:
            self.ends_us.append(part.end_us)
            self.parts.append(part)
            return
        at = bisect_right(self.ends_us, part.end_us)
        self.ends_us.insert(at, part.end_us)
        self.parts.insert(at, part)

    def behind(self, time_us: int) -> Iterator[Part]:
        """Yield the elements that end behind a time, by end."""
        parts = self.parts
        for at in range(bisect_right(self.ends_us, time_us), len(parts)):
            yield parts[at]

    def between(self, first_us: int, last_us: int) -> Iterator[Part]:
        """Yield the elements that end in a closed interval, by end."""
        low = bisect_left(self.ends_us, first_us)
        yield from self.parts[low : bisect_right(self.ends_us, last_us)]

    def forget(self, before_us: int) -> None:
        """Leave out what ends before a time."""
        low = bisect_left(self.ends_us, before_us)
        del self.ends_us[:low], self.parts[:low]


class AbsentTuples:
    """The tuples of one unit under their keys, and the `data` that they say."""

    def __init__(self, absent: AbsentElement, retention_us: int, lateness_us: int) -> None:
        self.absent = absent
        self.parts = Parts(of_elements=True)
        self._keys = {each.block: each.keys for each in absent.elements}
        self.data = absent.elements[0].data
        self._retention_us, self._lateness_us = retention_us + lateness_us, lateness_us
        self.lines: dict[Key, KeyedElements] = defaultdict(KeyedElements)

    def take_new(self) -> int:
        """Take the tuples that came in the batch; return how many these are."""
        new = self.parts.take_new()
        for part in new:
            element = part.element
            assert element is not None
            same = [element.value(term) for term in self._keys[part.blocks[0]]]
            self.lines[*same, *part.data].add(part)
        return len(new)

    def near(
        self,
        steps: Sequence[Sequence[Part]],
        same: Key,
        docid: int,
        window_us: int | None = None,
        retention_us: int | None = None,
    ) -> Iterator[Part]:
        """Yield the tuples that stand where they take a run away, if they may.

        `steps` are the elements of each step, `same` is the key of the run, with what it says of
        the unit's data.  It is decided at a document, and may say lengths.
        """
        line = self.lines.get(same)
        if line is None:
            return
        stands = steps[0][0], steps[self.absent.step][0]
        place = self.absent.step
        own_us = self.absent.window_us if window_us is None else window_us
        remembered_us = self._retention_us
        if retention_us is not None:
            remembered_us = retention_us + self._lateness_us
        for part in line.between(*self._between_us(steps, own_us)):
            if part.docid > docid:
                continue
            if place > 0 and part.start_us <= steps[place - 1][-1].end_us:
                continue
            if all(is_remembered(each, part, remembered_us) for each in stands):
                yield part

    def _between_us(self, steps: Sequence[Sequence[Part]], window_us: int) -> tuple[int, int]:
        """Return when a tuple that takes a run away must end, both times included."""
        right = steps[self.absent.step][0]
        last_us = right.start_us - 1
        if self.absent.step == 0:
            return steps[0][-1].end_us - window_us, last_us
        first_us = steps[self.absent.step - 1][-1].end_us + 1
        return max(first_us, right.end_us - window_us), last_us
