"""Sets of words of many texts at once, as hashes: what `xscl.words` says, in columns.

Nearly all characters stand for themselves: what NFKC and case folding make of one is one letter,
one digit or no word, whatever stands beside it.  A table says so, character by character as they
are first seen, and a text of such characters is cut into words by array operations.  Other texts,
with marks, of scripts without spaces, with ligatures, go through `xscl.words` one by one.

The **hash** of a string is a polynomial of its characters, mixed.  So the hash of a shingle is
worked out of those of its words, and it is the one of the same string from `tokenize`.

Invariant: a set has one hash for each of its words, ascending.  Where two strings of one text have
the same hash, they are compared, and if they differ the set has that hash twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import category, combining, normalize

import numpy as np
import numpy.typing as npt

from templates.queryclass import SetKind
from xscl.path import Literal
from xscl.query import VariableValue
from xscl.words import is_unspaced, word_sequence

__all__ = ["HashedSets", "hash_strings", "hashed_sets", "sample_sets"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]

BASE = 0x9E3779B97F4A7C15 | 1
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Those of SplitMix64 (Steele, Lea, Flood 2014)."""

_SPACE, _END = ord(" "), ord("\n")

_NO_WORD, _OTHER, _UNSEEN = 0, 0xFFFF_FFFE, 0xFFFF_FFFF
"""What the table says of a character that belongs to no word, of one whose text goes one by one,
and of one that has not been seen."""

_LAST = 0x1_FFFF
"""The last character of the table: those above it are of scripts without spaces, or marks."""

_ALONE = (range(0x1100), range(0x1200, 0x2E80), range(0xAC00, 0xD7A4))
"""Letters that no letter behind them is composed with, in NFKC."""

_KEY_BITS = 40


class HashedSets(NamedTuple):
    """Sets that are not empty: of which text each is, how many words it has, and their hashes."""

    texts: Ints
    sizes: Ints
    hashes: Hashes


def hashed_sets(kind: SetKind, texts: Sequence[str], *, kernels: bool = False) -> HashedSets:
    """Return the sets that a kind makes of texts, in their order.

    With `kernels` they are made by compiled loops (`wordkernels`).
    """
    length = _shingle_length(kind)
    if length is None:
        return _by_hand(kind, range(len(texts)), texts)
    make = _sets_by_kernels if kernels else _sets_by_arrays
    found, apart = make(_Folded.of(texts), length)
    if not len(apart):
        return found
    others = set(apart.tolist())
    left = ["" if i in others else text for i, text in enumerate(texts)]
    rest = hashed_sets(kind, left, kernels=kernels)
    return _merged(rest, _by_hand(kind, apart.tolist(), texts))


def sample_sets() -> HashedSets:
    """Return the sets of words of two short texts, made by compiled loops."""
    found, _ = _sets_by_kernels(_Folded.of(["one two three", "two three four"]), 1)
    return found


def _sets_by_arrays(folded: _Folded, length: int) -> tuple[HashedSets, Ints]:
    """Return sets of runs of words, and the texts that have different runs of one hash."""
    words = _Words.of(folded)
    runs = words.runs(length)
    order = _ordered(runs.texts, runs.hashes)
    of, hashes = runs.texts[order], runs.hashes[order]
    again = np.flatnonzero((of[1:] == of[:-1]) & (hashes[1:] == hashes[:-1])) + 1
    is_same = words.are_equal(runs, order[again - 1], order[again])
    kept = np.ones(len(of), np.bool_)
    kept[again] = False
    return _counted(of[kept], hashes[kept]), np.unique(of[again[~is_same]])


def _sets_by_kernels(folded: _Folded, length: int) -> tuple[HashedSets, Ints]:
    from templates.wordkernels import sets_of_parts

    order = np.argsort(folded.texts, kind="stable")
    powers = _powers(int(folded.counts.max(initial=0)) + 2)
    sizes, hashes, apart = sets_of_parts(
        folded.codes, np.cumsum(folded.counts), order, length, powers, np.array(_MIXERS)
    )
    texts = folded.texts[order]
    there = sizes > 0
    return HashedSets(texts[there], sizes[there], hashes), np.unique(texts[apart])


