"""The definitions of a plan, linked for evaluation: all its steps and variables.

They change one variable at a time: adding and removing a definition costs what stands at its step,
not what the plan holds.
"""

from __future__ import annotations

from collections import Counter

from xpath_eval.automaton import Transitions
from xpath_eval.catalog import Definition, EvaluationPlan
from xpath_eval.detail import detail_of
from xpath_eval.steps import AutomatonStep, StepGroup, StepKey, StepVariable
from xpath_eval.structure import Detail
from xscl.path import ANY, Axis, NodeTest, Path

__all__ = ["StepTree"]


class StepTree:
    """All steps and variables of a plan."""

    def __init__(self) -> None:
        self.variables: dict[int, StepVariable] = {}
        self.roots: dict[str, StepVariable] = {}
        self.steps: dict[int, AutomatonStep] = {}
        self.transitions = Transitions()
        self.changed: set[AutomatonStep] = set()
        """Steps below which something has changed since this was last cleared."""
        self._free: list[int] = []
        self._details: Counter[Detail] = Counter()
        self._prefiltered: dict[int, StepVariable] = {}

    @property
    def detail(self) -> Detail:
        """How much of a document's structure the definitions can tell apart."""
        return max((d for d, count in self._details.items() if count), default=Detail.NAMES)

    @property
    def step_count(self) -> int:
        """How many steps there are."""
        waiting = [root.step for root in self.roots.values() if root.step is not None]
        for step in waiting:
            waiting += step.below.values()
        return len(waiting)

    def replace(self, old: EvaluationPlan, new: EvaluationPlan) -> int:
        """Turn the tree of one plan into that of another; return how many definitions differ."""
        before, after = dict(old.definitions), dict(new.definitions)
        changed = {v for v, d in after.items() if not _is_same(before.get(v), d)}
        changed.update(v for v in before if v not in after)
        if changed and before:
            for variable in sorted(before.keys() | after.keys()):
                for definition in (before.get(variable), after.get(variable)):
                    if definition is not None and definition.parent in changed:
                        changed.add(variable)
        # A variable stands after the one above it in every plan.
        for variable in sorted(changed & before.keys(), reverse=True):
            self.remove(variable)
        for variable in sorted(changed & after.keys()):
            self.add(variable, after[variable])
        return len(changed)

    def admit(self, plan: EvaluationPlan) -> None:
        """Let prefilters through what a plan says; its definitions are there."""
        admitted = {(variable, each.prefilter): each for variable, each in plan.admitted}
        for variable in self._prefiltered.values():
            for prefilter, test in variable.prefilters.items():
                test.follow(admitted.get((variable.id, prefilter)))

    def add(self, id_: int, definition: Definition) -> None:
        """Add one definition, after the one above it."""
        pattern = definition.step
        if pattern is None:
            step: AutomatonStep | None = self._new_step(None, (Axis.CHILD, NodeTest(ANY), False))
            variable = StepVariable(id_, definition, None, step)
            self.roots[definition.stream] = variable
        else:
            parent = self.variables[definition.parent]
            step = None
            if pattern.derivation is None:
                assert parent.step is not None, "nothing stands below a derived value"
                key = (pattern.axis, pattern.test, pattern.is_deep)
                step = self._step(parent.step, key)
            variable = StepVariable(id_, definition, parent, step)
            self._hang(variable, parent)
            self._details[detail_of(pattern)] += 1
        self.variables[id_] = variable
        if variable.prefilters:
            self._prefiltered[id_] = variable
        if step is not None:
            step.uses += 1
            if variable.is_plain:
                step.plain = variable

    def remove(self, id_: int) -> None:
        """Remove one definition, after all below it."""
        variable = self.variables.pop(id_)
        self._prefiltered.pop(id_, None)
        pattern, parent, step = variable.definition.step, variable.parent, variable.step
        if pattern is None or parent is None:
            del self.roots[variable.definition.stream]
        else:
            self._unhang(variable, parent)
            self._details[detail_of(pattern)] -= 1
        if step is not None:
            if variable.is_plain:
                step.plain = None
            self._release(step)

    def _new_step(self, parent: AutomatonStep | None, key: StepKey) -> AutomatonStep:
        # Numbers of steps that are gone are given again, so that none is beyond what was needed.
        number = self._free.pop() if self._free else len(self.steps) + 1
        self.transitions.size = max(self.transitions.size, number + 1)
        step = self.steps[number] = AutomatonStep(number, parent, key)
        return step

    def add_path(self, step: AutomatonStep, path: Path) -> AutomatonStep:
        """Have the automaton follow a relative path from a step; return the step at its end."""
        for each in path.steps:
            step = self._step(step, (each.axis, each.test, each.is_deep))
        step.uses += 1
        return step

    def remove_path(self, end: AutomatonStep) -> None:
        """Undo `add_path`."""
        self._release(end)

    def _step(self, above: AutomatonStep, key: StepKey) -> AutomatonStep:
        step = above.below.get(key)
        if step is None:
            step = above.below[key] = self._new_step(above, key)
            above.uses += 1
            if step.is_followed:
                self.transitions.add(step)
                self.changed.add(above)
        return step

    def _release(self, step: AutomatonStep) -> None:
        step.uses -= 1
        above = step.parent
        if step.uses == 0:
            self.changed.add(step)
            del self.steps[step.number]
            self._free.append(step.number)
        if step.uses or above is None:
            return
        del above.below[step.axis, step.test, step.is_deep]
        if step.is_followed:
            self.transitions.remove(step)
            self.changed.add(above)
        self._release(above)

    def _hang(self, variable: StepVariable, parent: StepVariable) -> None:
        if variable.step is None:
            parent.derived.append(variable)
            return
        if variable.is_plain:
            return
        step = variable.step
        key = (step.axis, step.test, step.is_deep)
        group = parent.groups.get(key)
        if group is None:
            group = parent.groups[key] = StepGroup(parent, step)
            if parent.is_plain and step.is_followed:
                step.filtered.append(group)
        group.add(variable)

    def _unhang(self, variable: StepVariable, parent: StepVariable) -> None:
        if variable.step is None:
            parent.derived.remove(variable)
            return
        if variable.is_plain:
            return
        step = variable.step
        key = (step.axis, step.test, step.is_deep)
        group = parent.groups[key]
        group.remove(variable)
        if not group:
            del parent.groups[key]
            if parent.is_plain and step.is_followed:
                step.filtered.remove(group)


def _is_same(old: Definition | None, new: Definition) -> bool:
    return old is new or old == new
