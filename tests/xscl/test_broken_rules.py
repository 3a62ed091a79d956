"""Each rule of sections 10 to 20, and each bound, that a text can break has a diagnostic.

A row says the rule, the code and the text.
Rules of several files, as of a cycle through a table, and of the values of parameters have their
examples in `docs/diagnostics.md`.
"""

from __future__ import annotations

import pytest
from support.reading import codes

A, B, C, D = (f"S//{name}[k->{name}]" for name in "abcd")
PAIR = f"{A} FOLLOWED BY {{a = b, 1 h}} {B}"
RUN = f"{A} NEXT {{, 1 h}} {B}+"
OPEN_RUN = f"{A} FOLLOWED BY {{, 1 h}} {B}+"
ROWS = f"SELECT <r>{{count()}}</r> FROM {PAIR} WINDOW 1 h"
TABLE = "CREATE TABLE t (id KEY, n DEFAULT 0);\n"


def joined(condition: str) -> str:
    """Return a pair of blocks with a condition."""
    return f"{A} FOLLOWED BY {{{condition}, 1 h}} {B}"


def lossy(loss: str, behind: str = "CONFIDENCE 0.01") -> str:
    """Return a chain whose second unit may be lost."""
    return f"{A} FOLLOWED BY {{a = b, 1 h}} {B} {loss} FOLLOWED BY {{b = c, 1 h}} {C} {behind}"


LOSS = "LOSS 0.1 DELAY exp(1 h)"
LAST = f"FOLLOWED BY {{, 1 h}} {D}"

SIMILARITY = (
    ("a set stands within a measure only", "XS305", joined("words(a) = b")),
    ("a measure is of sets", "XS313", joined("jaccard(a, words(b)) > 0.5")),
    ("a measure is of two sets", "XS302", joined("jaccard(words(a)) > 0.5")),
    ("shingles have a word at least", "XS314", joined("jaccard(shingles(a, 0), words(b)) > 0.5")),
    ("shingles have five at most", "XS314", joined("jaccard(shingles(a, 6), words(b)) > 0.5")),
    ("how many words is written", "XS314", joined("jaccard(shingles(a, $k), words(b)) > 0.5")),
    ("a measure is compared", "XS101", joined("similar(a, b)")),
    ("a low threshold is warned of", "XS506", joined("similar(a, b) >= 0.1")),
    ("a low overlap, too", "XS506", joined("overlap(words(a), words(b)) >= 1")),
    ("a threshold that nothing reaches, too", "XS502", joined("similar(a, b) > 1")),
)

SYNTAX = (
    ("braces have a window", "XS107", f"{A} FOLLOWED BY {{a = b}} {B}"),
    ("an operator has braces", "XS106", f"{A} FOLLOWED BY {B}"),
    ("clauses have an order", "XS117", f"{PAIR} WHERE a = b WITHIN 1 h"),
    ("a clause stands once", "XS117", f"{PAIR} WITHIN 1 h WITHIN 2 h"),
    ("those of a statement stand behind", "XS118", f"({PAIR} GRACE 1 h) JOIN {{, 1 h}} {C}"),
    ("PUBLISH is last", "XS117", f"FROM {PAIR} PUBLISH x GRACE 1 h"),
    ("words are reserved where they can stand", "XS108", "WITHIN 1 h"),
    ("only GRACE may be zero", "XS401", f"{A} FOLLOWED BY {B} WITHIN 0 s"),
)

ANSWERS = (
    ("no block reads ticks", "XS212", "CLOCK//a"),
    ("nobody publishes them", "XS212", f"SELECT * FROM {A} PUBLISH CLOCK"),
    ("a grace is that of all", "XS605", f"{A} NEXT {{, 1 h}} {B} GRACE $g"),
    ("what waits for a day is warned of", "XS508", f"{A} NEXT {{, 1 h}} {B}"),
)