def _merged(one: HashedSets, other: HashedSets) -> HashedSets:
    of = np.concatenate([np.repeat(each.texts, each.sizes) for each in (one, other)])
    hashes = np.concatenate([one.hashes, other.hashes])
    order = np.lexsort((hashes, of))
    return _counted(of[order], hashes[order])


def _by_hand(kind: SetKind, which: Sequence[int], texts: Sequence[str]) -> HashedSets:
    """Return the sets of some texts, made one by one; a text may have several."""
    found = [(i, sorted(each)) for i in which for each in kind.sets(texts[i]) if each]
    sizes = np.array([len(each) for _, each in found], np.int64)
    hashes = hash_strings([word for _, each in found for word in each])
    own = np.repeat(np.arange(len(found)), sizes)
    return HashedSets(
        np.array([i for i, _ in found], np.int64), sizes, hashes[np.lexsort((hashes, own))]
    )


def _counted(of: Ints, hashes: Hashes) -> HashedSets:
    texts, sizes = np.unique(of, return_counts=True)
    return HashedSets(texts, sizes.astype(np.int64), hashes)


def _shingle_length(kind: SetKind) -> int | None:
    """Return of how many words the members of sets are; None where they are made otherwise."""
    inner, *others = kind.make.arguments
    if not isinstance(inner, VariableValue):
        return None
    if kind.make.function == "words":
        return 1
    if kind.make.function == "shingles" and isinstance(others[0], Literal):
        return int(others[0].value)
    return None


def hash_strings(strings: Sequence[str]) -> Hashes:
    """Return the hashes of strings."""
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    values = np.zeros(len(strings), np.uint64)
    values[lengths > 0] = _polynomials(_codes("".join(strings)), lengths[lengths > 0])
    return _mixed(values)


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class _Runs(NamedTuple):
    """Runs of words: of which text each is, its first word, how many it has, and its hash."""

    texts: Ints
    firsts: Ints
    lengths: Ints
    hashes: Hashes


class _Words(NamedTuple):
    """The words of texts: their characters one after the other, and of each its part and place.

    `texts` says which text a part is of.
    """

    codes: Codes
    parts: Ints
    starts: Ints
    lengths: Ints
    texts: Ints

    @classmethod
    def of(cls, folded: _Folded) -> _Words:
        """Return the words of folded texts, in order."""
        is_word = folded.codes != _NO_WORD
        is_first = is_word.copy()
        is_first[1:] &= ~is_word[:-1]
        first = np.flatnonzero(is_first)
        own = np.searchsorted(np.cumsum(folded.counts), first, "right")
        codes = folded.codes[is_word]
        starts = np.flatnonzero(is_first[is_word])
        lengths = np.diff(starts, append=len(codes))
        return cls(codes, own, starts, lengths, folded.texts)

    def runs(self, length: int) -> _Runs:
        """Return the runs of so many consecutive words; of a text with fewer, the whole."""
        values = _polynomials(self.codes, self.lengths)
        firsts = np.arange(len(self.parts))
        if length == 1:
            return _Runs(self.texts[self.parts], firsts, np.ones_like(firsts), _mixed(values))
        counts = np.bincount(self.parts, minlength=len(self.texts))
        left = np.cumsum(counts)[self.parts] - firsts
        is_run = (left >= length) | (left == counts[self.parts])
        firsts, lengths = firsts[is_run], np.minimum(left[is_run], length)
        powers = _powers(int(self.lengths.max(initial=0)) + 1)
        found = values[firsts + lengths - 1]
        for k in reversed(range(length - 1)):
            rows = np.flatnonzero(lengths > k + 1)
            words = firsts[rows] + k
            behind = np.uint64(_SPACE) + np.uint64(BASE) * found[rows]
            found[rows] = values[words] + powers[self.lengths[words]] * behind
        return _Runs(self.texts[self.parts[firsts]], firsts, lengths, _mixed(found))

    def are_equal(self, runs: _Runs, some: Ints, others: Ints) -> Flags:
        """Return which of some runs of words are the same as others of the same hash."""
        equal: Flags = runs.lengths[some] == runs.lengths[others]
        for k in range(int(runs.lengths[some].max(initial=0))):
            rows = np.flatnonzero(equal & (runs.lengths[some] > k))
            a, b = runs.firsts[some[rows]] + k, runs.firsts[others[rows]] + k
            equal[rows] = self._are_one(a, b)
        return equal

    def _are_one(self, some: Ints, others: Ints) -> Flags:
        equal: Flags = self.lengths[some] == self.lengths[others]
        rows = np.flatnonzero(equal)
        lengths = self.lengths[some[rows]]
        first = np.cumsum(lengths) - lengths
        within = np.arange(int(lengths.sum())) - np.repeat(first, lengths)
        a, b = (np.repeat(self.starts[each[rows]], lengths) + within for each in (some, others))
        differ = self.codes[a] != self.codes[b]
        equal[rows[np.repeat(np.arange(len(rows)), lengths)[differ]]] = False
        return equal


