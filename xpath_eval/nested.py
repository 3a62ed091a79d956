"""Paths with nested paths, thousands at a time.

`/nitf[head/pubdata]/body//org` asks on its way whether something else is there.  Which elements
pass such a filter differs from document to document, so no automaton over names alone can carry
the answer.  But names alone say nearly all of it.  The filter's path, hung below the step that it
filters, is a path like any other, and the automaton follows it:

    place   the elements that the filtered step selects by names alone:   /nitf
    end     those that the filter's path selects from there:              /nitf/head/pubdata

A filter at one place, with its end, is a **guard**; a set of guards is an integer.  Two passes:

- upwards, the ends in the subtree of each element: at an element of a place, the guard holds if
  there is one of its ends;
- downwards, the guards that hold at an element or above it.  With the state of the element they
  say which variables select it, and that is kept: a document of which each element has been met
  with the same guards costs a look-up for each.

This says it all as long as no element of a place is inside another one.  Where that is so
(`//div[p]/a` with a `div` inside a `div`), the variables that need the guard are looked at one by
one, at each element that they may select.

Cost: some five operations on integers of one bit for each guard, for each element.
Bounds: what is kept is dropped together when it takes `bytes_max`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from xpath_eval.single import SingleElements
from xpath_eval.steps import AutomatonStep, StepVariable
from xpath_eval.steptree import StepTree
from xpath_eval.structure import Structure
from xscl.path import Axis, Condition, Exists, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Ids = NDArray[np.int32]
    Flags = NDArray[np.bool_]

__all__ = ["NestedOutput", "NestedPatterns", "is_nested"]

ENTRY_BYTES = 300
"""What a kept answer takes beside the bits of its key and its variables."""


def is_nested(variable: StepVariable) -> bool:
    """Return whether a variable's way consists of elements and of filters that are plain paths."""
    is_filtered = False
    above: StepVariable | None = variable
    while above is not None and above.parent is not None:
        if above.step is None or not above.step.is_followed:
            return False
        if above.prefilters or not all(map(_is_plain_path, above.filters)):
            return False
        is_filtered = is_filtered or bool(above.filters)
        above = above.parent
    return is_filtered


def _is_plain_path(condition: Condition) -> bool:
    return (
        isinstance(condition, Exists)
        and bool(condition.path.steps)
        and all(_is_plain_step(step) for step in condition.path.steps)
    )


def _is_plain_step(step: Step) -> bool:
    return step.axis is Axis.CHILD and not step.test.is_text and not step.predicates


class NestedOutput:
    """What a state says of nested paths.

    `variables` are those that names select, a column of `guards` those on the way of one, `needed`
    all of these; `ends` and `own` are the guards of which an element is an end, and at whose place
    it is.  `kept` are the variables that pass, by those of the needed guards that hold.
    """

    __slots__ = ("ends", "guards", "kept", "needed", "own", "variables")

    def __init__(self, variables: Ids, guards: Numbers, needed: int, ends: int, own: int) -> None:
        self.variables = variables
        self.guards = guards
        self.needed = needed
        self.ends = ends
        self.own = own
        self.kept: dict[int, Ids] = {}


