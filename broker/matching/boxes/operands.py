"""The instances that tuples consist of, in columns: what fan-out reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.matching.boxes.columns import Doubles, Flags, Hashes, Ints, distinct
from joins import INSTANCE_SCHEMA, hash_values
from templates.box import Excluded
from xscl.evaluation import values_of_optional
from xscl.functions import to_double
from xscl.measures import WordSet, sets_of
from xscl.prefilters import spell_number
from xscl.query import Call
from xscl.sharedtexts import SHARED, SharedText, held

__all__ = ["CodedTexts", "Operands"]

_SCHEMA = pa.schema([each for each in INSTANCE_SCHEMA if each.name not in ("instance", "shape")])
_COLUMNS = _SCHEMA.names


class CodedTexts(NamedTuple):
    """Texts of which many are equal: text `i` is `texts[codes[i]]`, and none where that is -1."""

    codes: Ints
    texts: list[str]

    @classmethod
    def of(cls, strings: pa.Array) -> CodedTexts:
        """Return strings as texts."""
        encoded = strings.dictionary_encode()
        codes = _filled(encoded.indices, -1).to_numpy().astype(np.int64)
        return cls(codes, encoded.dictionary.to_pylist())

    def codes_behind(self, others: Sequence[str]) -> Ints:
        """Return the codes that texts have behind others."""
        return np.where(self.codes < 0, -1, self.codes + len(others))


@dataclass(frozen=True)
class Operands:
    """Instances in the order of their numbers; `rows` are theirs.

    The nodes and values of instance `i` are `nodes[starts[i]]`, `values[starts[i]]` and those
    behind them, its leaves are `leaves[leaf_starts[i]]` up to `leaves[leaf_starts[i + 1]]`.  Texts
    that its values have in common are held, so that they are found by name.
    """

    numbers: Ints
    rows: pa.Table
    starts: Ints
    nodes: Ints
    values: pa.Array
    leaf_starts: Ints
    leaves: Ints
    held: tuple[SharedText, ...] = ()

    @classmethod
    def of(cls, parts: Iterable[tuple[Sequence[int], pa.RecordBatch]]) -> Operands:
        """Return instances given as numbers, ascending, with rows of `INSTANCE_SCHEMA`."""
        found = list(parts)
        rows = pa.Table.from_batches([part.select(_COLUMNS) for _, part in found], _SCHEMA)
        values, starts = _flat(rows.column("vals"))
        nodes = _flat(rows.column("nodes"))[0].to_numpy()
        shared = values.take(pa.array((nodes == SHARED).nonzero()[0]))
        leaves, leaf_starts = _flat(rows.column("leaves"))
        numbers = np.array([number for some, _ in found for number in some], np.int64)
        return cls(
            numbers,
            rows,
            starts[:-1],
            nodes,
            values,
            leaf_starts,
            leaves.to_numpy(),
            held(shared.to_pylist()),
        )

    def column(self, name: str) -> Ints:
        """Return a column of whole numbers."""
        column: Ints = self.rows.column(name).to_numpy()
        return column

    @cached_property
    def sizes(self) -> Ints:
        """The bytes of each value."""
        lengths: Ints = _filled(pc.binary_length(self.values), 0).to_numpy().astype(np.int64)
        return lengths

    @property
    def are_documents(self) -> Flags:
        """Which instances are documents, and no tuples of inner operators."""
        are_alone: Flags = self.leaf_starts[1:] - self.leaf_starts[:-1] == 1
        are_alone &= self.leaves[self.leaf_starts[:-1]] == self.numbers
        return are_alone

    def at(self, instances: Ints) -> Ints:
        """Return the places of instances, which are there."""
        return self.numbers.searchsorted(instances)

    def match_ids(self, places: Ints) -> CodedTexts:
        """Return the match ids of some instances, by their places."""
        ids = self.rows.column("match_id").take(pa.array(places))
        return CodedTexts.of(ids.combine_chunks())

    def texts(self, places: Ints) -> list[str | None]:
        """Return values at some places."""
        texts: list[str | None] = self.values.take(pa.array(places)).to_pylist()
        return texts

    def coded(self, places: Ints) -> CodedTexts:
        """Return values at some places."""
        some, _, inverse = distinct(places)
        codes, texts = CodedTexts.of(self.values.take(pa.array(some)))
        return CodedTexts(codes[inverse], texts)

    def are_equal(self, left: Ints, right: Ints) -> Flags:
        """Return where the values at two places are equal strings."""
        both, _, inverse = distinct(np.concatenate([left, right]))
        strings = self.values.take(pa.array(both)).dictionary_encode()
        codes = _filled(strings.indices, -1).to_numpy()[inverse]
        equal: Flags = codes[: len(left)] == codes[len(left) :]
        return equal

    def hashes(self, places: Ints) -> tuple[Flags, Hashes, Hashes]:
        """Return whether the values at some places are known, and both hashes of each."""
        some, _, inverse = distinct(places)
        strings = self.values.take(pa.array(some))
        known = strings.is_valid().to_numpy(zero_copy_only=False)
        first, other = hash_values(strings.fill_null(""))
        return known[inverse], first[inverse], other[inverse]

    def only_hashes(self, places: Ints) -> tuple[Flags, Hashes, Hashes]:
        """Return `hashes` of texts of several values, known only where these are one.

        Of values that differ from one another, one differs from any string.
        """
        some, _, inverse = distinct(places)
        values = [values_of_optional(text or "[]") for text in self.texts(some)]
        only = [each[0] if each and len(set(each)) == 1 else None for each in values]
        known = np.array([each is not None for each in only], np.bool_)
        first, other = hash_values(pa.array([each or "" for each in only], pa.string()))
        return known[inverse], first[inverse], other[inverse]

    def sole_hashes(self, places: Ints, kinds: Ints) -> tuple[Flags, Hashes, Hashes]:
        """Return `hashes`, `only_hashes` or `number_hashes` of places, by kind (`Excluded`)."""
        known, first, other = self.hashes(places)
        others = (Excluded.ONE_OF_SEVERAL, self.only_hashes), (Excluded.NUMBER, self.number_hashes)
        for kind, hashes in others:
            some = np.flatnonzero(kinds == kind)
            if len(some):
                known[some], first[some], other[some] = hashes(places[some])
        return known, first, other

    def number_hashes(self, places: Ints) -> tuple[Flags, Hashes, Hashes]:
        """Return `hashes` of numbers, of which equal ones are one text; others are not known."""
        numbers, inverse = np.unique(self.doubles(places), return_inverse=True)
        first, other = hash_values(pa.array(map(spell_number, numbers.tolist()), pa.string()))
        return ~np.isnan(numbers)[inverse], first[inverse], other[inverse]

    def doubles(self, places: Ints) -> Doubles:
        """Return values at some places as `xs:double`; what is none, or not known, is NaN."""
        some, _, inverse = distinct(places)
        strings = self.values.take(pa.array(some)).to_pylist()
        found = np.array([np.nan if s is None else to_double(s) for s in strings], np.float64)
        return found[inverse]

    def sets(self, call: Call, places: Ints) -> dict[int, list[WordSet]]:
        """Return the sets that `words` and the like make of the values at some places, by place.

        What is not known has none.
        """
        some = np.unique(places)
        return {
            place: [] if text is None else sets_of(call, text)
            for place, text in zip(some.tolist(), self.texts(some), strict=True)
        }

    def overlap(self, left: Ints, right: Ints) -> Flags:
        """Return where two instances, by their places, have a leaf in common."""
        # A tuple may be of one document as well, which is then another instance than that.
        first = self.leaves[self.leaf_starts[:-1]]
        shared: Flags = first[left] == first[right]
        is_wide = self.leaf_starts[1:] - self.leaf_starts[:-1] > 1
        rows = (~shared & (is_wide[left] | is_wide[right])).nonzero()[0]
        leaves: dict[int, frozenset[int]] = {}
        for row, one, other in zip(
            rows.tolist(), left[rows].tolist(), right[rows].tolist(), strict=True
        ):
            for place in (one, other):
                if place not in leaves:
                    start, stop = self.leaf_starts[place : place + 2].tolist()
                    leaves[place] = frozenset(self.leaves[start:stop].tolist())
            shared[row] = not leaves[one].isdisjoint(leaves[other])
        return shared


def _flat(lists: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """Return lists as their values, one after the other, and where each list begins, and ends."""
    parts = lists.chunks or [pa.array([], lists.type)]
    whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    places = whole.offsets.to_numpy().astype(np.int64)
    first, last = places[[0, -1]].tolist()
    return whole.values.slice(first, last - first), places - first


def _filled(numbers: pa.Array, value: int) -> pa.Array:
    return numbers.fill_null(value) if numbers.null_count else numbers