def _ordered(of: Ints, hashes: Hashes) -> Ints:
    """Return the order by text and hash."""
    if len(of) and int(of.max()) < 1 << 64 - _KEY_BITS:
        keys = (of.astype(np.uint64) << np.uint64(_KEY_BITS)) | (
            hashes >> np.uint64(64 - _KEY_BITS)
        )
        order = np.argsort(keys)
        in_order, found = keys[order], hashes[order]
        if not ((in_order[1:] == in_order[:-1]) & (found[1:] != found[:-1])).any():
            return order
    return np.lexsort((hashes, of))


def _polynomials(codes: Codes, lengths: Ints) -> Hashes:
    """Return a polynomial of the characters of each string; none is empty."""
    if not len(lengths):
        return np.zeros(0, np.uint64)
    starts = np.cumsum(lengths) - lengths
    within = np.arange(len(codes)) - np.repeat(starts, lengths)
    terms = codes * _powers(int(lengths.max()))[within]
    found: Hashes = np.add.reduceat(terms, starts)
    return found


def _powers(count: int) -> Hashes:
    """Return the first powers of the base, modulo 2 ** 64."""
    factors = np.full(count, BASE, np.uint64)
    factors[0] = 1
    powers: Hashes = np.multiply.accumulate(factors)
    return powers


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(30))) * _MIXERS[0]
    values = (values ^ (values >> np.uint64(27))) * _MIXERS[1]
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


# -- characters ------------------------------------------------------------------------------------

_table = np.full(_LAST + 1, _UNSEEN, np.uint32)
_table[_LAST] = _OTHER


class _Folded(NamedTuple):
    """The characters of words, folded, with `_NO_WORD` between them and behind each part.

    `counts` are how many there are of each part, and `texts` says which text a part is of.
    """

    codes: Codes
    counts: Ints
    texts: Ints

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Folded:
        """Return texts in parts: each of them, and again what had to be cut one by one."""
        codes, counts = _joined(texts)
        folded = _look_up(codes)
        numbers = np.arange(len(texts))
        others = np.flatnonzero(folded == _OTHER)
        if not len(others):
            return cls(folded, counts, numbers)
        ends = np.cumsum(counts)
        which = np.unique(np.searchsorted(ends, others, "right"))
        for i in which.tolist():
            folded[ends[i] - counts[i] : ends[i]] = _NO_WORD
        cut, more = _joined([" ".join(word_sequence(texts[i])) for i in which.tolist()])
        cut = np.where((cut == _SPACE) | (cut == _END), np.uint32(_NO_WORD), cut)
        return cls(
            np.concatenate([folded, cut]),
            np.concatenate([counts, more]),
            np.concatenate([numbers, which]),
        )


def _joined(texts: Sequence[str]) -> tuple[Codes, Ints]:
    """Return the characters of texts, each with an end, and how many there are of each."""
    counts = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    return _codes("\n".join([*texts, ""])), counts


def _look_up(codes: Codes) -> Codes:
    places = np.minimum(codes, _LAST)
    folded = _table[places]
    if (unseen := codes[folded == _UNSEEN]).size:
        for code in set(unseen.tolist()):
            _table[code] = _of_character(chr(code))
        folded = _table[places]
    return folded


def _of_character(character: str) -> int:
    """Return what the table says of a character."""
    folded = normalize("NFKC", character).casefold()
    kinds = {category(each)[0] for each in folded}
    if kinds.isdisjoint("LMN"):
        return _NO_WORD
    is_alone = len(folded) == 1 and not combining(folded) and kinds <= {"L", "N"}
    is_alone &= any(ord(character) in each for each in _ALONE)
    return ord(folded) if is_alone and not is_unspaced(folded) else _OTHER
