"""Locality-sensitive hashing by libraries, to compare joins by similarity with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PERMUTATIONS", "Lsh", "datasketch_lsh", "rensa_lsh"]

PERMUTATIONS = 128

Lsh = tuple[str, Callable[[frozenset[str]], Any], Any]
"""The name of a library, its sketch of a set, and an index with `query` and `insert`."""


def datasketch_lsh() -> Lsh | None:
    try:
        import datasketch
    except ImportError:
        print("datasketch is not there: pip install datasketch")
        return None

    def sketch(own: frozenset[str]) -> Any:
        sketched = datasketch.MinHash(num_perm=PERMUTATIONS)
        sketched.update_batch([word.encode() for word in own])
        return sketched

    return "datasketch", sketch, datasketch.MinHashLSH(threshold=0.5, num_perm=PERMUTATIONS)


def rensa_lsh() -> Lsh | None:
    try:
        import rensa
    except ImportError:
        print("rensa is not there: pip install rensa")
        return None

    def sketch(own: frozenset[str]) -> Any:
        sketched = rensa.RMinHash(num_perm=PERMUTATIONS, seed=1)
        sketched.update(sorted(own))
        return sketched

    index = rensa.RMinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, num_bands=PERMUTATIONS // 4)
    return "rensa", sketch, index
