"""Random cases of ordered statements whose assignments are decided together, as case texts."""

from __future__ import annotations

from generators.choosers import Chooser
from generators.ordered_cases import case_text

__all__ = ["STATEMENTS", "shared_case"]

STATEMENTS = (
    "S//a[k = $key]->v NEXT {, W} S//b->u",
    "*//a[k->x][p >= $least] NEXT {x = y, W} *//b[k->y]",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y][p->n] WHERE n >= $least",
    "S//a->v NEXT {, W} S//b[k = $key]->u",
    "S//a[k->x] NEXT {x = y, W} *//b[k->y][p = $text]",
    "S//a[k = $key]->v NEXT {v/p <= u/p, W} S//b[k = $key]->u",
    "*//a[k->x] NEXT {x = y, W} (S//b[k->y][p = $text] | S//c[k->y][p = $text])",
    "S//a NEXT {, W} (S//b[k->x] FOLLOWED BY {x = y, W} S//c[k->y][k = $key])",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y][p = $text] NEXT {y = z, W} S//c[k->z]",
    "S//a NEXT {, W} (S//b->u NEXT {, W} S//c[k = $key]) UNLESS S//a WITHIN 12 s",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y][p > $least]",
    "*//a[k->x] NEXT {x = y, W} *//b[k->y][p >= $least]",
    "S//a[k->x] NEXT {x = y, W} (S//b[k->y][p < $least] | T//c[k->y][p < $least])",
    "S//a NEXT {, W} S//b[k = $key][p <= $least]->v",
    "S//a NEXT {, W} S//b[k = $key][p = $text]",
    "S//a->v NEXT {v/k = u/k AND u/p >= $least, W} S//b->u",
    "S//a[k->x] NEXT {x = $key AND y = $key AND n > $least, W} (S//b[k->y] JOIN {, W} S//c[p->n])",
    "S//a[p->n] FOLLOWED BY {n < $least, W} S//b->v UNLESS {v/k = u/k} S//c->u",
    "S//a->v NEXT {v/k = u/k, W} S//b[p > $least]->u",
    "S//a[k = $key] NEXT {, W} S//b[p > $least][k->x]->v",
    "S//a[p->x] NEXT {x <= y, W} S//b[p->y][p > $least] UNLESS S//c",
    "S//a[k->x] NEXT {x = y, W} (S//b[k->y] FOLLOWED BY {, W} S//c[p > $least])",
    "(S//a[k->x] NEXT {x = y, W} S//b[k->y][p > $least]) JOIN {x = z, W} S//c[k->z]",
    "(S//a[k->x] NEXT {x = y, W} S//b[k->y][p > $least]) NEXT {, W} S//c",
    "S//a[k->x] NEXT {x = y, $within} S//b[k->y]",
    "*//a NEXT {, $within} S//b[k = $key]",
    "S//a->v NEXT {v/k = u/k, $within} S//a->u",
    "(S//a[k->x] NEXT {x = y, $within} *//b[k->y]) FOLLOWED BY {, W} S//c",
    "S//a[k = $key] FOLLOWED BY {, W} S//b[k = $key]->v UNLESS S//c",
    "S//a->v UNLESS {, W} S//b->u WHERE v/p >= $least",
    "S//a[k->x] NOT FOLLOWED BY {x = y, $within} S//b[k->y]",
    "S//a[k->x][k = $key] NOT JOIN {x = y, $within} *//b[k->y]",
    "S//a[p->x] NOT FOLLOWED BY {x <= y, $within} (S//b[p->y] | T//c[p->y])",
    "S//a[k->x] NOT FOLLOWED BY {x = y, $within} S//b[k->y] WITHIN 6 s",
    "S//a->v NOT FOLLOWED BY {v/k = u/k, $within} S//a->u",
    "(S//a[k->x] NEXT {x = y, W} S//b[k->y]) NOT FOLLOWED BY {y = z, $within} S//c[k->z]",
    "(S//a[k->x] NOT FOLLOWED BY {x = y, $within} S//b[k->y]) JOIN {x = z, W} S//c[k->z]",
    "(S//a[k->x][k = $key] NOT FOLLOWED BY {x = y, W} S//b[k->y]) NEXT {, W} S//c",
    "S//a[k->x][p >= $least] NEXT {x = y, W} (S//b[k->y] FOLLOWED BY {, W} S//c) WITHIN 9 s",
    "S//a[k = $key]->v FOLLOWED BY {, W} S//b->u+ {u/k = v/k}",
    "S//a[k->x][k = $key][p > $least] NEXT {, W} *//b[k->y]+ {x = y}",
    "*//a[p >= $least]->v FOLLOWED BY {, W} S//b[p->n]+ {n >= prev(n)}",
    "(S//a[k->x][p = $text] FOLLOWED BY {x = y, W} S//c[k->y]) NEXT {, W} S//b[k->z]+ {y = z}",
    "(S//a[k = $key] NEXT {, W} S//b[k->x]+ {x = prev(x)}) FOLLOWED BY {, W} S//c[k = $text]",
    "S//a[k = $key]->v NEXT {, W} S//b->u+ {u/k = v/k} WHERE count(u) = 2",
    "(S//a[k->x][k = $key] | T//c[k->x][p > $least]) NEXT {x = y, W} (S//b[k->y] | T//b[k->y])+",
    "S//a[k->x][k = $key] FOLLOWED BY {, W} S//b[k->y]+ UNLESS {x = z} S//c[k->z]",
    "S//c[k->z] NEXT {z = x, W} (S//a[k->x][k = $key] FOLLOWED BY {, W} S//b[k->y]+)",
    "S//b->u+ {u/k = prev(u/k), 4 s} WITHIN 9 s WHERE count(u) >= $least",
    "(S//a[k = $key]->v NEXT {, W} S//b->u+) JOIN {v/k = z, $within} S//c[k->z]",
    "(S//a[k->x] NEXT {x = y, W} S//b[k->y]+) NOT FOLLOWED BY {x = z, $within} S//c[k->z]",
    "*//a->v NOT FOLLOWED BY {, W} *//b[k = $key]",
    "*//a[k = $key] NOT FOLLOWED BY {, W} (*//b[k = $key] | S//c[p->n][k = $key])",
    "S//a->v NEXT {, W} *//b[k = $key] UNLESS {v/k = u/k} *//c[k = $key]->u",
    "(S//a[k = $key] | *//b[k = $key][p->n]) FOLLOWED BY {, W} S//b UNLESS *//c[k = $key]",
    "(S//a[k = $key] | *//b) NEXT {, W} S//c UNLESS S//b[k = $key]",
    "(S//a[k = $key] NEXT {, W} *//b) NOT FOLLOWED BY {, W} *//c[k = $key]",
    "S//a[k->x] NOT FOLLOWED BY {x = y, W} S//b[k->y][p = $text]",
    "S//a[k = $key]->v NOT FOLLOWED BY {v/p != u/p, W} S//b[k = $key]->u",
    "S//a->v NOT JOIN {, W} (S//b[k = $key] | *//c[k = $key])",
    "S//a[k->x] UNLESS {x = y, W} S//b[k->y][p >= $least]",
    "S//a->v NOT FOLLOWED BY {n < $least, W} S//b[p->n]",
    "S//a->v NOT JOIN {v/k = u/k AND u/p > $least, W} *//b->u",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y] UNLESS {u/k = $key} *//c->u",
    "S//a[k->x] FOLLOWED BY {, W} S//b[k->y] UNLESS {x = z} *//c[k->z][p <= $least]",
    "S//a[k = $key] NEXT {, W} S//b[p > $least] UNLESS S//c[k = $text]",
    "S//a NEXT {, W} S//b[k = $key] UNLESS S//c[p > $least] UNLESS S//a",
    "S//a[k->x] UNLESS {x = y, $within} *//b[k->y]",
    "S//a->v UNLESS {v/k = u/k, $within} *//a->u WHERE v/p >= $least",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y] UNLESS {, $within} *//c",
    "S//a[k->x] FOLLOWED BY {x = y, W} *//b[k->y] UNLESS {y = z, $within} *//c[k->z]",
    "S//a[k->x] FOLLOWED BY {x = y, $within} *//b[k->y] UNLESS *//c",
    "S//a[k->x] NEXT {x = y, $within} *//b[k->y] UNLESS {x = z} *//c[k->z]",
    "*//a FOLLOWED BY {, $within} *//b[k->y] UNLESS {y = z, W} *//a[k->z]",
    "(S//a->v NOT FOLLOWED BY {, W} *//b[k = $key]) JOIN {v/k = u/k, W} S//c->u",
    "(S//a->v NOT FOLLOWED BY {, W} *//b[k = $key]) NEXT {v/k = u/k, W} S//c->u",
    "(S//a NEXT {, W} S//b UNLESS *//c[p > $least]) NOT FOLLOWED BY {, W} S//a[k = $key]",
    "(S//a[k->x] NEXT {x = y, $within} S//b[k->y]) NEXT {y = z, W} S//c[k->z]",
    "(S//a[k->x] FOLLOWED BY {x = y, $within} *//b[k->y]) NEXT {, W} S//c",
    "(S//a[k->x] NOT FOLLOWED BY {x = y, $within} S//b[k->y]) NEXT {, W} *//c",
    "S//a[k->x] NEXT {x = y} *//b[k->y] WITHIN $within",
    "S//a FOLLOWED BY (*//b | S//c) UNLESS *//a[p->n] WITHIN $within SAME (//k)",
    "(S//a[k->x] NEXT {x = y} S//b[k->y] UNLESS {, W} *//c WITHIN $within) NEXT {, W} S//c",
    "S//a FOLLOWED BY {, W} (S//a[k->x] NOT FOLLOWED BY {x = y, $within} S//b[k->y]) UNLESS *//c",
    "(S//a[k->x] JOIN {x = y, $within} S//b[k->y]) NOT FOLLOWED BY {x = z, W} S//c[k->z]",
    "S//a->v NEXT {v/k = u/k, W} S//b[contains(k, $key)]->u",
    "*//a NEXT {, W} *//b[starts-with(k, $key)][matches(p, $text)]",
    "S//a[k->x] NEXT {x = y, W} *//b[k->y][p = $least]",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y][contains(p, $text)][p < $least]",
    "*//a NEXT {, W} *//b[k = $key or p > $least]",
    "S//a->v NEXT {v/k = u/k, W} S//b[k = $key and p < $least or p = 2]->u",
    "S//a[k->x] NEXT {, W} (S//b[contains(k, $key)] | *//c[ends-with(k, $key)])",
    "S//a NEXT {, W} (S//b->u NEXT {, W} S//c[contains(k, $key)]) UNLESS S//b[p = $least]",
    "S//a[k->x] NEXT {x = y AND contains(u/p, $text), W} (S//b[k->y] JOIN {, W} S//c[p->n]->u)",
    "(S//a NEXT {, W} *//b[contains(k, $key)]) JOIN {, W} S//c[k = $key]",
    "S//a->v NOT FOLLOWED BY {, W} *//b[contains(k, $key)]",
    "*//a[k = $key] NOT FOLLOWED BY {, W} (*//b[starts-with(k, $key)] | S//c[k = $key])",
    "S//a[k->x] UNLESS {x = y, W} S//b[k->y][k = $key or p >= $least]",
    "S//a->v NEXT {, W} *//b UNLESS {v/k = u/k AND contains(u/p, $text)} *//c->u",
    "S//a->v NOT JOIN {, W} *//b[p = $least]",
    "(S//a->v NOT FOLLOWED BY {, W} *//b[k = $key or p < $least]) NEXT {v/k = u/k, W} S//c->u",
    "S//a->v NOT FOLLOWED BY {, W} *//b[k = $key][p = $text]",
    "S//a->v NOT FOLLOWED BY {, W} *//b[k = $key][contains(k, $key)]",
    "S//a NEXT {, W} (S//b[contains(k, $key)][p = $least] | *//c[k = $key][p = $least])",
    "S//a NEXT {, W} S//b[contains(k, $key)] UNLESS S//c[starts-with(k, $key)][p = $text]",
    "*//a[k = $key] NOT FOLLOWED BY {, W} *//b[k = $key][contains(p, $text)]",
    "S//a[k->x] NEXT {x = y, W} S//b[k->y] UNLESS {u/k = $key AND u/p = $least} *//c->u",
    "(S//a->v NOT JOIN {, W} (S//b[k = $key][p = $text] | *//c[k = $key][p = $text])) NEXT {, W}"
    " S//c",
    "*//a[k = $key] NOT FOLLOWED BY {, $within} *//b[k = $key]",
    "S//a[k = $key] NOT FOLLOWED BY {, W} *//b[k = $key][p > $least]",
    "S//a[k = $key][p = $text]->v NOT JOIN {, $within} (*//b[k = $key][contains(p, $text)] | T//c)",
    "S//a[k = $key] NEXT {, $within} *//b UNLESS {, W} *//c[k = $key]",
    "S//a[k->x] NEXT {x = y, W} *//b[k->y][contains(p, $text)] UNLESS {, $within} *//c[p = $text]",
    "(S//a[k = $key] UNLESS {, W} *//b[starts-with(k, $key)][p < $least]) NEXT {, W} S//c",
    "S//a[k = $key]->v FOLLOWED BY {, W} S//b->u+ {u/k = v/k} MATCH NEXT",
    "S//a[k->x][p >= $least] FOLLOWED BY {, W} S//b->u+ FOLLOWED BY {, W} S//c[k->z] MATCH NEXT",
    "S//a[k = $key] FOLLOWED BY {, W} S//b->u+ FOLLOWED BY {, W} S//a[k->z] MATCH STRICT",
    "S//a[p >= $least] FOLLOWED BY {, W} *//b->u+ WITHIN 9 s SAME (//k) MATCH PARTITION",
    "(S//a[k = $key] | T//c[p = $text]) FOLLOWED BY {, W} S//b->u+ MATCH NEXT",
    "S//a[k->x][p = $text] FOLLOWED BY {, W} S//b->u+ UNLESS {x = z} S//c[k->z] MATCH NEXT",
    "S//a[k->x][k = $key] FOLLOWED BY {, W} S//b[k->y] NOT FOLLOWED BY {x = z, W} S//c[k->z]"
    " MATCH STRICT",
    "S//a[k = $key] FOLLOWED BY {, W} S//b->u+ MATCH ANY WHERE count(u) > $least",
    "S//a->v FOLLOWED BY {, W} S//b->u+ WITHIN 9 s SAME (//k = $key)",
    "S//b->u+ {u/p >= prev(u/p), 4 s} WITHIN 9 s SAME (//k = $key)",
    "S//a NEXT {, W} *//b->u+ UNLESS S//c WITHIN 9 s SAME (//k = $key)",
    "(S//a | T//c) NEXT {, W} (S//b | T//b)+ WITHIN 9 s SAME (//k = $key)",
    "(S//b->u+ WITHIN 9 s SAME (//k = $key)) FOLLOWED BY {, W} S//c[k->z]",
    "(S//b->u+ NOT FOLLOWED BY {, W} S//c WITHIN 9 s SAME (/*/k = $key)) JOIN {, W} S//a[k = $key]",
    "S//a->v FOLLOWED BY {, W} S//b->u+ FOLLOWED BY {, W} S//c SAME (//k = $key) MATCH NEXT",
    "S//a->v FOLLOWED BY {, W} *//b->u+ WITHIN 9 s SAME (//k = $key) MATCH PARTITION",
    "S//b->u+ FOLLOWED BY {, W} S//c UNLESS S//a WITHIN 9 s SAME (//k = $key) MATCH STRICT",
    "(S//a | T//c) FOLLOWED BY {, W} S//b FOLLOWED BY {, W} S//c SAME (//k = $key) MATCH NEXT",
    "S//a[p >= $least] FOLLOWED BY {, W} S//b->u+ SAME (//k = $key) MATCH ANY WHERE count(u) > 1",
)


OUTCOMES = (
    " LIMIT $most PER $long",
    " WINDOW $long",
    " WINDOW 5 s HAVING count() >= $most",
)
"""What may be asked of the matches."""


def shared_case(chooser: Chooser) -> str:
    """Return a case of a statement and its assignments."""
    text = chooser.choice(STATEMENTS)
    while "W}" in text:
        text = text.replace("W}", f"{chooser.integer(1, 9)} s}}", 1)
    grace = chooser.choice(["", " GRACE 0 s", " GRACE 2 s"])
    given = chooser.choice([*[""] * 4, *OUTCOMES])
    queries = [f"query q\n    {text}{given}{grace}"]
    if chooser.integer(0, 3) == 0:
        # What is published has an interval, and is decided of in the batch in which it is found.
        published = "query p\n    SELECT * FROM S//a FOLLOWED BY {, 5 s} S//b PUBLISH P"
        queries = [published, queries[0].replace("*//", "P//")]
    return case_text(chooser, queries, 8)
