"""Random cases of similarity: texts in all scripts, measures and thresholds, as case texts.

Texts are cut from few words, so that thresholds fall on exact scores; some are empty, equal, of one
word, or of thousands.
"""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from generators.choosers import Chooser

__all__ = ["decided_similar_case", "similar_case", "similar_text"]

WORDS = (
    "harbour",
    "Harbour",
    "ship",
    "storm",
    "ﬁre",
    "fire",
    "Straße",
    "STRASSE",
    "naïve",
    "nai\u0308ve",
    "東京",
    "東京タワー",
    "タワー",
    "字",
    "ภาษา",
    "ຂ້ອຍ",
    "ខ្មែរ",
    "မြန်မာ",
    "서울",
    "дом",
    "Дом",
    "بيت",
    "2026",
    "x²",
    "a_b",
    "AI技術2",
    "—",
    "❤\ufe0f",
)
THRESHOLDS = {
    "jaccard": (0.5, 0.6, 1 / 3, 2 / 3, 0.8, 0.25, 1, 0, 5 / 9, 0.9),
    "containment": (0.5, 1 / 3, 2 / 3, 0.8, 1, 0),
    "overlap": (1, 2, 3, 0, 1.5),
}
OPERATORS = (">=", ">=", ">=", ">", ">", "<", "=", "<=")


def similar_case(chooser: Chooser) -> str:
    """Return a case, without expectations."""
    return _spelled(_Case(chooser))


def decided_similar_case(chooser: Chooser) -> str:
    """Return a case in which something is decided by similarity, without expectations."""
    return _spelled(_Case(chooser, decides=True))


def _spelled(case: _Case) -> str:
    chooser = case.chooser
    queries = [case.query(number) for number in range(chooser.integer(1, 3))]
    lines = [f"lateness {chooser.choice(['1 d', '1 h', '10 m'])}", *queries]
    lines += [case.document(number + 1) for number in range(chooser.integer(2, 9))]
    if case.is_ordered:
        lines.append(f"tick {len(lines) - len(queries)} 2026-01-03T00:00")
    return "\n".join(["# similar", *lines, "----", ""])


def similar_text(chooser: Chooser) -> str:
    """Return a text of such a case."""
    return _Case(chooser).text()