UNITS = (
    ("16 alternatives", "XS811", f"({' | '.join(f'S//a{i}' for i in range(17))})"),
    ("a name once in an alternative", "XS202", "(S//a[k->x][l->x] | S//b)"),
    ("a name in one unit", "XS202", "(S//a[k->x] | S//b) JOIN {, 1 h} S//c[k->x]"),
    ("alternatives are blocks", "XS812", f"({PAIR} | {C})"),
    ("four keys", "XS811", f"{PAIR} SAME (//a, //b, //c, //d, //e)"),
    ("a key begins at the document", "XS101", f"{PAIR} SAME (a)"),
    ("a key binds nothing", "XS309", f"{PAIR} SAME (//k->z)"),
    ("a key's prefix is known", "XS205", f"{PAIR} SAME (//foo:k)"),
    ("time is of a variable", "XS312", f"{PAIR} WHERE time(a/x) > 3"),
    ("revision, too", "XS302", f"{PAIR} WHERE revision() > 3"),
    ("dur() is of the tuple", "XS302", f"{PAIR} WHERE dur(a) > 3 h"),
    ("a length is not a bare number", "XS510", f"{PAIR} WHERE dur() > 3"),
    ("if has an else", "XS101", f"{PAIR} WHERE if (a = b) then a = 3"),
    ("a test stands alone", "XS305", f"{PAIR} WHERE contains(a, b) = 1"),
    ("exists is of one thing", "XS302", f"{PAIR} WHERE exists(a, b)"),
    ("expressions are XPath's", "XS306", f"{PAIR} WHERE matches(a, '(')"),
    ("without back-references", "XS306", rf"{PAIR} WHERE matches(a, '(a)\1')"),
    ("flags are XPath's", "XS306", f"{PAIR} WHERE matches(a, 'a', 'z')"),
    ("a path is from a variable", "XS308", f"{PAIR} WHERE //a = 3"),
    ("functions are known", "XS301", f"{PAIR} WHERE foo(a) = 3"),
    ("nothing is negated", "XS108", f"{PAIR} WHERE not(a = b)"),
    ("WHERE speaks of its from", "XS201", f"{PAIR} WHERE z = 3"),
    ("braces of their operands", "XS204", f"({joined('a = c')}) FOLLOWED BY {{, 1 h}} {C}"),
    ("WHERE binds nothing", "XS309", f"{PAIR} WHERE a/x->y = 3"),
)

ABSENCE = (
    ("what is absent is unknown in WHERE", "XS211", f"{PAIR} UNLESS {C} WHERE c = 3"),
    ("and behind", "XS211", f"{PAIR} UNLESS {C} FOLLOWED BY {{c = d, 1 h}} {D}"),
    ("and in SELECT", "XS211", f"SELECT c FROM {PAIR} UNLESS {C}"),
    ("it is a unit: no from", "XS813", f"{PAIR} UNLESS ({C} FOLLOWED BY {{, 1 h}} {D})"),
    ("no repetition", "XS813", f"{PAIR} UNLESS {C}+"),
    ("UNLESS of the first has a window", "XS808", f"{A} UNLESS {{a = c}} {C}"),
    ("UNLESS is behind FOLLOWED BY or NEXT", "XS810", f"{A} JOIN {{, 1 h}} {B} UNLESS {C}"),
    ("NOT has a window", "XS106", f"{A} NOT FOLLOWED BY {C}"),
    ("which ends", "XS809", f"{A} NOT FOLLOWED BY {{, INF}} {C}"),
    ("NOT JOIN, too", "XS106", f"{A} NOT JOIN {C}"),
    ("NOT is of these two", "XS101", f"{A} NOT NEXT {{, 1 h}} {C}"),
    ("eight UNLESS", "XS811", PAIR + "".join(f" UNLESS S//n{i}" for i in range(9))),
)

REPETITION = (
    ("none behind JOIN", "XS801", f"{A} JOIN {{, 1 h}} {B}+"),
    ("none of a from", "XS803", f"({PAIR})+"),
    ("WHILE needs NEXT", "XS802", f"{OPEN_RUN} WHILE {{b > 3}}"),
    ("also at the first", "XS802", f"{B}+ {{, 1 h}} WHILE {{b > 3}}"),
    ("prev is of elements", "XS804", f"{PAIR} WHERE prev(a) = 3"),
    ("of its own unit", "XS805", f"{RUN} {{prev(a) = b}}"),
    ("prev has one or two", "XS302", f"{RUN} {{prev(b, b, b) = 3}}"),
    ("last is of a complete run", "XS805", f"{RUN} {{last(b) > 3}}"),
    ("an aggregate is of what is repeated", "XS805", f"{PAIR} WHERE avg(a) > 3"),
    ("none in another", "XS806", f"{RUN} {{sum(avg(b)) > 3}}"),
    ("a value of FOLD has a new name", "XS202", f"{RUN} FOLD {{a = 0 THEN a + 1}}"),
    ("begins with what stands before", "XS204", f"{RUN} FOLD {{f = b THEN f + 1}}"),
    ("16 of them", "XS811", f"{RUN} FOLD {{{', '.join(f'f{i} = 0 THEN 1' for i in range(17))}}}"),
    ("no element knows what comes behind", "XS204", f"{RUN} {{c = b}} NEXT {{, 1 h}} {C}"),
    ("one without bound is warned of", "XS507", f"{A} NEXT {{, INF}} {B}+ GRACE 0 s"),
)

