"""Random query sets and document streams that cover the whole language.

One generator serves two masters: Hypothesis, which shrinks, and a seeded `random.Random`, for long
runs that name a failing case by its number.  It writes a match case as text (see `support.kit`), so
that the parser is on trial too and a failing case can be kept as it stands.  `clause_coverage`
counts how often each clause of the language decides which matches there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from generators.choosers import Chooser, DrawnChooser, RandomChooser
from generators.mood import FOCI, Mood
from generators.random_documents import Documents
from generators.random_statements import Statements

__all__ = ["FOCI", "Generator", "case_texts", "random_case"]

LATENESSES = ("1 d", "1 d", "1 h", "10 m", "0 s")


@st.composite
def case_texts(draw: Any) -> str:
    """Return a strategy of cases as text."""
    return Generator(DrawnChooser(draw)).case()


def random_case(seed: int, foci: Sequence[str] = FOCI, *, wild: int = 20) -> str:
    """Return the case of a seed as text."""
    return Generator(RandomChooser(seed), wild=wild, foci=foci).case()


class Generator:
    """Writes documents and queries from the choices of a chooser; so many percent are wild."""

    def __init__(self, chooser: Chooser, *, wild: int = 20, foci: Sequence[str] = FOCI) -> None:
        self._mood = Mood(chooser, wild=wild, foci=foci)
        self._statements = Statements(self._mood)
        self._documents = Documents(self._mood, self._statements.words)

    def case(self) -> str:
        """Return a case, without expectations."""
        if self._mood.is_about("crowd"):
            return self._crowd()
        queries: list[str] = []
        published: list[str] = []
        for number in range(self._mood.integer(2 if self._mood.is_about("publish") else 1, 4)):
            queries.append(self._query(number, published))
            if f"PUBLISH P{number}" in queries[-1]:
                published.append(f"P{number}")
        if self._mood.rarely(15):
            queries.append(_again(self._mood.choice(queries), len(queries)))
        lines = [f"lateness {self.lateness()}", *queries]
        count = self._mood.choice((3, 5, 6, 7, 8, 9, 2))
        for number in range(len(queries)):
            if self._mood.chance(self._registered_late()):
                lines.append(f"register q{number} after {self._mood.integer(1, count // 2)}")
        lines += [self.document(number) for number in range(1, count + 1)]
        return "# Generated.\n" + "\n".join(lines) + "\n----\n"

    def _registered_late(self) -> int:
        """Return for how many of a hundred queries the first documents come too early."""
        if self._mood.is_about("register"):
            return 60
        return 25 if self._mood.is_about("publish") else 8

    def _crowd(self) -> str:
        """Return a case of two documents with more than a thousand pairs of equal values."""
        choose = self._mood
        residual = choose.choice(("", " AND v2 != 'y'", " AND v1/t != v3/t"))
        kind = choose.choice(("FOLLOWED BY", "JOIN"))
        select = choose.choice(("", " SELECT v1, v3", " SELECT v2"))
        from_ = f"S//i->v1[c->v2] {kind} {{v2 = v4{residual}, 1 h}} S//i->v3[c->v4]"
        lines = ["lateness 1 h", f"query q0\n    FROM {from_}{select}"]
        for number in (1, 2):
            values = "".join(f"<c>{choose.choice('xxxxxxxy')}</c>" for _ in range(38))
            lines.append(f"document {number} S 00:{number:02}  <i><t>{number}</t>{values}</i>")
        return "# Generated.\n" + "\n".join(lines) + "\n----\n"

    def lateness(self) -> str:
        """Return an allowed lateness."""
        return self._mood.choice(LATENESSES[2:] if self._mood.is_about("late") else LATENESSES)

    def document(self, number: int) -> str:
        """Return the line of a document."""
        return self._documents.line(number)

    def statement(self, number: int, published: Sequence[str]) -> str:
        """Return a query; it may read these published streams, and publish that of its number."""
        return self._statements.statement(number, published)

    def values(self, row: int) -> str:
        """Return values of the parameters of the statement that was written last: 0 or 1."""
        return self._statements.values(row)

    def _query(self, number: int, published: Sequence[str]) -> str:
        lines = [f"query q{number}", f"    {self.statement(number, published)}"]
        rows = self._mood.choice((2, 1, 2, 0)) if self._statements.has_parameters else 0
        return "\n".join([*lines, *(f"parameters q{number} {self.values(r)}" for r in range(rows))])


def _again(query: str, number: int) -> str:
    """Return a query that asks for the same under another id, with other names of variables."""
    text = re.sub(r" PUBLISH P\d", "", query)
    text = re.sub(r"^(query|parameters) q\d", rf"\1 q{number}", text, flags=re.MULTILINE)
    return re.sub(r"\bv(\d+)\b", r"w\1", text)
