"""Has the loops of similarity compiled by a process of their own (`templates.compilation`).

python -m joins.similarity.compilation
"""

from __future__ import annotations

import os

import numpy as np

from templates.compilation import Loops
from templates.compiling import lacks_code
from templates.wordcolumns import sample_sets

__all__ = ["LOOPS", "compile_loops"]


def _are_missing() -> bool:
    from joins.similarity.kernels import link, rare_words, similar_sets
    from templates.wordkernels import sets_of_parts

    return any(map(lacks_code, (link, rare_words, similar_sets, sets_of_parts)))


LOOPS = Loops(
    "joins.similarity.compilation", "join by similarity", "array operations do it", _are_missing
)


def compile_loops() -> None:
    """Call each loop with what it is called with in a join, so that it is compiled or read."""
    from joins.similarity.bounds import AskedMeasure
    from joins.similarity.compiledtable import CompiledTable
    from joins.similarity.settable import Indexed

    found = sample_sets()
    look = AskedMeasure("jaccard", 0.5, is_first=True)
    table = CompiledTable()
    table.add(found.texts, found.sizes, found.hashes, Indexed(frozenset({look})))
    for _ in table.similar(table.sets, np.arange(2), look, np.zeros(2, np.int64), 1_000):
        pass


if __name__ == "__main__":
    os.nice(10)
    compile_loops()