MATCH = (
    ("no NEXT beside MATCH", "XS815", f"{A} NEXT {{, 1 h}} {B} MATCH NEXT"),
    ("no JOIN", "XS815", f"{A} JOIN {{, 1 h}} {B} MATCH NEXT"),
    ("no parentheses", "XS815", f"({PAIR}) FOLLOWED BY {{, 1 h}} {C} MATCH NEXT"),
    ("no NOT JOIN", "XS815", f"{PAIR} NOT JOIN {{, 1 h}} {C} MATCH NEXT"),
    ("NOT at the end", "XS817", f"{A} NOT FOLLOWED BY {C} FOLLOWED BY {B} WITHIN 1 h MATCH NEXT"),
    ("PARTITION needs SAME", "XS816", f"{PAIR} MATCH PARTITION"),
    ("four strategies", "XS101", f"{PAIR} MATCH SOME"),
    ("no WHILE", "XS802", f"{OPEN_RUN} WHILE {{b > 3}} MATCH NEXT"),
)

OUTCOMES = (
    ("COMPRESSED needs a run", "XS903", f"SELECT COMPRESSED FROM {PAIR}"),
    ("under ANY", "XS903", f"SELECT COMPRESSED FROM {OPEN_RUN} MATCH NEXT"),
    ("not behind NEXT", "XS903", f"SELECT COMPRESSED FROM {RUN}"),
    (
        "whose conditions are of neighbours",
        "XS903",
        f"SELECT COMPRESSED FROM {OPEN_RUN} {{b > avg(b)}}",
    ),
    ("not of the whole", "XS903", f"SELECT COMPRESSED FROM {OPEN_RUN} WHERE count(b) > 3"),
    ("a row shows rows' values", "XS902", f"SELECT a FROM {PAIR} WINDOW 1 h"),
    ("HAVING asks these", "XS902", f"{ROWS} HAVING a > 3"),
    ("LIMIT counts by these", "XS902", f"{ROWS} BY a LIMIT 1 PER 1 h BY b"),
    ("aggregates of rows need WINDOW", "XS807", f"{PAIR} WHERE argmax(a, b) > 3"),
    ("and distinct", "XS807", f"{RUN} WHERE count(distinct b) > 3"),
    ("HAVING needs WINDOW", "XS108", f"{PAIR} HAVING count() > 3"),
    ("BY names variables", "XS201", f"{ROWS} BY z"),
    ("BY is a path from one", "XS101", f"{ROWS} BY 'x'"),
    ("LIMIT is a count", "XS907", f"{PAIR} LIMIT 0 PER 1 h"),
    ("a whole one", "XS907", f"{PAIR} LIMIT 1.5 PER 1 h"),
    ("per a time", "XS101", f"{PAIR} LIMIT 1"),
    ("longer than zero", "XS401", f"{PAIR} LIMIT 1 PER 0 s"),
)

TABLES = (
    ("a table has a key", "XS904", "CREATE TABLE t (n DEFAULT 0)"),
    ("one key", "XS904", "CREATE TABLE t (i KEY, j KEY)"),
    ("a column stands once", "XS905", "CREATE TABLE t (i KEY, n DEFAULT 0, n DEFAULT 1)"),
    ("a default is a literal", "XS101", "CREATE TABLE t (i KEY, n DEFAULT a)"),
    ("no parameter", "XS605", "CREATE TABLE t (i KEY, n DEFAULT $x)"),
    ("a table is created once", "XS705", TABLE + TABLE),
    ("columns are known", "XS906", TABLE + f"{PAIR} WHERE t[a].m = 3 GRACE 0 s"),
    ("a key is not set", "XS913", TABLE + f"{PAIR} ON MATCH SET t[a].id = 3"),
    ("SET is of a cell", "XS101", TABLE + f"{PAIR} ON MATCH SET t[a] = 3"),
    ("DELETE is of a row", "XS101", TABLE + f"{PAIR} ON MATCH DELETE t[a].n"),
    ("braces read no table", "XS901", TABLE + joined("t[a].n = 3")),
    ("nor does SELECT", "XS901", TABLE + f"SELECT <r>{{t[a].n}}</r> FROM {PAIR}"),
    (
        "a number beside a text is warned of",
        "XS916",
        TABLE + f"{PAIR} WHERE t[a].n = 'x' GRACE 0 s",
    ),
    ("an action names what is bound", "XS201", TABLE + f"{PAIR} ON MATCH SET t[z].n = 3"),
    ("not what is absent", "XS211", TABLE + f"{PAIR} UNLESS {C} ON MATCH SET t[c].n = 3"),
    ("of a row its values", "XS902", TABLE + f"{ROWS} ON MATCH SET t['x'].n = a"),
)