class _Case:
    def __init__(self, chooser: Chooser, *, decides: bool = False) -> None:
        self.chooser = chooser
        self.decides = decides
        self.is_ordered = False
        self.parameters: list[str] = []

    # -- documents ---------------------------------------------------------------------------

    def document(self, number: int) -> str:
        minute = self.chooser.integer(0, 90)
        titles = "".join(
            f"<t>{escape(self.text())}</t>" for _ in range(self.chooser.choice([1, 1, 1, 2, 0]))
        )
        language = self.chooser.choice(["en", "de"])
        stream = self.chooser.choice(["S", "S", "T"])
        xml = f"<i><l>{language}</l>{titles}</i>"
        return f"document {number} {stream} {12 + minute // 60}:{minute % 60:02}  {xml}"

    def text(self) -> str:
        kind = self.chooser.integer(0, 11)
        if kind == 0:
            return ""
        if kind == 1:
            return "Daily discussion thread"
        if kind == 2:
            first = self.chooser.integer(0, 3)
            return " ".join(f"w{i}" for i in range(first * 100, 1_000 + first * 500))
        count = 1 if kind == 3 else self.chooser.integer(2, 7)
        space = self.chooser.choice([" ", " ", ", ", "-"])
        few = WORDS[:6] if self.chooser.integer(0, 1) else WORDS
        return space.join(self.chooser.choice(few) for _ in range(count))

    # -- queries -----------------------------------------------------------------------------

    def query(self, number: int) -> str:
        self.parameters = []
        is_ordered = self.decides or self.chooser.integer(0, 2) == 0
        source = self.ordered() if is_ordered else self.source()
        lines = [f"query q{number}", f"    {source}"]
        if self.parameters:
            for _ in range(self.chooser.integer(1, 3)):
                measures = {name: self.threshold(name[:-1]) for name in self.parameters}
                lines.append(f"parameters q{number} {json.dumps(measures)}")
        return "\n".join(lines)

    def source(self) -> str:
        operator, window = self.operator()
        text = f"{self.block('a')} {operator} {{{self.predicate('a', 'b')}, {window}}} "
        if self.chooser.integer(0, 3):
            return text + self.block("b")
        inner, length = self.operator()
        below = f"{self.block('b')} {inner} {{{self.predicate('b', 'c')}, {length}}} "
        return f"{text}({below}{self.block('c')})"

    def ordered(self) -> str:
        self.is_ordered = True
        kind = self.chooser.integer(0, 6)
        if kind == 0:
            text = f"{self.block('a')} NEXT {self.braces('a', 'b')} {self.block('b')}"
        elif kind == 1:
            text = f"{self.block('a')} NOT FOLLOWED BY {self.braces('a', 'b')} {self.block('b')}"
        elif kind == 2:
            text = f"{self.block('b')} UNLESS {self.braces('b', 'a')} {self.block('a')}"
        elif kind == 3:
            text = f"{self.block('a')} FOLLOWED BY {self.braces('a', 'b')} {self.block('b')}"
            text += f" FOLLOWED BY {self.braces('a', 'c')} {self.block('c')} MATCH NEXT"
        elif kind == 4:
            text = f"{self.block('a')} NEXT {self.braces('a', 'b')} {self.block('b')}"
            text += f" NEXT {self.braces('a', 'c')} {self.block('c')}+"
        elif kind == 5:
            text = f"{self.block('a')} NOT JOIN {self.braces('a', 'b')} {self.block('b')}"
        else:
            text = f"{self.block('a')} FOLLOWED BY {self.braces('a', 'b')} {self.block('b')}"
            text += f" UNLESS {{{self.asked('b', 'c')}}} {self.block('c')}"
        return f"{text} GRACE {self.chooser.choice(['0 s', '10 m'])}"

    def braces(self, left: str, right: str) -> str:
        return f"{{{self.asked(left, right)}, {self.chooser.choice(['1 h', '20 m'])}}}"

    def operator(self) -> tuple[str, str]:
        return (
            self.chooser.choice(["JOIN", "FOLLOWED BY"]),
            self.chooser.choice(["1 h", "20 m", "INF"]),
        )

    def block(self, name: str) -> str:
        return f"{self.chooser.choice(['S', 'S', 'T', '*'])}//i->{name}"

    def predicate(self, left: str, right: str) -> str:
        parts = [self.comparison(left, right)]
        if self.chooser.integer(0, 2) == 0:
            parts.append(f"{left}/l {self.chooser.choice(['=', '=', '!='])} {right}/l")
        if self.chooser.integer(0, 4) == 0:
            parts.append(self.comparison(left, right))
        joined = " AND ".join(parts)
        if self.chooser.integer(0, 5) == 0:
            joined += f" OR {self.comparison(left, right)}"
        return joined

    def comparison(self, left: str, right: str) -> str:
        return self.measured(left, right, self.chooser.choice(OPERATORS))

    def asked(self, left: str, right: str) -> str:
        """Return what is asked in the braces of an ordered operator."""
        text = self.measured(left, right, self.chooser.choice([">=", ">"]))
        kind = self.chooser.integer(0, 7)
        if kind == 0:
            return f"{text} AND {left}/l = {right}/l"
        if kind == 1:
            return f"{text} AND {self.comparison(left, right)}"
        if kind == 2:
            return f"{text} OR {self.comparison(left, right)}"
        return text

    def measured(self, left: str, right: str, operator: str) -> str:
        measure = self.chooser.choice(list(THRESHOLDS))
        sides = [f"{left}/t", f"{right}/t"]
        if self.chooser.integer(0, 3) == 0:
            sides.reverse()
        if measure == "jaccard" and self.chooser.integer(0, 1):
            text = f"similar({sides[0]}, {sides[1]})"
        else:
            text = f"{measure}({', '.join(self.set(side) for side in sides)})"
        threshold = f"{self.threshold(measure):.17g}"
        if self.chooser.integer(0, 3) == 0:
            name = f"{measure}{len(self.parameters)}"
            self.parameters.append(name)
            threshold = f"${name}"
        return f"{text} {operator} {threshold}"

    def set(self, text: str) -> str:
        kind = self.chooser.integer(0, 5)
        if kind == 0:
            return f"shingles({text}, {self.chooser.integer(1, 3)})"
        if kind == 1:
            return f"tokenize({text}, ' ')"
        if kind == 2:
            return f"words(lower-case({text}))"
        return f"words({text})"

    def threshold(self, measure: str) -> float:
        return self.chooser.choice(list(THRESHOLDS[measure]))
