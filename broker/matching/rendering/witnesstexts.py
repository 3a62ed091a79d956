"""The different witness tuples of matches, in order, and as texts.

Texts of tuples are made many at once: those that assign the same variables of equal forms are of
one pattern, in which a tuple fills in its nodes and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints, are_as_before
from broker.matching.fewuses import distinct_rows
from joins import ranges

__all__ = ["UNASSIGNED", "WITNESSES_MAX", "FoundWitnesses", "WitnessTuples", "padded"]

UNASSIGNED = -1
"""Stands for the node of a variable that a tuple does not assign, and behind the last column."""

WITNESSES_MAX = 1_000
"""Witness tuples listed in a match; the rest is counted (semantics, section 6)."""


class FoundWitnesses(NamedTuple):
    """The witness tuples of some hits, each of a match.

    Nodes and where values are spelled are rows, by variables; `similar` is where what similarity
    joins have found is spelled.
    """

    matches: Ints
    nodes: Ints
    spelled: Ints
    similar: Ints


class WitnessTuples:
    """The different witness tuples of all matches, in order; `texts` has their values in JSON."""

    def __init__(self, parts: Sequence[FoundWitnesses], texts: Sequence[str], matches: int) -> None:
        numbers = np.concatenate([part.matches for part in parts])
        nodes = padded([part.nodes for part in parts])
        spelled = padded([part.spelled for part in parts])
        similar = np.concatenate([part.similar for part in parts])
        keys = [numbers, *nodes.T, _ranked(similar, texts)]
        order = np.lexsort(keys[::-1])
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = ~are_as_before([key[order] for key in keys])
        order = order[is_new]
        numbers = numbers[order]
        self._texts = texts
        self._width = nodes.shape[1]
        self._rows = np.column_stack([nodes[order], spelled[order], similar[order]])
        self._counts = np.bincount(numbers, minlength=matches)
        self._starts = np.cumsum(self._counts) - self._counts

    def are_as_before(self, matches: Ints, given: Flags) -> Flags:
        """Return which matches have the witness tuples of the one before them.

        `given` are the matches to look at, behind the first.
        """
        are_same = np.zeros(len(matches), np.bool_)
        counts = self._counts[matches]
        which = 1 + np.flatnonzero(given & (counts[1:] == counts[:-1]))
        are_same[which] = True
        counts = counts[which]
        own, before = (
            self._rows[ranges(self._starts[some], counts)]
            for some in (matches[which], matches[which - 1])
        )
        are_same[np.repeat(which, counts)[(own != before).any(axis=1)]] = False
        return are_same

    def shown(
        self, matches: Ints, which: Ints, labels: Sequence[Sequence[str]]
    ) -> tuple[list[str], list[int]]:
        """Return the witness tuples that some matches show, and how many each leaves out.

        A node of a tuple is spelled behind one of the labels of its variable: `which` says of each
        match which of `labels` are its own, one for each variable of its query.
        """
        counts = np.minimum(self._counts[matches], WITNESSES_MAX)
        rows = self._rows[ranges(self._starts[matches], counts)]
        texts = self._spelled(rows, np.repeat(which, counts), labels)
        omitted = (self._counts[matches] - counts).tolist()
        if (counts == 1).all():
            return texts, omitted
        ends = np.cumsum(counts)
        bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        return [", ".join(texts[first:last]) for first, last in bounds], omitted

    def _spelled(self, rows: Ints, which: Ints, labels: Sequence[Sequence[str]]) -> list[str]:
        """Return witness tuples, each an object of JSON."""
        assigned = rows >= 0
        assigned[:, self._width : -1] = False  # Values stand where their nodes do.
        columns = np.flatnonzero(assigned.any(axis=0))
        _, patterns = distinct_rows([which, *assigned.T[columns].astype(np.int64)])
        texts = np.empty(len(rows), np.object_)
        for own in np.split(order := np.argsort(patterns, kind="stable"), _ends(patterns[order])):
            if len(own):
                has = assigned[own[0]].nonzero()[0]
                texts[own] = self._of_pattern(rows[own], has, labels[which[own[0]]])
        spelled: list[str] = texts.tolist()
        return spelled

    def _of_pattern(self, rows: Ints, has: Ints, labels: Sequence[str]) -> list[str]:
        """Return witness tuples of one pattern; `has` are the columns that they have."""
        names: list[str] = []
        parts: list[Sequence[object]] = []
        for column in has.tolist():
            if column < self._width:
                names.append(f'{labels[column].replace("%", "%%")}": %d, "value": %s}}')
                values = rows[:, self._width + column].tolist()
                parts.append(rows[:, column].tolist())
            else:
                names.append('"similar": %s')
                values = rows[:, column].tolist()
            parts.append([self._texts[value] for value in values])
        pattern = f"{{{', '.join(names)}}}"
        return [pattern % each for each in zip(*parts, strict=True)] or [pattern] * len(rows)


def _ends(ordered: Ints) -> Ints:
    """Return where equal numbers end, the last of them aside."""
    return 1 + np.flatnonzero(np.diff(ordered))


def _ranked(similar: Ints, texts: Sequence[str]) -> Ints:
    """Return numbers for texts, given by where they are, in the order of the texts."""
    distinct, inverse = np.unique(similar, return_inverse=True)
    found = ["" if place < 0 else texts[place] for place in distinct.tolist()]
    ranks = {text: rank for rank, text in enumerate(sorted(set(found)))}
    return np.array([ranks[text] for text in found], np.int64)[inverse]


def padded(parts: Sequence[Ints]) -> Ints:
    """Return rows of different widths as one array."""
    width = max((part.shape[1] for part in parts), default=0)
    wide = np.full((sum(map(len, parts)), width), UNASSIGNED, np.int64)
    end = 0
    for part in parts:
        start, end = end, end + len(part)
        wide[start:end, : part.shape[1]] = part
    return wide