LOSSES = (
    ("the last unit is not lost", "XS911", f"{PAIR} {LOSS} CONFIDENCE 0.1"),
    ("nor the first", "XS911", f"{A} {LOSS} FOLLOWED BY {{a = b, 1 h}} {B} CONFIDENCE 0.1"),
    ("nor behind NEXT", "XS911", f"{A} NEXT {{, 1 h}} {B} {LOSS} NEXT {{, 1 h}} {C}"),
    ("nor behind UNLESS of the first", "XS911", f"{A} UNLESS {{, 1 h}} {B} {LOSS}"),
    (
        "nor beside alternatives",
        "XS911",
        f"{A} FOLLOWED BY {{, 1 h}} ({B} {LOSS} | {D}) JOIN {{, 1 h}} {C}",
    ),
    ("a run is not lost", "XS108", f"{OPEN_RUN} {LOSS} FOLLOWED BY {{b = c, 1 h}} {C}"),
    ("a loss is a probability", "XS909", lossy("LOSS 1.5 DELAY exp(1 h)")),
    ("the same for all", "XS605", lossy("LOSS $e DELAY exp(1 h)")),
    ("it has a delay", "XS101", lossy("LOSS 0.1")),
    ("of four kinds", "XS101", lossy("LOSS 0.1 DELAY gamma(1 h)")),
    ("longer than zero", "XS910", lossy("LOSS 0.1 DELAY exp(0 s)")),
    ("from a shorter to a longer", "XS910", lossy("LOSS 0.1 DELAY uniform(2 h, 1 h)")),
    ("a distribution rises", "XS910", lossy("LOSS 0.1 DELAY cdf(1 h: 0.5, 2 h: 0.4)")),
    ("to 1", "XS910", lossy("LOSS 0.1 DELAY cdf(1 h: 1.5)")),
    ("what is absent is not learned", "XS910", f"{PAIR} UNLESS {C} LOSS 0.1 DELAY learned"),
    ("a confidence is at most 1", "XS908", lossy(LOSS, "CONFIDENCE 1.5")),
    ("within reach", "XS914", lossy(LOSS, "CONFIDENCE 0.5")),
    (
        "three side by side",
        "XS915",
        f"{A} {' '.join(f'FOLLOWED BY {{, 1 h}} S//{n} {LOSS}' for n in 'xyz')} {LAST}",
    ),
    (
        "where nothing is joined, it is warned of",
        "XS509",
        f"{A} FOLLOWED BY {{, 1 h}} {B} {LOSS} FOLLOWED BY {{, 1 h}} {C}",
    ),
)

BOUNDS = (
    ("100 units", "XS112", " FOLLOWED BY {, 1 h} ".join(f"S//a{i}" for i in range(101))),
    ("64 disjuncts", "XS503", joined(" OR ".join(f"a = b/x{i}" for i in range(65)))),
    (
        "8 variants",
        "XS811",
        f"{A} {' '.join(f'FOLLOWED BY {{, 1 h}} {lost}' for lost in [f'S//x {LOSS}', 'S//y'] * 4)}",
    ),
    ("a parameter is of one type", "XS601", f"{A} FOLLOWED BY {{a = $x, $x}} {B}"),
)

SECTIONS = {
    "10": SIMILARITY, "11": SYNTAX, "12": ANSWERS, "13": UNITS, "14": ABSENCE, "16": REPETITION,
    "17": MATCH, "18": OUTCOMES, "19": TABLES, "20": LOSSES, "21": BOUNDS,
}  # fmt: skip
RULES = [
    pytest.param(code, text, id=f"{section}: {rule}")
    for section, rules in SECTIONS.items()
    for rule, code, text in rules
]


@pytest.mark.parametrize(("code", "text"), RULES)
def test_what_breaks_a_rule_is_told(code: str, text: str) -> None:
    assert code in codes(text, warnings=True)
