"""What evaluation goes along: steps, and the variables that stand at them.

A **step** is a definition without its filters, and without those of the variables above it: what
names alone say.  So `//item[contains(title, 'a')]/author` and `//item[@id]/author` share two
steps, and the automaton runs over steps.  A **variable** stands at one step.  It is *plain* if no
variable on its way has a filter or leaves the elements; then the automaton alone says which nodes
it selects.

Variables of one parent at one step form a **group**: they select from the same candidates and
differ in their filters only.  A group keeps those filters by kind:

- none: one variable selects all candidates;
- of structure: each is decided once for each raw shape;
- of text: an index of tests finds the variables that some candidate may satisfy
  (`xpath_eval.testindex`); the others are never looked at;
- of all who share it: a variable with prefilters selects all candidates that pass its filters, if
  each prefilter holds at some candidate, else none.  Such variables are few.
"""

from __future__ import annotations

from typing import NamedTuple

from xpath_eval.catalog import Definition
from xpath_eval.conditions import Filters, needs_values
from xpath_eval.nodesets import exact_name
from xpath_eval.prefilters import AdmissionTest
from xpath_eval.testindex import TestIndex
from xscl.path import Axis, Condition, Exists, NodeTest, counts_positions
from xscl.pattern import Prefilter

__all__ = ["AutomatonStep", "StepGroup", "StepKey", "StepVariable", "Structural"]

StepKey = tuple[Axis, NodeTest, bool]


class AutomatonStep:
    """One step of the tree of steps; `is_followed` if the automaton runs through it.

    `plain` is the plain variable at it, `filtered` are the groups at it whose parents are plain.
    The walk wants to know the nodes of `watched` steps.
    """

    __slots__ = (
        "axis",
        "below",
        "filtered",
        "is_deep",
        "is_followed",
        "number",
        "parent",
        "plain",
        "test",
        "uses",
        "watched",
    )

    def __init__(self, number: int, parent: AutomatonStep | None, key: StepKey) -> None:
        self.number = number
        self.parent = parent
        self.axis, self.test, self.is_deep = key
        self.uses = 0
        self.watched = False
        self.plain: StepVariable | None = None
        self.filtered: list[StepGroup] = []
        self.below: dict[StepKey, AutomatonStep] = {}
        self.is_followed: bool = parent is None or (
            parent.is_followed and self.axis is Axis.CHILD and not self.test.is_text
        )


class StepVariable:
    """One definition; `groups` are those of its variables below that are not plain.

    What is wanted of it is noted here too.  `highs` are the variables from which it is wanted.  One
    that `is_labelled` has its edge to itself from elsewhere; the walk goes through one that
    `is_walked`, and begins at plain ones that are `is_asked`.  `prefilters` say what these let
    through now.
    """

    __slots__ = (
        "counts_positions",
        "definition",
        "derived",
        "groups",
        "highs",
        "id",
        "is_asked",
        "is_labelled",
        "is_plain",
        "is_walked",
        "parent",
        "prefilters",
        "step",
    )

    def __init__(
        self,
        id_: int,
        definition: Definition,
        parent: StepVariable | None,
        step: AutomatonStep | None,
    ) -> None:
        self.id = id_
        self.definition = definition
        self.parent = parent
        self.step = step
        self.highs: list[int] = []
        self.is_walked = False
        self.is_asked = False
        self.is_labelled = False
        self.groups: dict[StepKey, StepGroup] = {}
        self.derived: list[StepVariable] = []
        self.counts_positions = any(map(counts_positions, self.filters))
        pattern = definition.step
        self.prefilters: dict[Prefilter, AdmissionTest] = {
            each: AdmissionTest(each) for each in (pattern.prefilters if pattern else ())
        }
        self.is_plain: bool = (
            step is not None
            and step.is_followed
            and not self.filters
            and not self.prefilters
            and (parent is None or parent.is_plain)
        )

    def unwatch(self) -> None:
        """Forget what is wanted of it."""
        self.highs.clear()
        self.is_walked = self.is_asked = self.is_labelled = False
        for group in self.groups.values():
            group.is_walked = group.is_open = False
        if self.step is not None:
            self.step.watched = False

    def walk(self) -> None:
        """Have the walk come here, from the variable above."""
        self.is_walked = True
        parent, step = self.parent, self.step
        if step is not None:
            step.watched = True
        if self.is_plain or parent is None:
            self.is_asked = True
            return
        if parent.is_plain and (step is None or not step.is_followed):
            parent.is_asked = True
            if parent.step is not None:
                parent.step.watched = True
        elif not parent.is_plain and not parent.is_walked:
            parent.walk()
        if step is not None:
            group = parent.groups[step.axis, step.test, step.is_deep]
            group.is_walked = True
            group.is_open = group.is_open or self.id in group.open

    @property
    def filters(self) -> Filters:
        """The filters of the step that leads here."""
        return () if self.definition.step is None else self.definition.step.filters


class Structural(NamedTuple):
    """A variable whose filters ask for structure, and a name that must occur for it to hold."""

    variable: StepVariable
    name: str | None


class StepGroup:
    """The variables of one parent at one step, by what their filters ask.

    The walk looks at a group that `is_walked`, and asks about one that `is_open`.
    """

    __slots__ = (
        "free",
        "index",
        "is_open",
        "is_walked",
        "open",
        "parent",
        "prefiltered",
        "step",
        "structural",
    )

    def __init__(self, parent: StepVariable, step: AutomatonStep) -> None:
        self.parent = parent
        self.step = step
        self.is_walked = False
        self.is_open = False
        self.free: StepVariable | None = None
        self.structural: dict[int, Structural] = {}
        self.open: dict[int, StepVariable] = {}
        self.prefiltered: dict[int, StepVariable] = {}
        self.index = TestIndex()

    def __bool__(self) -> bool:
        return self.free is not None or bool(self.structural) or bool(self.open)

    def add(self, variable: StepVariable) -> None:
        """Take in a variable, which is not plain."""
        if variable.prefilters:
            self.open[variable.id] = self.prefiltered[variable.id] = variable
        elif not variable.filters:
            self.free = variable
        elif any(map(needs_values, variable.filters)):
            self.open[variable.id] = variable
            self.index.add(variable.id, variable.filters)
        else:
            name = next(filter(None, map(_needed_name, variable.filters)), None)
            self.structural[variable.id] = Structural(variable, name)

    def remove(self, variable: StepVariable) -> None:
        """Undo `add`."""
        if variable.prefilters:
            del self.open[variable.id], self.prefiltered[variable.id]
        elif not variable.filters:
            self.free = None
        elif self.open.pop(variable.id, None) is not None:
            self.index.remove(variable.id, variable.filters)
        else:
            del self.structural[variable.id]


def _needed_name(condition: Condition) -> str | None:
    """Return the name of an element without which the condition cannot hold, if there is one."""
    if isinstance(condition, Exists):
        for step in reversed(condition.path.steps):
            if step.axis is Axis.CHILD and not step.test.is_text:
                return exact_name(step.test)
    return None
