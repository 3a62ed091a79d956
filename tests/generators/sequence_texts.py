"""Random statements of the whole grammar without errors: sequences, absence, tables, loss."""

from __future__ import annotations

import random

__all__ = ["sequence_text"]

_WINDOWS = ["1 h", "90 min", "PT6H", "$w", "2 days"]
_COMPARISONS = ["=", "!=", "<", ">="]
_MEASURES = ["similar({}, {}) >= 0.6", "jaccard(words({}), shingles({}, 2)) > $t"]


def sequence_text(seed: int) -> str:
    """Return a statement that is right, whether or not a broker runs it."""
    return _Maker(random.Random(seed)).statement()


class _Maker:
    """Makes one statement; `known` are the variables so far, `repeated` some of them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self.lossy = 0
        self.known: list[str] = []
        self.repeated: list[str] = []
        self.folds: list[str] = []

    def maybe(self, text: str, share: float = 0.3) -> str:
        return text if self.chance.random() < share else ""

    def one_of(self, *texts: str) -> str:
        return self.chance.choice(texts)

    # -- units ---------------------------------------------------------------------------------

    def names(self) -> list[str]:
        self.count += 1
        return [f"x{self.count}", f"y{self.count}'"]

    def block(self, names: list[str]) -> str:
        stream = self.one_of("S", "news", "*", "next", "where")
        return f"{stream}//{self.one_of('a', 'b', 'same')}[k->{names[0]}][@p->{names[1]}]"

    def unit(self) -> tuple[str, list[str]]:
        names = self.names()
        if self.chance.random() < 0.7:
            return self.block(names), names
        others = [self.block(names[:1] + self.names()[1:]) for _ in range(2)]
        return f"({' | '.join([self.block(names), *others])})", names[:1]

    def loss(self, *, is_absent: bool) -> str:
        delay = self.one_of("exp($d)", "uniform(0 s, 9 s)", "cdf(1 s: 0.5, 9 s: 1)")
        if not is_absent and self.chance.random() < 0.3:
            delay = "learned"
        return f" LOSS {self.one_of('0', '0.1')} DELAY {delay}"

    # -- predicates ----------------------------------------------------------------------------

    def predicate(self, left: list[str], right: list[str]) -> str:
        terms = [self.term(left or right, right) for _ in range(self.chance.randint(1, 3))]
        text = terms[0]
        for term in terms[1:]:
            text = self.one_of(f"{text} AND {term}", f"({text} OR {term})")
        return text

    def term(self, left: list[str], right: list[str]) -> str:
        one, other = self.chance.choice(left), self.chance.choice(right)
        number = f"{one} * 2 - ({other} + 1) div $n"
        return self.one_of(
            f"{one} = {other}",
            f"{one}/a = lower-case({other})",
            f"{number} {self.chance.choice(_COMPARISONS)} -{other}",
            f"time({other}) - time({one}) < {self.one_of('30 min', '$d')}",
            "dur() >= 10 s",
            f"revision({one}) = 0",
            f"exists({one}/a)",
            f"contains({one}, {other})",
            f"matches({one}, '^a', 'i')",
            f"if ({one} > 3 AND empty({one}/b)) then {one} else {other}/c < 7",
            self.chance.choice(_MEASURES).format(one, other),
        )

    def braces(self, left: list[str], right: list[str], *, needed: bool = True) -> str:
        window = f", {self.chance.choice(_WINDOWS)}"
        if not needed and self.chance.random() < 0.5:
            return self.maybe(f" {{{self.predicate(left, right)}}}", 0.7)
        return f" {{{self.maybe(self.predicate(left, right), 0.7)}{window}}}"

    # -- operands ------------------------------------------------------------------------------

    def repetition(self, keyword: str) -> tuple[str, list[str]]:
        unit, names = self.unit()
        x = names[0]
        condition = self.one_of(
            f"{x} > prev({x})", f"sum({x} * 2) < 9", "count() < 3", f"{x} > prev({x}, 'a')"
        )
        text = f"{unit}+ {{{condition}, 1 h}}"
        if keyword == "NEXT":
            text += self.maybe(f" WHILE {{first({x}) < {x}}}", 0.5)
        if self.chance.random() < 0.3:
            first = self.one_of("0", *self.known[:1])
            text += f" FOLD {{f{self.count} = {first} THEN f{self.count} + {x}}}"
            self.folds.append(f"f{self.count}")
        return text, names

    def absence(self, keyword: str, *, needed: bool) -> str:
        unit, names = self.unit()
        may_be_lost = not unit.startswith("(") and not (keyword == "UNLESS" and needed)
        loss = ""
        if may_be_lost and self.chance.random() < 0.2:
            # Behind NOT what comes for certain would leave no confidence.
            is_behind = keyword != "UNLESS"
            loss = " LOSS 0.1 DELAY exp($d)" if is_behind else self.loss(is_absent=True)
        return f" {keyword}{self.braces(self.known, names, needed=needed)} {unit}{loss}"

    def source(self, *, is_bounded: bool, is_match: bool = False, depth: int = 1) -> str:
        is_lossy = depth == 1 and not is_match and self.chance.random() < 0.15
        only = is_match or is_lossy
        text = self.first(depth, is_match=is_match)
        for index in range(self.chance.randint(0 if not is_lossy else 2, 3)):
            keyword = "FOLLOWED BY" if only else self.one_of("FOLLOWED BY", "NEXT", "JOIN")
            text += self.part(keyword, index, is_bounded, depth, is_match, is_lossy)
        if not is_match and self.chance.random() < 0.15:
            keyword = self.one_of("NOT FOLLOWED BY", "NOT JOIN")
            text += self.absence(keyword, needed=not is_bounded)
        return text

    def first(self, depth: int, *, is_match: bool) -> str:
        if self.chance.random() < 0.2:
            text, names = self.repetition("")
            self.repeated += names
        elif depth and not is_match and self.chance.random() < 0.15:
            text, names = f"({self.source(is_bounded=False, depth=0)} WHERE dur() < 1 h)", []
        else:
            text, names = self.unit()
        self.known += names
        if not is_match and self.chance.random() < 0.1:
            text += self.absence("UNLESS", needed=True)
        return text

    def part(
        self, keyword: str, index: int, bounded: bool, depth: int, is_match: bool, is_lossy: bool
    ) -> str:
        is_repeated = keyword != "JOIN" and not is_lossy and self.chance.random() < 0.3
        before = list(self.known)
        if is_repeated:
            unit, names = self.repetition(keyword)
        elif depth and keyword != "JOIN" and not is_match and self.chance.random() < 0.15:
            self.known = []
            unit, names = f"({self.source(is_bounded=False, depth=0)})", self.known
        else:
            unit, names = self.unit()
        self.known = before
        text = f" {keyword}{self.braces(before, names, needed=not bounded)} {unit}"
        if is_lossy and index == 0 and not unit.startswith("("):
            text += self.loss(is_absent=False)
        self.known = before + names
        self.repeated += names if is_repeated else []
        if keyword != "JOIN" and not is_lossy and self.chance.random() < 0.2:
            text += self.absence("UNLESS", needed=False)
        return text

    # -- statements ----------------------------------------------------------------------------

    def statement(self) -> str:
        if self.chance.random() < 0.05:
            return self.one_of("CREATE TABLE t (id KEY, n DEFAULT -1)", "CREATE TABLE t (k KEY)")
        is_bounded = self.chance.random() < 0.5
        is_match = self.chance.random() < 0.25
        text = self.source(is_bounded=is_bounded, is_match=is_match)
        x = self.chance.choice(self.known)
        if is_bounded:
            text += f" WITHIN {self.chance.choice(_WINDOWS)}"
        keyed = is_match or self.chance.random() < 0.3
        text += f" SAME (//@id{self.maybe(', /*/k[a] = $k')})" if keyed else ""
        if is_match:
            text += f" MATCH {self.one_of('ANY', 'NEXT', 'PARTITION', 'STRICT')}"
        cell = f"t[{x}].n != 'safe'"
        more = [f"{fold} > 3" for fold in self.folds]
        condition = self.one_of(cell, f"exists(t[{x}])", f"{x} = 'a'", self.aggregate(), *more)
        text += self.maybe(f" WHERE {condition}")
        rows = self.chance.random() < 0.2
        if rows:
            text += f" WINDOW {self.one_of('0 s', '1 day')} BY {x}"
            text += self.maybe(f" HAVING count(distinct {x}) > 2 AND {cell}", 0.5)
        text += self.maybe(f" LIMIT 3 PER 1 day BY {x}", 0.2)
        text += self.maybe(f" CONFIDENCE {self.one_of('0.01', '$c')}", 0.2)
        text += self.maybe(f" GRACE {self.one_of('0 s', '1 h')}", 0.5)
        text += self.maybe(f" ON MATCH SET t[{x}].n = t[{x}].n + 1, DELETE t['a']", 0.2)
        return self.with_output(text, x, rows=rows)

    def aggregate(self) -> str:
        if not self.repeated:
            return "dur() < 3 h"
        x = self.chance.choice(self.repeated)
        return self.one_of(f"count({x}) > 3", f"avg({x}) <= last({x})", f"first({x}) = 'a'")

    def with_output(self, text: str, x: str, *, rows: bool) -> str:
        inner = f"{{count(), collect(distinct {x}), {x}}}" if rows else f"{{{x}, dur()}}"
        select = self.one_of("", "*", f"<r>{inner}</r>", f"DISJOINT <r>{inner}</r>")
        publish = self.maybe(" PUBLISH out")
        if not select and not publish:
            return text
        if self.chance.random() < 0.5:
            return f"SELECT {select or '*'} FROM {text}{publish}"
        return f"FROM {text}{f' SELECT {select}' if select else ''}{publish}"
