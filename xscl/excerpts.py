"""Those parts of a document that a condition of a node reads, whatever data it has.

`[not(entry[author = $x][price < $y])]` asks of each entry its authors and its prices, together.  So
an **excerpt** is the tree of the node without all else: it has the nodes that the paths of a
condition select without their predicates, what is above them, and all that is within those whose
texts are compared.  Of it the condition says what it says of the node.  What leads upwards, or
counts where the node itself stands, `author[. = $x][2]`, is asked of the tree of the document, and
of the place in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
    Value,
    node_test,
)

__all__ = ["excerpt_read_by"]

Steps = tuple[Step, ...]


class _UnknownReadingError(Exception):
    """Nobody knows what a condition reads."""


def excerpt_read_by(step: Step) -> Excerpt | None:
    """Return what the predicates of a step read of the document; None if that is not all they read.

    Positions count the nodes that the step selects from the parent, which are read then.
    """
    reading = _ReadByCondition()
    above: Steps = () if step.axis is Axis.SELF else (_PARENT,)
    try:
        reading.paths.add(reading.path(Path((replace(step, is_deep=False),)), above))
    except _UnknownReadingError:
        return None
    return reading.excerpt()


_PARENT = Step(Axis.PARENT, node_test(ANY, ANY))


@dataclass(slots=True)
class _ReadByCondition:
    """What is gathered while a condition is looked through: paths of names."""

    paths: set[Path] = field(default_factory=set)
    texts: set[Path] = field(default_factory=set)

    def excerpt(self) -> Excerpt:
        """Return all that has been gathered; what a longer path leads through is in that."""
        longer = {
            path.steps[:i] for path in self.paths | self.texts for i in range(len(path.steps))
        }
        alone = (each for each in self.paths - self.texts if each.steps not in longer)
        paths, texts = (tuple(sorted(each, key=repr)) for each in (alone, self.texts))
        return Excerpt(paths, texts)

    def condition(self, condition: Condition, above: Steps) -> None:
        match condition:
            case Exists(path):
                self.paths.add(self.path(path, above))
            case Comparison(left=left, right=right):
                self.value(left, above)
                self.value(right, above)
            case StringTest(value=value, argument=argument):
                self.value(value, above)
                self.value(argument, above)
            case And(conditions) | Or(conditions):
                for each in conditions:
                    self.condition(each, above)
            case Not(inner):
                self.condition(inner, above)
            case Opaque(reads=Excerpt(paths, texts)):
                self.paths.update(Path(_behind(above, each.steps)) for each in paths)
                self.texts.update(Path(_behind(above, each.steps)) for each in texts)
            case Position():
                pass
            case _:
                raise _UnknownReadingError

    def value(self, value: Value, above: Steps) -> None:
        match value:
            case PathValue(path):
                self.texts.add(self.path(path, above))
            case FunctionValue(arguments=arguments):
                for each in arguments:
                    self.value(each, above)
            case Literal() | Parameter():
                pass
            case _:
                raise _UnknownReadingError

    def path(self, path: Path, above: Steps) -> Path:
        """Return a path without predicates, behind what is above, when those are gathered."""
        for step in path.steps:
            if step.axis is not Axis.SELF or step.is_deep:
                above = (*above, Step(step.axis, step.test, step.is_deep))
            for each in step.predicates:
                self.condition(each, above)
        return Path(above)


def _behind(above: Steps, steps: Steps) -> Steps:
    """Return steps behind others; what begins at the document node does so from anywhere."""
    is_absolute = bool(steps) and steps[0].axis is Axis.DOCUMENT
    return steps if is_absolute else (*above, *steps)
