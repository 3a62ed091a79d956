"""The automaton of a plan as text, and as a drawing for Graphviz.

>>> from xpath_eval.catalog import PatternCatalog
>>> import xscl
>>> from xscl.treepattern import tree_pattern
>>> catalog = PatternCatalog()
>>> for query in xscl.parse("S//item[contains(title, 'x')]; S//item/author; S//item"):
...     pattern = tree_pattern(query.blocks[0], ())
...     variable = catalog.add(pattern)[-1]
...     catalog.want([(variable, variable)], ())
>>> print(describe(catalog.plan()))
S
  //item  v2
    filter v1: contains(title, 'x')
    /author  v3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xpath_eval.catalog import EvaluationPlan
from xpath_eval.steps import AutomatonStep, StepVariable
from xpath_eval.steptree import StepTree
from xscl.canonical import render_number, render_string
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Excerpt,
    Exists,
    FunctionValue,
    Literal,
    NodeTest,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    StringTest,
    Value,
    XPathValue,
)

__all__ = ["describe", "describe_dot", "value_text"]

Names = Mapping[int, str]


def describe(plan: EvaluationPlan, names: Names | None = None) -> str:
    """Return the steps of a plan as an indented text; `names` are those of variables.

    A line is a step and the variable that takes it without a filter; variables with filters stand
    below it, each with what it asks.
    """
    tree = _tree(plan)
    at = _variables_at(tree)
    lines: list[str] = []
    for stream, root in sorted(tree.roots.items()):
        lines.append(stream)
        if root.step is not None:
            lines += _lines(root.step, at, names or {}, 1)
    return "\n".join(lines)


def describe_dot(plan: EvaluationPlan, names: Names | None = None) -> str:
    """Return the automaton of a plan as a graph in the DOT language.

    Nodes are steps, doubly drawn where some variable is bound; edges are labelled with the node
    test, dashed where `//` stands before it.
    """
    tree = _tree(plan)
    at = _variables_at(tree)
    lines = ["digraph automaton {", "  rankdir=LR;", '  node [shape=circle, label=""];']
    for stream, root in sorted(tree.roots.items()):
        if root.step is not None:
            lines.append(f"  s{root.step.number} [shape=box, label={_quoted(stream)}];")
            lines += _dot(root.step, at, names or {})
    return "\n".join([*lines, "}"])


def _tree(plan: EvaluationPlan) -> StepTree:
    tree = StepTree()
    tree.replace(EvaluationPlan((), (), frozenset()), plan)
    return tree


def _variables_at(tree: StepTree) -> dict[int, list[StepVariable]]:
    at: dict[int, list[StepVariable]] = {}
    for _, variable in sorted(tree.variables.items()):
        step = variable.step
        if step is None and variable.parent is not None:
            step = variable.parent.step
        if step is not None and variable.parent is not None:
            at.setdefault(step.number, []).append(variable)
    return at


def _lines(
    step: AutomatonStep, at: Mapping[int, list[StepVariable]], names: Names, level: int
) -> Iterator[str]:
    indent = "  " * level
    for below in sorted(step.below.values(), key=lambda each: each.number):
        variables = at.get(below.number, [])
        free = [v for v in variables if not v.filters and v.step is not None]
        yield "  ".join([indent + _step(below), *(_name(v, names) for v in free)])
        for variable in variables:
            if variable.step is None:
                yield f"{indent}  value {_name(variable, names)}"
            elif variable.filters:
                asked = " and ".join(map(condition_text, variable.filters))
                yield f"{indent}  filter {_name(variable, names)}: {asked}"
        yield from _lines(below, at, names, level + 1)


def _dot(step: AutomatonStep, at: Mapping[int, list[StepVariable]], names: Names) -> Iterator[str]:
    for below in sorted(step.below.values(), key=lambda each: each.number):
        variables = at.get(below.number, [])
        if variables:
            label = _quoted("\n".join(_name(v, names) for v in variables))
            yield f"  s{below.number} [shape=doublecircle, label={label}];"
        style = ", style=dashed" if below.is_deep else ""
        yield f"  s{step.number} -> s{below.number} [label={_quoted(_step(below))}{style}];"
        yield from _dot(below, at, names)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _name(variable: StepVariable, names: Names) -> str:
    return names.get(variable.id, f"v{variable.id}")


def _step(step: AutomatonStep) -> str:
    return ("//" if step.is_deep else "/") + _test(step.axis, step.test)


def _test(axis: Axis, test: NodeTest) -> str:
    if axis in _UNNAMED:
        return _UNNAMED[axis]
    if test.is_text:
        return "text()"
    name = test.name
    if test.namespace == ANY and test.name != ANY:
        name = f"*:{name}"
    elif test.namespace not in (None, ANY):
        name = f"{{{test.namespace}}}{name}"
    return f"{_BEFORE_NAMES.get(axis, '')}{name}"


_UNNAMED = {Axis.SELF: ".", Axis.PARENT: "..", Axis.DOCUMENT: ""}
_BEFORE_NAMES = {Axis.ATTRIBUTE: "@", Axis.ANCESTOR: "ancestor-or-self::"}


def _path(path: Path) -> str:
    text = ""
    for i, step in enumerate(path.steps):
        before = ("//" if i else ".//") if step.is_deep else ("/" if i else "")
        text += before + _test(step.axis, step.test)
        text += "".join(f"[{condition_text(each)}]" for each in step.predicates)
    return text or ("/" if path.steps else ".")


def condition_text(condition: Condition) -> str:
    """Return a condition as it could have been written."""
    match condition:
        case Exists(path):
            return _path(path)
        case Comparison(left, operator, right):
            return f"{value_text(left)} {operator} {value_text(right)}"
        case StringTest(function, value, argument, flags):
            arguments = [value, argument, *([Literal(flags)] if flags else ())]
            return f"{function}({', '.join(map(value_text, arguments))})"
        case And(conditions):
            return f"({' and '.join(map(condition_text, conditions))})"
        case Or(conditions):
            return f"({' or '.join(map(condition_text, conditions))})"
        case Not(inner):
            return f"not({condition_text(inner)})"
        case Opaque(expression):
            return f"{expression} (XPath 1.0, by itself)"
        case Position():
            return _position(condition)
    raise AssertionError(condition)


def _position(condition: Position) -> str:
    side = "last()" if condition.is_size else "position()"
    wanted = condition.number
    number = f"${wanted.name}" if isinstance(wanted, Parameter) else render_number(wanted)
    if condition.of_last:
        number = "last()" if wanted == 0 else f"last() - {number}"
    return f"{side} {condition.operator} {number}"


def value_text(value: Value) -> str:
    """Return what a condition compares as it could have been written."""
    match value:
        case PathValue(path):
            return _path(path)
        case XPathValue(path, expression):
            return f"{_path(path)}/({expression})" if path.steps else expression
        case Literal(str() as text):
            return render_string(text)
        case Literal(float() as number):
            return render_number(number)
        case FunctionValue(function, arguments):
            return f"{function}({', '.join(map(value_text, arguments))})"
        case Excerpt(paths, texts):
            return f"excerpt({', '.join(map(_path, (*paths, *texts)))})"
        case Parameter(name):
            return f"${name}"
    raise AssertionError(value)
