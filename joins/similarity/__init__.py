"""Joins by similarity: which pairs of texts have enough words in common, found by rare words.

    bounds         what a threshold asks of the sizes of two sets
    sets           sets in columns: words as hashes
    settable       the sets of one variable's values, indexed by their rare words
    arraytable     the search for similar ones by array operations
    compiledtable  the same by compiled loops (`kernels`), over another index (`chains`)
    compilation    has them compiled while array operations go on
    textsets       the words by which texts are found of which something is decided
    candidates     the pairs of instances that a similarity join may hold on

Invariant: every pair on which a class holds is found; others may be found as well, where words have
one hash.  What is reported is tested by its strings, as exact fractions (`xscl.measures`).
docs/similarity.md has the theory.

Begin with `candidates`.
"""
