"""Which match a tuple of a root is of: its documents, its visible nodes, and their form."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.hits import Hits
from broker.matching.rendering.form import MatchForm
from xscl.runvalues import Run, read_run

__all__ = ["MatchNodes", "nodes_of", "with_runs"]


class MatchNodes(NamedTuple):
    """The documents and visible nodes of a match, by their numbers; no form where it is counted."""

    leaves: tuple[int, ...]
    visible: tuple[int, ...]
    form: MatchForm | None

    @property
    def key(self) -> Hashable:
        """What tells it from other matches of its topic."""
        assert self.form is not None, "what is counted has none"
        return self.leaves, self.visible, self.form.branches, self.form.units


def nodes_of(hits: Hits) -> Iterator[MatchNodes]:
    """Yield for each tuple of roots what it is a match of."""
    has_runs = np.flatnonzero(hits.by_clause(bool(terms.runs) for terms in hits.clauses))
    runs = dict(zip(has_runs.tolist(), with_runs(hits, has_runs), strict=True))
    leaves, lengths = (each.tolist() for each in hits.leaves)
    visible = hits.numbers([terms.visible for terms in hits.clauses]).tolist()
    for hit, use in enumerate(hits.which.tolist()):
        terms = hits.terms[use]
        form, nodes = terms.form, visible[hit][: len(terms.visible)]
        if hit in runs:
            form, nodes, _ = runs[hit]
        yield MatchNodes(tuple(leaves[hit][: lengths[hit]]), tuple(nodes), form)


def with_runs(hits: Hits, some: Ints) -> Iterator[tuple[MatchForm, list[int], list[Run]]]:
    """Yield, of some tuples with runs, the form, the visible nodes, and the runs."""
    all_terms = [hits.terms[use] for use in hits.which[some].tolist()]
    asked = np.array([place for terms in all_terms for place in terms.runs], np.int64)
    texts = iter(hits.texts(np.repeat(some, [len(terms.runs) for terms in all_terms]), asked))
    for terms, nodes in zip(all_terms, hits.nodes[some].tolist(), strict=True):
        assert terms.forms is not None
        own = [next(texts) for _ in terms.runs]
        runs = [read_run(text) for text in own if text is not None]
        form = terms.forms.of(terms.clause.blocks, runs)
        yield form, form.numbers(dict(zip(terms.names, nodes, strict=False)), runs), runs
