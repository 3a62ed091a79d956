"""The default engine: pairs of instances are looked up by what they have in common.

Theory.  Take two instances and a query class.  Whether the class's conjunctive query holds on the
pair, and with which nodes, depends on the variables that bind which nodes on either side, and on
which of those nodes have equal values; on nothing else.  The first is the pair's two witness
shapes; the second a set of pairs of nodes.  Both together are the **pair signature**.  So two pairs
with one signature have the same tuples of nodes in every class, and a class needs to be evaluated
once for each signature that ever occurs, not once for each pair (`signatureview`).  This is exact:
`R_bin` and the value joins are the only relations in the body of `CQ_T` (Hong 2009, section 6.4.4)
that speak of the instances, and the signature determines both.  Times, residuals and constants are
not part of the body; they are tested afterwards, pair by pair.

One probe:

    candidates   every class is anchored in one of its value joins, the one that is met least often;
                 new values are looked up under the anchors' variables, on both sides
    signatures   for each candidate pair, all equal pairs of slots; pairs are grouped by signature
    look up      each signature's entry gives tuples of nodes by class
    tuples       windows, order and residuals filter them pair by pair

A pair is a candidate if any class's anchor holds on it, and its entry has every class; so every
tuple is found once, whichever anchor found the pair.

Values are compared by two independent 64-bit hashes.  What is reported is checked against the
strings by `FanOut`, where they are at hand.

Bounds: candidates are made in slices of `PAIRS_MAX`; an entry's equal pairs are whatever they are,
so instances with many equal values cost the square of them; the view holds `ENTRIES_MAX` entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.classes import ClassRegistry, ClassTuple, QueryClass
from joins.instance import Instance
from joins.remembered import EMPTY, HashValues, Remembered, hash_values
from joins.signatureview import ENTRIES_MAX, Entry, SignatureView
from joins.slots import Ints, Layouts, ranges
from joins.tuples import Residuals, TupleColumns
from joins.valueindex import ValueIndex, entry_keys
from templates.template import Template

__all__ = ["SignatureProcessor"]

PAIRS_MAX = 500_000
"""Candidate pairs that are worked on at once: some 100 MB."""

Edge = tuple[int, int, int, int]
_PRIME = np.uint64(0xBF58476D1CE4E5B9)
_OTHER = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A pair of variables on which candidates are looked up, for the classes anchored in it."""

    left: int
    right: int
    window_us: int
    is_symmetric: bool


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return well-spread hashes of numbers (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * _PRIME
    values = (values ^ (values >> np.uint64(27))) * _OTHER
    return values ^ (values >> np.uint64(31))


class SignatureProcessor:
    """See the module; the interface is `processor.Processor`."""

    def __init__(self, *, lateness_us: int, hashing: HashValues = hash_values) -> None:
        self.classes = ClassRegistry()
        self._lateness_us = lateness_us
        self._layouts = Layouts()
        self._remembered = Remembered(self._layouts, hashing)
        self._index = ValueIndex()
        self._view = SignatureView(self.classes, self._layouts)
        self._residuals = Residuals(self.classes, hashing)
        self._shapes: dict[str, int] = {}
        self._watched: dict[int, set[int]] = {}
        self._entries: dict[object, Entry] = {}
        self._anchors: dict[int, list[_Anchor]] = {}
        self._met: dict[tuple[int, int], int] = {}
        self._version = -1
        self._first = 1
        self._new_keys: list[tuple[Ints, Ints, npt.NDArray[np.uint64]]] = []

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self._remembered.next_instance

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""
        return self.classes.strata

    def add(self, query_class: QueryClass, window_us: int, watched: Collection[int] = ()) -> int:
        """Add one use of a class with a window; return the class's number."""
        number = self.classes.add(query_class, window_us)
        if watched:
            self._watched.setdefault(number, set()).update(watched)
        return number

    def remove(self, number: int, window_us: int) -> None:
        """Undo one `add`."""
        self.classes.remove(number, window_us)
        if number not in self.classes.by_number:
            self._watched.pop(number, None)

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""
        return self.classes.by_number[number].template

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        for shape, edges in shapes.items():
            if shape not in self._shapes:
                number = self._shapes[shape] = len(self._shapes)
                self._layouts.add_shape(number, edges)
                self._view.add_shape(number, edges)

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self._shapes.get(shape)

    def begin_batch(self) -> None:
        """Start a batch: what is absorbed from now on is new."""
        self._first = self._remembered.next_instance
        self._new_keys = []
        if self._version != self.classes.version:
            self._version = self.classes.version
            self._layouts.compare(self.classes.compared())
            self._choose_anchors()

    def _choose_anchors(self) -> None:
        """Anchor every class in the value join that was met least often so far."""
        chosen: dict[tuple[int, int, int], list[tuple[int, bool]]] = {}
        for number, query_class in self.classes.by_number.items():
            pairs = list(query_class.value_pairs())
            if pairs:
                anchor = min(pairs, key=lambda pair: (self._met.get(pair, 0), pair))
                use = (self.classes.window_us(number), query_class.is_symmetric)
                chosen.setdefault((query_class.stratum, *anchor), []).append(use)
        self._anchors = {}
        for (stratum, left, right), uses in chosen.items():
            anchor_ = _Anchor(left, right, max(w for w, _ in uses), any(s for _, s in uses))
            self._anchors.setdefault(stratum, []).append(anchor_)

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        if not instances.num_rows:
            return
        first, layouts = self._remembered.append(instances)
        arrays = self._layouts.arrays
        counts = arrays.binding_counts[layouts]
        bindings = ranges(arrays.binding_starts[layouts], counts)
        owners = np.repeat(np.arange(first, first + len(layouts)), counts)
        hashes, _ = self._remembered.hashes
        values = hashes[self._remembered.slots(owners) + arrays.binding_slots[bindings]]
        variables = arrays.binding_variables[bindings]
        filled = values != EMPTY
        owners, variables, values = owners[filled], variables[filled], values[filled]
        self._new_keys.append((owners, variables, values))
        self._index.add(entry_keys(values, variables), owners, self._remembered.base)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for columns in self.probe_columns(stratum) for found in columns.rows()]

    def probe_columns(self, stratum: int) -> Iterator[TupleColumns]:
        """Yield the same in columns, some candidate pairs at a time."""
        if self.next_instance == self._first:
            return
        templates = [c.template for c in self.classes.by_number.values() if c.stratum == stratum]
        if any(not template.has_right for template in templates):
            yield self._singles(stratum)
        if any(template.has_right and not template.value_joins for template in templates):
            pairs: Iterable[tuple[Ints, Ints]] = self._all_pairs()
        else:
            pairs = self._candidates(self._anchors.get(stratum, []))
        for left, right in pairs:
            yield self._pairs(stratum, left, right)

    # -- candidates

    def _candidates(self, anchors: list[_Anchor]) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs on which some anchor holds, without repetition."""
        if not anchors or not self._new_keys:
            return
        owners, variables, values = (
            np.concatenate(parts) for parts in zip(*self._new_keys, strict=True)
        )
        codes: list[Ints] = []
        for anchor in anchors:
            as_right = np.flatnonzero(variables == anchor.right)
            as_left = np.flatnonzero(variables == anchor.left)
            met = 0
            for new, other, is_right in (
                (as_right, anchor.left, True),
                (as_left, anchor.right, False),
            ):
                keys = entry_keys(values[new], np.full(len(new), other))
                for part in _slices(self._index.counts(keys)):
                    found, partners = self._index.look_up(keys[part])
                    mine = owners[new[part]][found]
                    left, right = (partners, mine) if is_right else (mine, partners)
                    met += len(left)
                    codes.append(self._within(left, right, anchor, is_right=is_right))
            pair = (anchor.left, anchor.right)
            self._met[pair] = self._met.get(pair, 0) + met
        if codes:
            distinct = np.unique(np.concatenate(codes))
            left, right = distinct >> 31, distinct & 0x7FFFFFFF
            base = self._remembered.base
            for start in range(0, len(distinct), PAIRS_MAX):
                part = slice(start, start + PAIRS_MAX)
                yield left[part] + base, right[part] + base

    def _within(self, left: Ints, right: Ints, anchor: _Anchor, *, is_right: bool) -> Ints:
        """Return the pairs that an anchor's classes could hold in time, as codes."""
        base = self._remembered.base
        alive = (left >= base) & (right >= base) & (left != right)
        if not is_right:
            # The other half of a pair of two new instances was found from its right side.
            alive &= right < self._first
        left, right = left[alive], right[alive]
        span, follows = self._times(left, right)
        held = span <= anchor.window_us
        if not anchor.is_symmetric:
            held &= follows
        return ((left[held] - base) << 31) | (right[held] - base)

    def _all_pairs(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield every pair with a new instance: a class without a value join costs the product."""
        base, end = self._remembered.base, self._remembered.next_instance
        for new in range(self._first, end):
            others = np.arange(base, end)
            yield others[others != new], np.full(len(others) - 1, new)
            older = np.arange(base, self._first)
            yield np.full(len(older), new), older

    def _times(self, left: Ints, right: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return the smallest window that holds each pair, and whether the left one ends first.

        With `Y` the instance of the larger position and `X` the other: `T >= |R.end - L.end|` and
        `T >= W(Y) - A - X.end` (semantics, section 1.1).
        """
        take = self._remembered.take
        left_end, right_end = take("end_us", left), take("end_us", right)
        reach = np.where(
            self._is_later(left, right),
            take("watermark_us", left) - right_end,
            take("watermark_us", right) - left_end,
        )
        span = np.maximum(np.abs(right_end - left_end), reach - self._lateness_us)
        follows: npt.NDArray[np.bool_] = left_end < take("start_us", right)
        return span, follows

    def _is_later(self, left: Ints, right: Ints) -> npt.NDArray[np.bool_]:
        take, ids = self._remembered.take, self._remembered.published_ids
        docid1, docid2 = take("docid", left), take("docid", right)
        depth1, depth2 = take("depth", left), take("depth", right)
        later: npt.NDArray[np.bool_] = (docid1 > docid2) | ((docid1 == docid2) & (depth1 > depth2))
        for i in np.flatnonzero((docid1 == docid2) & (depth1 == depth2) & (depth1 > 0)):
            later[i] = ids[int(left[i])] > ids[int(right[i])]
        return later

    # -- signatures

    def _singles(self, stratum: int) -> TupleColumns:
        """Return the tuples of classes of one block."""
        new = np.arange(self._first, self.next_instance)
        layouts = self._remembered.take("layout", new)
        distinct, inverse = np.unique(layouts, return_inverse=True)
        entries = [self._entry(("single", int(k)), int(k), None, None) for k in distinct]
        self._view.complete(entries)
        zeros = np.zeros(len(new), np.int64)
        return self._tuples(stratum, new, None, zeros, zeros == 1, entries, inverse)

    def _entry(self, key: object, left: int, right: int | None, codes: Ints | None) -> Entry:
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= ENTRIES_MAX:
                self._entries.clear()
            layouts = self._layouts.layouts
            entry = self._entries[key] = Entry(
                layouts[left],
                None if right is None else layouts[right],
                np.zeros(0, np.int64) if codes is None else codes.copy(),
            )
        return entry

    def _pairs(self, stratum: int, left: Ints, right: Ints) -> TupleColumns:
        """Return the tuples on some pairs."""
        left_layout = self._remembered.take("layout", left).astype(np.int64)
        right_layout = self._remembered.take("layout", right).astype(np.int64)
        starts, codes = self._equal_slots(left, right, left_layout, right_layout)
        signatures = _signatures(starts, codes, left_layout, right_layout)
        _, firsts, inverse = np.unique(signatures, return_index=True, return_inverse=True)
        entries: list[Entry] = []
        for signature, i in zip(signatures[firsts].tolist(), firsts.tolist(), strict=True):
            layouts = (int(left_layout[i]), int(right_layout[i]))
            own = codes[starts[i] : starts[i + 1]]
            key = (signature, *layouts, len(own))
            entries.append(self._entry(key, *layouts, own))
        inverse = self._separate(entries, inverse, starts, codes, left_layout, right_layout)
        self._view.complete(entries)
        span, follows = self._times(left, right)
        return self._tuples(stratum, left, right, span, follows, entries, inverse)

    def _equal_slots(
        self, left: Ints, right: Ints, left_layout: Ints, right_layout: Ints
    ) -> tuple[Ints, Ints]:
        """Return the equal pairs of slots of each pair: where its codes start, and all codes."""
        counts = self._layouts.arrays.slot_counts
        left_count, right_count = counts[left_layout], counts[right_layout]
        products = left_count * right_count
        which = np.repeat(np.arange(len(left)), products)
        place = ranges(np.zeros(len(left), np.int64), products)
        width = np.repeat(right_count, products)
        i, j = np.divmod(place, np.maximum(width, 1))
        first, other = self._remembered.hashes
        at_left = self._remembered.slots(left)[which] + i
        at_right = self._remembered.slots(right)[which] + j
        equal = np.flatnonzero((first[at_left] == first[at_right]) & (first[at_left] != EMPTY))
        equal = equal[other[at_left[equal]] == other[at_right[equal]]]
        ends = np.searchsorted(which[equal], np.arange(len(left)), "right")
        return np.concatenate([[0], ends]), (i[equal] << 16) | j[equal]

    def _separate(
        self,
        entries: list[Entry],
        inverse: Ints,
        starts: Ints,
        codes: Ints,
        left_layout: Ints,
        right_layout: Ints,
    ) -> Ints:
        """Give pairs whose signature only hashed like an entry's an entry of their own."""
        counts = np.diff(starts)
        sizes = np.array([len(entry.codes) for entry in entries], np.int64)
        numbers = np.array([self._layout_codes(entry) for entry in entries], np.int64).reshape(
            -1, 2
        )
        wrong = (sizes[inverse] != counts) | (numbers[inverse, 0] != left_layout)
        wrong |= numbers[inverse, 1] != right_layout
        flat = np.concatenate([entry.codes for entry in entries]) if entries else codes
        expected = ranges((np.cumsum(sizes) - sizes)[inverse], np.where(wrong, 0, counts))
        mine = ranges(starts[:-1], np.where(wrong, 0, counts))
        differs = flat[expected] != codes[mine]
        wrong[np.repeat(np.arange(len(counts)), np.where(wrong, 0, counts))[differs]] = True
        inverse = inverse.copy()
        for i in np.flatnonzero(wrong).tolist():
            own = codes[starts[i] : starts[i + 1]]
            layouts = (int(left_layout[i]), int(right_layout[i]))
            inverse[i] = len(entries)
            entries.append(self._entry((tuple(own.tolist()), *layouts), *layouts, own))
        return inverse

    def _layout_codes(self, entry: Entry) -> tuple[int, int]:
        assert entry.right is not None
        return self._layouts.number(entry.left), self._layouts.number(entry.right)

    # -- tuples

    def _tuples(
        self,
        stratum: int,
        left: Ints,
        right: Ints | None,
        span: Ints,
        follows: npt.NDArray[np.bool_],
        entries: list[Entry],
        inverse: Ints,
    ) -> TupleColumns:
        """Expand pairs by their entries, and keep what time and residuals allow."""
        columns = TupleColumns.expand(left, right, span, entries, inverse)
        known = self.classes.by_number
        limits = {
            c: (self.classes.window_us(c), known[c].is_symmetric or right is None)
            for c in np.unique(columns.classes).tolist()
            if c in known and known[c].stratum == stratum
        }
        columns = columns.within(limits, follows)
        return self._residuals.filter(columns, self._remembered, entries)

    # -- the rest

    def evict(self, before_us: int) -> int:
        """Free instances that end before a time, lazily; return how many went."""
        return self._remembered.evict(before_us)

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self._remembered.instances(numbers)


def _slices(counts: Ints) -> Iterator[slice]:
    """Cut look-ups into slices of at most `PAIRS_MAX` hits, or of one look-up that has more."""
    ends = np.cumsum(counts)
    start, done = 0, 0
    while start < len(counts):
        stop = max(start + 1, int(np.searchsorted(ends, done + PAIRS_MAX, "right")))
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])


def _signatures(
    starts: Ints, codes: Ints, left_layout: Ints, right_layout: Ints
) -> npt.NDArray[np.uint64]:
    """Return a hash of each pair's layouts and set of equal slots."""
    mixed = _mix(codes.astype(np.uint64) + np.uint64(1))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    layouts = (left_layout.astype(np.uint64) << np.uint64(32)) | right_layout.astype(np.uint64)
    return _mix((total[starts[1:]] - total[starts[:-1]]) ^ _mix(layouts + np.uint64(1)))
