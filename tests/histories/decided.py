"""Random histories in which something is decided: NEXT and absence, or runs, rows and graphs.

Statements are those of the generators of cases, over documents that a feed may revise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from generators.choosers import Chooser, RandomChooser
from generators.column_cases import column_case, column_run_case, counted_chain_case
from generators.counted_cases import counted_case
from generators.ordered_cases import absence_case, ordered_case
from generators.outcome_cases import outcome_case
from generators.run_cases import run_case
from generators.shared_cases import shared_case

from histories.strategies import History

__all__ = ["ordered_history", "repeated_history"]

Cases = Sequence[Callable[[Chooser], str]]

ORDERED: Cases = (ordered_case, ordered_case, absence_case, shared_case, outcome_case)

REPEATED: Cases = (
    run_case,
    run_case,
    column_case,
    column_run_case,
    counted_chain_case,
    counted_case,
)

LENGTHS = (20, 30, 40)
LAST = "document 99 T 00:10:00 arrival=01:00  <z/>"
"""What settles all that has come."""


def ordered_history(seed: int) -> str:
    """Return the history of a seed as text, of NEXT and what must be absent."""
    return _history(seed, ORDERED)


def repeated_history(seed: int) -> str:
    """Return the history of a seed as text, of repetitions and chains in all strategies."""
    return _history(seed, REPEATED)


def _history(seed: int, cases: Cases) -> str:
    chooser = RandomChooser(seed)
    return f"{History(chooser, _Decided(chooser, cases), LENGTHS).text()}{LAST}\n"


def choose_grace(chooser: Chooser) -> str:
    """Return what statements say of their grace."""
    return chooser.choice(["", " GRACE 0 s", " GRACE 0 s", " GRACE 1 s", " GRACE 4 s"])


class _Decided:
    """Makes the statements, those of some cases, and the documents of a history."""

    def __init__(self, chooser: Chooser, cases: Cases) -> None:
        self._choose = chooser
        self._cases = cases
        self._second = 10
        # The oracle knows one grace of an id, and of the publishers of a stream.
        self._grace = choose_grace(chooser)
        self._rows = ["{}", "{}"]

    def lateness(self) -> str:
        """Return an allowed lateness."""
        return f"{self._choose.choice([0, 2, 5, 100, 100])} s"

    def document(self, number: int) -> str:
        """Return the line of a document, perhaps a revision."""
        choose = self._choose
        self._second = min(58, self._second + choose.choice([0, 0, 1, 1, 1, 2, 3]))
        second = max(10, self._second - choose.choice([0, 0, 0, 0, 0, 1, 3, 8]))
        kind, key = choose.choice("aabbbc"), choose.choice("fgh")
        names = "kkpv"[choose.choice([0, 1, 1, 1, 1, 2]) :]
        inner = "".join(
            f"<{name}>{choose.choice('xxxy' if name == 'k' else '12301')}</{name}>"
            for name in names + choose.choice(["", "", "w", "p"])
        )
        stream = choose.choice("SSSSST")
        # It arrives after all event times, so that its own is not moved.
        times = f"00:00:{second:02} arrival=01:00 key={key}"
        return f"document {number} {stream} {times}  <{kind}>{inner}</{kind}>"

    def statement(self, number: int, published: Sequence[str]) -> str:
        """Return a query; it may read these published streams, and publish that of its number."""
        choose = self._choose
        case = choose.choice(self._cases)(choose)
        text = re.sub(r"query made\n.*\n", "", case)
        [first, *_] = re.findall(r"^query q\w*\n    (.*)$", text, flags=re.MULTILINE)
        statement = re.sub(r" GRACE \d+ s| PUBLISH P", "", first.replace("P//", "S//"))
        statement += self._grace
        if published and choose.integer(0, 1):
            statement = statement.replace("S//", f"{choose.choice(published)}//", 1)
        if (
            choose.integer(0, 4) == 0
            and "WINDOW" not in statement
            and "COMPRESSED" not in statement
        ):
            whole = statement if statement.startswith("SELECT") else f"SELECT * FROM {statement}"
            statement = f"{whole} PUBLISH P{number}"
        self._rows = [self._values(statement) for _ in range(2)]
        return statement

    def values(self, row: int) -> str:
        """Return values of the parameters of the statement that was written last: 0 or 1."""
        return self._rows[row]

    def _values(self, statement: str) -> str:
        choose = self._choose
        values: dict[str, str | int] = {
            "key": choose.choice("xy"),
            "within": f"{choose.choice('258')} s",
            "least": choose.integer(0, 3),
            "long": f"{choose.choice('149')} s",
            "most": choose.integer(1, 2),
            "text": str(choose.integer(1, 3)),
            "shortest": f"{choose.choice('12')} s",
        }
        return json.dumps({n: v for n, v in values.items() if f"${n}" in statement})