class NestedPatterns:
    """The variables that are followed together.

    Variables and guards are numbered here; guard 0 always holds.  `_guards[i]` are the i-th guards
    of all variables, by their ids.
    """

    def __init__(self, tree: StepTree, bytes_max: int) -> None:
        self._tree = tree
        self._bytes_max = bytes_max
        self.variables: tuple[StepVariable, ...] = ()
        self._paths: list[AutomatonStep] = []
        self._kept_bytes = 0
        self._outputs: list[NestedOutput] = []
        self._number({}, [])

    def follow(self, variables: Sequence[StepVariable]) -> None:
        """Follow these variables, and no others, from now on; outputs until now are worthless."""
        self._outputs, self._kept_bytes = [], 0
        if self.variables == tuple(variables):
            return
        gone, self._paths = self._paths, []
        self.variables = tuple(variables)
        guards: dict[tuple[AutomatonStep, AutomatonStep], int] = {}
        needed = [self._guards_of(variable, guards) for variable in variables]
        for end in gone:
            self._tree.remove_path(end)
        self._number(guards, needed)

    def _guards_of(
        self, variable: StepVariable, guards: dict[tuple[AutomatonStep, AutomatonStep], int]
    ) -> list[int]:
        found: list[int] = []
        above: StepVariable | None = variable
        while above is not None and (step := above.step) is not None:
            for condition in above.filters:
                assert isinstance(condition, Exists)
                end = self._tree.add_path(step, condition.path)
                self._paths.append(end)
                found.append(guards.setdefault((step, end), len(guards) + 1))
            above = above.parent
        return found

    def _number(
        self,
        guards: dict[tuple[AutomatonStep, AutomatonStep], int],
        needed: Sequence[Sequence[int]],
    ) -> None:
        self._ids = np.array([variable.id for variable in self.variables], np.int32)
        self._number_of = np.zeros(max(self._ids, default=0) + 1, np.int32)
        self._number_of[self._ids] = np.arange(len(self._ids))
        rows = list(zip_longest(*needed, fillvalue=0))
        self._guards = np.zeros((len(rows), len(self._number_of)), np.int64)
        self._guards[:, self._ids] = np.array(rows, np.int64).reshape(len(rows), len(self._ids))
        self._octets = len(guards) // 8 + 1
        steps = [variable.step for variable in self.variables]
        self._steps = np.array([step.number for step in steps if step is not None], np.int64)
        # There is no step 0, where guard 0 would stand.
        self._places = np.array([0, *(place.number for place, _ in guards)], np.int64)
        self._ends = np.array([0, *(end.number for _, end in guards)], np.int64)

    def output(self, selected: Flags) -> NestedOutput:
        """Return what it means for an element that these steps select it."""
        variables = self._ids[np.flatnonzero(selected[self._steps])]
        guards = self._guards[:, variables]
        guards = guards[guards.any(axis=1)]
        needed = np.zeros(len(self._ends), np.bool_)
        needed[guards] = True
        return NestedOutput(
            variables,
            guards,
            _number_of(needed),
            _number_of(selected[self._ends]),
            _number_of(selected[self._places]),
        )

    def find(self, structure: Structure, outputs: Sequence[NestedOutput]) -> list[Ids]:
        """Return the variables that select each element, in order.

        `outputs` are those of the states of the elements.
        """
        ends = _go_up(structure.counts, outputs)
        rows, inside = self._go_down(structure.counts, outputs, ends)
        if inside:
            self._look(structure, outputs, inside, rows)
        return rows

    def _go_down(
        self, counts: Sequence[int], outputs: Sequence[NestedOutput], ends: Sequence[int]
    ) -> tuple[list[Ids], int]:
        """Return the variables that select each element, and guards in doubt.

        Those have a place inside another one of theirs, and an end below the outer one.
        """
        rows: list[Ids] = []
        holding, left, inside = 1, 1, 0
        waiting: list[tuple[int, int]] = []
        for element, (output, count) in enumerate(zip(outputs, counts, strict=True)):
            below = holding
            if own := output.own:
                inside |= own & holding
                below |= own & ends[element]
            if needed := output.needed:
                needed &= below
                row = output.kept.get(needed)
                if row is None:
                    row = self._keep(output, needed)
                rows.append(row)
            else:
                rows.append(_NOBODY)
            left -= 1
            if count:
                waiting.append((holding, left))
                holding, left = below, count
            while not left and waiting:
                holding, left = waiting.pop()
        return rows, inside

    def _keep(self, output: NestedOutput, holding: int) -> Ids:
        """Return the variables of an output that pass with these guards."""
        passed = self._flags(holding)[output.guards].all(axis=0)
        if self._kept_bytes > self._bytes_max:
            for each in self._outputs:
                each.kept.clear()
            self._outputs, self._kept_bytes = [], 0
        if not output.kept:
            self._outputs.append(output)
        kept = output.kept[holding] = output.variables[passed]
        self._kept_bytes += ENTRY_BYTES + self._octets + kept.nbytes
        return kept

    def _flags(self, guards: int) -> Flags:
        octets = np.frombuffer(guards.to_bytes(self._octets, "little"), np.uint8)
        return np.unpackbits(octets, bitorder="little").view(np.bool_)

    def _look(
        self,
        structure: Structure,
        outputs: Sequence[NestedOutput],
        doubtful: int,
        rows: list[Ids],
    ) -> None:
        """Drop the elements that variables do not select, where they need one of some guards."""
        elements = [e for e, output in enumerate(outputs) if output.needed & doubtful]
        if not elements:
            return
        ids = np.concatenate([rows[element] for element in elements])
        places = np.repeat(elements, [len(rows[element]) for element in elements])
        which = np.flatnonzero(self._flags(doubtful)[self._guards[:, ids]].any(axis=0))
        singles = SingleElements(structure)
        wrong: dict[int, set[int]] = {}
        numbers = self._number_of[ids[which]].tolist()
        for number, element in zip(numbers, places[which].tolist(), strict=True):
            variable = self.variables[number]
            if not singles.is_selected(variable, element):
                wrong.setdefault(element, set()).add(variable.id)
        for element, variables in wrong.items():
            kept = [variable for variable in rows[element].tolist() if variable not in variables]
            rows[element] = np.array(kept, np.int32)


_NOBODY = np.empty(0, np.int32)


def _number_of(flags: Flags) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _go_up(counts: Sequence[int], outputs: Sequence[NestedOutput]) -> list[int]:
    """Return the guards that have an end in the subtree of each element."""
    found = [0] * len(counts)
    waiting: list[int] = []
    for element in range(len(counts) - 1, -1, -1):
        ends = outputs[element].ends
        if count := counts[element]:
            for below in waiting[-count:]:
                ends |= below
            del waiting[-count:]
        waiting.append(ends)
        found[element] = ends
    return found
