"""The values of documents that conditions with written-out constants test, document by document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from broker.matching.boxes.columns import Doubles, Flags, Ints
from broker.matching.boxes.operands import Operands
from broker.matching.boxes.points import Rows
from joins import Positions
from templates.box import Test
from xpath_eval.textindex import TextIndex
from xscl.evaluation import values_of_optional
from xscl.functions import to_double
from xscl.pattern import INEQUALITIES
from xscl.texttests import NEGATED, TEXT_TESTS

__all__ = ["DocumentValues"]


class DocumentValues:
    """The values at one place of some documents, of all nodes that a variable binds there.

    `tests` are all that will be asked.
    """

    def __init__(
        self,
        rows: Rows,
        variable: int,
        documents: Ints,
        positions: Positions,
        tests: Collection[Test],
    ) -> None:
        distinct, self._inverse = np.unique(documents, return_inverse=True)
        operands = Operands.of(rows(distinct.tolist()))
        index, at = positions(variable, distinct)
        self._nodes: list[list[list[str]]] = [[] for _ in distinct]
        is_of_several = any(test.is_of_several for test in tests)
        for document, text in zip(
            index.tolist(), operands.texts(operands.starts[index] + at), strict=True
        ):
            if text is not None:
                texts = list(values_of_optional(text)) if is_of_several else [text]
                self._nodes[document].append(texts)
        self._texts = [[text for texts in nodes for text in texts] for nodes in self._nodes]
        self._with_words = self._find_words(tests)

    def _find_words(self, tests: Collection[Test]) -> Mapping[Test, Sequence[int]]:
        """Return the documents with what each test looks for in texts."""
        index = TextIndex[Test]()
        negated: set[Test] = set()
        for test in tests:
            operator = test.operator.removeprefix(NEGATED)
            if operator in TEXT_TESTS:
                index.add(operator, str(test.data), test)
                if operator != test.operator:
                    negated.add(test)
        found: dict[Test, list[int]] = {}
        for document, nodes in enumerate(self._nodes if len(index) else ()):
            fulfilled: set[Test] = set()
            for texts in nodes:
                fulfilled |= index.found(texts) ^ negated
            for test in fulfilled:
                found.setdefault(test, []).append(document)
        return found

    @cached_property
    def _extremes(self) -> tuple[Doubles, Doubles]:
        """The least number of each document, and the greatest."""
        numbers = [[n for n in map(to_double, each) if n == n] for each in self._texts]
        least = np.array([min(each, default=np.nan) for each in numbers], np.float64)
        greatest = np.array([max(each, default=np.nan) for each in numbers], np.float64)
        return least, greatest

    def fulfil(self, test: Test) -> Flags:
        """Return which documents fulfil a test by some node."""
        operator, data = test.operator, test.data
        assert isinstance(data, (str, float)), "it is written out"
        held: Flags
        if operator.removeprefix(NEGATED) in TEXT_TESTS:
            held = np.zeros(len(self._texts), np.bool_)
            held[np.array(self._with_words.get(test, ()), np.int64)] = True
        elif operator in INEQUALITIES:
            compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
            held = compare[operator](self._extremes[operator[0] == ">"], to_double(data))
        elif operator == "!=":
            held = np.array([any(t != data for t in each) for each in self._texts], np.bool_)
        else:
            equal = [any(to_double(t) == data for t in each) for each in self._texts]
            held = np.array(equal, np.bool_)
        return held[self._inverse]
