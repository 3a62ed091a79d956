"""Where the value of a term stands among the values of a row, looked up in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.memory.slots import Ints

__all__ = ["Terms"]

_LAYOUTS = 1 << 31


class Terms:
    """Terms and layouts by number; a layout is the terms of a stream's values, in order."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._layouts: dict[tuple[str, ...], int] = {}
        self._by_name: list[dict[str, int]] = []
        self._new: list[tuple[int, int]] = []
        self._codes = self._places = np.zeros(0, np.int64)

    def number(self, term: str) -> int:
        """Return the number of a term."""
        return self._terms.setdefault(term, len(self._terms))

    def layout(self, terms: Sequence[str]) -> int:
        """Return the number of a layout."""
        number = self._layouts.get(tuple(terms))
        if number is None:
            number = self._layouts[tuple(terms)] = len(self._layouts)
            self._by_name.append({term: place for place, term in enumerate(terms)})
            codes = [self.number(term) * _LAYOUTS + number for term in terms]
            self._new += zip(codes, range(len(terms)), strict=True)
        return number

    def place(self, term: str, layout: int) -> int | None:
        """Return at which place of a layout a term is, None where it is at none."""
        return self._by_name[layout].get(term)

    def places(self, terms: Ints, layouts: Ints) -> Ints:
        """Return at which place of a layout each term is, -1 where it is at none."""
        if self._new:
            self._learn()
        codes = terms * _LAYOUTS + layouts
        if not len(self._codes):
            return np.full(len(codes), -1, np.int64)
        at = np.minimum(self._codes.searchsorted(codes), len(self._codes) - 1)
        return np.where(self._codes[at] == codes, self._places[at], -1)

    def _learn(self) -> None:
        codes, places = np.array(self._new, np.int64).T
        self._codes, self._places = np.append(self._codes, codes), np.append(self._places, places)
        order = np.argsort(self._codes)
        self._codes, self._places, self._new = self._codes[order], self._places[order], []
