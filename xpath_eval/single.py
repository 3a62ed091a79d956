"""Whether a variable selects one element: asked of few elements, upwards from each.

Where it is asked of all elements, sets of nodes answer it (`xpath_eval.nodesets`); they take tables
of the whole document first.
"""

from __future__ import annotations

from xpath_eval.nodesets import DOCUMENT, exact_name
from xpath_eval.steps import StepVariable
from xpath_eval.structure import Structure
from xscl.path import Condition, Exists, NodeTest, Path, matches_name

__all__ = ["SingleElements"]


class SingleElements:
    """Answers for variables whose ways are elements, with filters that are plain paths.

    Every answer is kept: a variable is asked once of an element, and so is each step of a filter.
    """

    def __init__(self, structure: Structure) -> None:
        self._names = structure.names
        self._parents = structure.parents
        self._ends = structure.ends
        self._exact: dict[int, str | None] = {}
        self._selected: dict[tuple[int, int], bool] = {}
        self._reached: dict[tuple[int, int, int], bool] = {}

    def is_selected(self, variable: StepVariable, element: int) -> bool:
        """Return whether a variable selects an element, filters and all."""
        step, parent = variable.step, variable.parent
        if step is None or parent is None or element == DOCUMENT:
            return parent is None and element == DOCUMENT
        key = variable.id, element
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = (
                self._passes(step.test, element)
                and all(self._holds(condition, element) for condition in variable.filters)
                and self._begins(parent, element, is_deep=step.is_deep)
            )
        return found

    def _begins(self, parent: StepVariable, element: int, *, is_deep: bool) -> bool:
        """Return whether a variable selects the parent, or an ancestor, of an element."""
        origin = self._parents[element]
        while is_deep and origin != DOCUMENT:
            if self.is_selected(parent, origin):
                return True
            origin = self._parents[origin]
        return self.is_selected(parent, origin)

    def _holds(self, condition: Condition, element: int) -> bool:
        assert isinstance(condition, Exists)
        return self._reaches(condition.path, 0, element)

    def _reaches(self, path: Path, place: int, element: int) -> bool:
        """Return whether the steps of a path from one on select something from an element."""
        if place == len(path.steps):
            return True
        key = id(path), place, element
        found = self._reached.get(key)
        if found is None:
            found = self._reached[key] = self._finds(path, place, element)
        return found

    def _finds(self, path: Path, place: int, element: int) -> bool:
        step, below, end = path.steps[place], element + 1, self._ends[element]
        while below < end:
            if self._passes(step.test, below) and self._reaches(path, place + 1, below):
                return True
            below = below + 1 if step.is_deep else self._ends[below]
        return False

    def _passes(self, test: NodeTest, element: int) -> bool:
        key = id(test)
        if key not in self._exact:
            self._exact[key] = exact_name(test)
        exact, name = self._exact[key], self._names[element]
        return matches_name(test, name) if exact is None else name == exact
