"""Which parameters are data, so that a query is compiled once for all its assignments."""

from __future__ import annotations

import pytest

import xscl
from templates.box import MustBe
from templates.compiler import compile_query
from templates.prepared import is_prepared, may_be_prepared
from xpath_eval.catalog import PatternCatalog


def prepared(text: str) -> bool:
    [query] = xscl.parse(text)
    return may_be_prepared(query) and is_prepared(compile_query(query, 0, PatternCatalog(), {}))


@pytest.mark.parametrize(
    "text",
    [
        "S//a[k = $k]",
        "S//a[k->x] FOLLOWED BY {x = y AND y != $k, 1 h} S//b[k->y]",
        "S//a[k->x] FOLLOWED BY {x = y, $within} S//b[k->y]",
        "S//a[k->x][n->m] FOLLOWED BY {x = y AND m > $low, 1 h} S//b[k->y]",
        "S//a[n > $low]",
        "S//a[k != $k]",
        "S//a[contains(k, $part)]",
        "S//a[k->x] FOLLOWED BY {contains(x, $part), 1 h} S//b",
        # Wherever it stands: what operators hand on has the values that are tested above.
        "S//a[k->x] JOIN {x = y, 1 h} S//b[k->y] JOIN {y = z, 1 h} S//c[k->z][m = $m]",
        "S//a[n > $n][k->x] JOIN {x = y, $within} S//b[k->y] JOIN {y = z, 1 h} S//c[k->z]",
        # What is decided about may differ, what decides may not.
        "S//a[k = $k] NEXT {, 1 h} S//b",
        "(S//a[n > $n][k->x] NOT FOLLOWED BY {x = y, 1 h} S//b[k->y])",
        "(S//a[k = $k] FOLLOWED BY {, 1 h} S//b) NEXT {, 1 h} S//c",
        "S//a->a NEXT {, 1 h} S//b->b WHERE b/n > $n",
        "(S//a NEXT {, 1 h} S//b[n->y] WHERE y > $n) NEXT {, 1 h} S//c",
        "(S//a NEXT {, 1 h} S//b) JOIN {, $within} S//c[k = $k]",
        "S//a FOLLOWED BY {, 1 h} S//b[k = $k] UNLESS S//c",
        # Also what follows of a unit that is left, where another one is lost.
        "S//a FOLLOWED BY {y = $k, 1 h} S//b[k->y] LOSS 0.1 DELAY exp(1 h)"
        " FOLLOWED BY {y = z, 1 h} S//c[k->z]",
        "S//a NEXT {, 1 h} S//b[k = $k]",
        "S//a NEXT {, 1 h} (S//b[k = $k][m = $m] | S//c[k = $k][m = $m])",
        "S//a NEXT {, 1 h} (S//b[k = $k] NEXT {, 1 h} S//c)",
        # What the index finds in a right is what it competes for.
        "S//a NEXT {, 1 h} S//b[contains(k, $k)]",
        "S//a NEXT {, 1 h} S//b[matches(k, $k)][n = $n][m > $m]",
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c[starts-with(m, $k)])",
        "S//a NEXT {, 1 h} S//b[n = 1 or n > $low]",
        "S//a NEXT {, 1 h} (S//b NEXT {, 1 h} S//c[contains(k, $k)])",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[contains(k, $k)]",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k = $k or n = 1]",
        "S//a UNLESS {, 1 h} S//b[k = $k and n = 1 or n > 2]",
        # A threshold, or a window, is served step by step.
        "S//a NEXT {, 1 h} S//b[n > $n]",
        "S//a NEXT {, 1 h} S//b[k = $k][n <= $n]",
        "S//a[k->x] NEXT {x = y AND m > $n, 1 h} S//b[k->y][n->m]",
        "S//a[n->x] NEXT {x > $n, 1 h} S//b->b",
        "S//a[n->x]->a NEXT {x > $n AND b/k = $k AND contains(a/k, $w), 1 h} S//b->b",
        "S//a NEXT {, $within} S//b",
        "(S//a NEXT {, $within} S//b[k = $k]) JOIN {, 1 h} S//c",
        # What takes away says for which data it does.
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k = $k]",
        "S//a[k = $k] NOT JOIN {, 1 h} (S//b[k = $m] | S//c[k = $m])",
        "S//a NEXT {, 1 h} S//b[n > $n] UNLESS S//c[k = $k]",
        "S//a FOLLOWED BY {, 1 h} S//b UNLESS {c/n < $n} S//c->c UNLESS S//b",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k = $k][contains(m, $m)]",
        "S//a NOT JOIN {, 1 h} (S//b[k = $k][n = $n] | S//c | S//c[k = $k][n = $n])",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k = $k][contains(m, $k)]",
        # What who has the tuple has as well is no other datum.
        "S//a[k = $k] NOT FOLLOWED BY {, $within} S//b[k = $k]",
        "S//a[k = $k] NOT FOLLOWED BY {, 1 h} S//b[k = $k][n > $n]",
        "S//a[k = $k][m = $m] NOT JOIN {, $within} (S//b[k = $k][contains(n, $m)] | S//c)",
        "S//a[k = $k] NEXT {, $within} S//b UNLESS S//c[k = $k]",
        "S//a NEXT {, 1 h} S//b[contains(k, $k)] UNLESS {, $within} S//c[k = $k]",
        "S//a NEXT {, 1 h} S//b UNLESS {contains(c/k, $k) AND c/m = $m} S//c->c",
        # Rows hold for all data but those that they must differ from.
        "S//a NEXT {, 1 h} S//b[k != $k]",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k != $k]",
        "(S//a[k = $k] | S//c[m = $m]) NEXT {, 1 h} S//b[k != $k]",
        "S//a[k = $k] NEXT {, 1 h} S//b[k != $k][m != $m]",
        "S//a[k != $k] NEXT {, 1 h} S//b[k != $k]",
        "S//a NEXT {, 1 h} S//b[k = $k] UNLESS S//c[m != $m]",
        "S//a NEXT {, 1 h} (S//b[k != $k] | S//c[not(m = $k)] | S//d)",
        "S//a->a NOT JOIN {b/k != $k, 1 h} S//b->b",
        # What one alternative must differ from, another may equal, or not be held against.
        "S//a NEXT {, 1 h} S//b[k != $k][m = $m]",
        "S//a NEXT {, 1 h} S//b[k != $k] UNLESS S//c[k = $k]",
        "S//a NOT FOLLOWED BY {, 1 h} (S//b[k != $k] | S//c[k = $k])",
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c)",
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c[contains(m, $k)] | S//d[k != $k] | S//e)",
        "S//a NEXT {, 1 h} (S//b[k != $k][m = $m] | S//c[m = $m])",
        "S//a FOLLOWED BY {, 1 h} S//b[n > $n] UNLESS S//c[k != $k] UNLESS S//d[not(k = $k)]",
        # Where nothing else does, each datum is asked.
        "S//a NEXT {, 1 h} S//b[n > m * $n]",
        "S//a NEXT {, 1 h} S//b[n > $n][m > $m]",
        "S//a NEXT {, 1 h} (S//b[n > $n] | S//c[n < $n])",
        "S//a NEXT {, 1 h} S//b[n > $n][m > $n]",
        "S//a NEXT {, $within} S//b[n > $n]",
        "S//a NEXT {, 1 h} S//b[k != $k][m != $m]",
        "S//a NEXT {, 1 h} S//b[k != $k][n > $n]",
        "S//a NEXT {, 1 h} S//b[k != $k] UNLESS S//c[k = $m]",
        "S//a NEXT {, $within} S//b[k != $k]",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k != $k][m = $m]",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[not(contains(k, $k))]",
        "S//a[n > $n] NEXT {, 1 h} S//b[n > $n][m > $n]",
        "S//a NEXT {, 1 h} S//b[not(k = $k or n > $n)]",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[k = $k][n > $n]",
        "S//a NEXT {, 1 h} S//b[n > $n] UNLESS S//c[n > $m]",
        "S//a NEXT {, 1 h} (S//b[n > $n][k != $k] | S//c[n < $n][not(contains(k, $k))])",
        "(S//a NEXT {, 1 h} S//b[n > $n][m > $m]) NOT FOLLOWED BY {, 1 h} S//c[n > $m][k != $k]",
        # However it is held against what competes, or is absent.
        "S//a[k = $k]->a NEXT {a/m = b/m, 1 day} S//b[k != $k]->b",
        "S//a[k = $k] NOT FOLLOWED BY {, 1 h} S//b[not(k = $k)]",
        "S//a[k = $k][m = $m] NEXT {, 1 h} S//b[k = $k][m != $m] UNLESS S//c[not(contains(n, $k))]",
        "S//a[k = $k] NEXT {, $within} S//b[k != $k][m != $k or m = 'x']",
        "S//a[n = $n] NEXT {, 1 h} S//b[n > $n][m < $n + 1][not(k > o * $n)]",
        "S//a[n = $n] NEXT {, 1 h} (S//b[n > $n] | S//c[n < $n] | S//d)",
        "S//a[contains(k, $k)] NOT FOLLOWED BY {, $within} S//b[concat(k, $k) = 'ab']",
        "S//a[k = $k]->a NEXT {b/k != $k AND contains(b/m, $k), 1 h} S//b->b",
        "S//a[k = $k][m = $m] NEXT {, 1 h} S//b[k != $k and m = $m or n = 1]",
        "S//a[k = $k] NEXT {, 1 h} S//b[k != $k][m = $m][n > $n]",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b[m = $m] UNLESS {c/k != $k AND c/m != $m} S//c->c",
        "S//a[k = $k] NEXT {, 1 h} S//b[n > $n] UNLESS S//c[k != $k]",
        "(S//a[k = $k] NEXT {, 1 h} S//b) NOT FOLLOWED BY {, $within} S//c[k != $k]",
        "S//a NEXT {, 1 h} S//b[k = $k][m != $k]",
        "S//a NOT FOLLOWED BY {, 1 h} S//b[n = $n][n > 5 or m > $n]",
        "S//a UNLESS {, $within} S//b",
        "S//a NEXT {, 1 h} S//b UNLESS {, $within} S//c",
        "S//a NEXT {, $within} S//b UNLESS S//c",
        "S//a FOLLOWED BY {, $within} S//b UNLESS {, 1 h} S//c",
        "S//a NEXT S//b WITHIN $within",
        "S//a FOLLOWED BY (S//b | S//c) UNLESS S//d WITHIN $within SAME (//k)",
        "S//a FOLLOWED BY S//b FOLLOWED BY S//c WITHIN $within",
        "S//a FOLLOWED BY {, 1 h} S//b FOLLOWED BY {, $long} S//c WHERE dur() < $within",
        # Of a left operand each tuple is decided by itself.
        "(S//a FOLLOWED BY {, $within} S//b) NEXT {, 1 h} S//c",
        "(S//a NOT FOLLOWED BY {, $within} S//b) NEXT {, 1 h} S//c",
        "S//a FOLLOWED BY {, 1 h} (S//b NEXT {, $within} S//c) UNLESS S//d",
        # Runs are those of what stands before them.
        "S//a[k = $k][n > $n] FOLLOWED BY {, 1 h} S//b->b+ {b/n > prev(b/n)}",
        "(S//a[k = $k] | S//c) NEXT {, 1 h} S//b+ UNLESS S//c",
        "S//c NEXT {, 1 h} (S//a[k = $k] FOLLOWED BY {, 1 h} S//b+)",
        # Elements that say data are in runs with those that say the same.
        "S//a FOLLOWED BY {, 1 h} S//b[k = $k]+",
        "S//b[contains(m, $m)]->b+ {b/n > prev(b/n)} WITHIN 1 h",
        "(S//a | S//c[k = $k]) NEXT {, 1 h} (S//b[k = $k] | S//c[contains(m, $k)])+",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b[k = $k][m = $m]+ UNLESS S//c[contains(n, $m)]",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b+ UNLESS S//c[k = $k]",
        "S//b[k = $k][m = $m or n = $m]+ WITHIN 1 h SAME (//m = $m) LIMIT 1 PER 1 h",
        "S//a[k = $k][n > $n] FOLLOWED BY {, 1 h} S//b[k = $k]+ MATCH STRICT",
        "S//b[contains(m, $m)]+ FOLLOWED BY {, 1 h} S//c[m = $m] UNLESS S//c[m != $m] MATCH NEXT",
        "S//a[k = $k]->a FOLLOWED BY {a/n < c/n, 1 h} S//c[k = $k]->c SAME (//m) MATCH PARTITION",
        # Each datum that fulfils a bound, or from which a value differs, finds them.
        "S//a FOLLOWED BY {, 1 h} S//b[n > $n]+ {, 5 s}",
        "S//a NEXT {, 1 h} S//b[k != $k][n > m * $n and n < 5]+ UNLESS S//c[n > m * $n]",
        "(S//a[k = $k] | S//c) FOLLOWED BY {, 1 h} (S//b[n != $n] | S//c[n != $n])+",
        # Where not all of them say the same, each is asked for all.
        "S//a FOLLOWED BY {, 1 h} S//b[not(k = $k)]+",
        "S//a FOLLOWED BY {, 1 h} S//b[not(n > $n)]+",
        "S//a FOLLOWED BY {, 1 h} (S//b[k = $k] | S//c)+",
        "(S//a[k = $k] | S//c) FOLLOWED BY {, 1 h} S//b[not(k = $k)]+",
        "S//a NEXT {, 1 h} (S//b[k = $k or n > $n] | S//c[n < $n] | S//d)+ {, 5 s}",
        "S//a FOLLOWED BY {, 1 h} S//b[k = $k]+ UNLESS (S//c[k = $m] | S//d)",
        "S//a FOLLOWED BY {, 1 h} S//b+ UNLESS S//c[k = $k]",
        "S//a FOLLOWED BY {, 1 h} S//b+ FOLLOWED BY {, 1 h} S//c[k = $k] MATCH NEXT",
        "S//a[k = $k]+ FOLLOWED BY {, 1 h} S//b SAME (//k) MATCH PARTITION",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b[k = $k][m != $k] MATCH NEXT",
        "S//a[n > $n] FOLLOWED BY {, 1 h} S//b[k = $k][n > $n]+ MATCH NEXT",
        "S//a FOLLOWED BY {, 1 h} S//b+ UNLESS S//c[k = $k] MATCH STRICT",
        # So is what braces hold them against.
        "S//a FOLLOWED BY {, 1 h} S//b->b+ {b/k = $k AND b/n > prev(b/n)}",
        "S//a NEXT {, 1 h} (S//b[k->y] | S//c)+ {y != $k}",
        "S//a->a FOLLOWED BY {, 1 h} S//b->b+ {$n < b/n AND exists(b/e[f = $m])} MATCH NEXT",
        "S//a FOLLOWED BY {, 1 h} S//b->b+ {contains(lower-case(b/k), $k)}",
        "S//a FOLLOWED BY {, 1 h} S//b+ UNLESS {c/k = $k} S//c->c",
        # What they ask beside other values reads constants of the run,
        "S//a->a FOLLOWED BY {b/k = $k, 1 h} S//b->b+",
        "S//a FOLLOWED BY {, 1 h} S//b->b+ {b/k = $k OR b/n > 1}",
        "S//a FOLLOWED BY {, 1 h} S//b->b+ {b/n > prev(b/n) * $n}",
        "S//a NEXT {, 1 h} S//b->b+ WHILE {b/k = $k}",
        "S//a->a FOLLOWED BY {a/n > $n, 1 h} S//b+ MATCH NEXT",
        "S//b->b+ {b/n > prev(b/n) + $n} FOLD {s = $n THEN s + b/n} WITHIN 1 h",
        "S//b->b+ {b/n > prev(b/n) * $n} FOLLOWED BY {, 1 h} S//c MATCH STRICT",
        "SELECT COMPRESSED FROM S//a FOLLOWED BY {, 1 h} S//b->b+ {b/n > prev(b/n) * $n}",
        "S//a->a FOLLOWED BY {b/n > a/n * $n, 1 h} S//b->b MATCH ANY WINDOW 1 h",
        # gaps and windows too,
        "S//a FOLLOWED BY {, $within} S//b+",
        "S//a NEXT {, $within} S//b+ {, $gap} UNLESS S//c",
        "S//c NEXT {, 1 h} (S//a NEXT {, 1 h} S//b+ {, $gap})",
        "S//a FOLLOWED BY {, 1 h} S//b+ {, $gap} FOLLOWED BY {, 1 h} S//c MATCH NEXT",
        "S//a FOLLOWED BY {, $within} S//b+ {, $gap} WINDOW 1 h HAVING count() > 5",
        "(S//a NEXT S//b+ {, $gap} UNLESS S//c WITHIN $within) FOLLOWED BY {, 1 h} S//c",
        # those of chains, of UNLESS, before runs, and in runs that compete,
        "S//a FOLLOWED BY {, $within} S//b+ UNLESS {, $other} S//c MATCH NEXT",
        "S//a UNLESS {, $other} S//c FOLLOWED BY S//b+ WITHIN $within SAME (//k) MATCH PARTITION",
        "SELECT COMPRESSED FROM S//a FOLLOWED BY {, $within} S//b+ WITHIN $other MATCH ANY",
        "S//a FOLLOWED BY {, $within} S//b FOLLOWED BY {, 1 h} S//c WITHIN $other MATCH ANY",
        "S//a NEXT {, 1 h} S//b+ UNLESS {, $other} S//c",
        "(S//a FOLLOWED BY {, $within} S//c) FOLLOWED BY {, 1 h} S//b+",
        "S//a NEXT {, 1 h} (S//b FOLLOWED BY {, $within} S//c+)",
        # or what it says where data find what is read.
        "S//a[k = $k] NEXT {, 1 h} S//b+ {, $gap}",
        "S//a[k = $k] FOLLOWED BY {, $within} S//b+ UNLESS {, $other} S//c WITHIN $long",
        "S//b[k = $k]->b+ {b/n > prev(b/n) * $n} WITHIN $within",
        "S//a FOLLOWED BY {, 1 h} S//b[k = $k]+ {, $gap} MATCH STRICT",
        "S//a[k = $k] NEXT {b/n > $n, 1 h} S//b->b+ UNLESS {c/n > b/n * $n} S//c->c",
        "S//a FOLLOWED BY {, 1 h} S//b[k = $k]->b+ {sum(b/n * $n) < 5}",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b->b+ {b/n > prev(b/n) * $n} MATCH NEXT",
        # What one of them says, or what stands before, is asked of others in any way.
        "S//a[k = $k] NEXT {, 1 h} S//b[k != $k]+ {, 5 s}",
        "S//b[k = $k][n > m * $k][not(m = $k)]+ WITHIN 1 h",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b[m = $m]+ UNLESS S//c[k != $m][not(m = $k)]",
        "(S//a NEXT {, 1 h} S//b+) JOIN {, $within} S//c",
        "(S//a NEXT {, 1 h} S//b+) NOT FOLLOWED BY {, $within} S//c",
        "S//a[k = $k][n > $n] FOLLOWED BY {, 1 h} S//b->b+ {b/n > prev(b/n)} MATCH NEXT",
        "(S//a[k = $k] | S//c) FOLLOWED BY {, 1 h} S//b SAME (//k) MATCH PARTITION",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b+ UNLESS S//c MATCH STRICT",
        "S//a FOLLOWED BY {, $within} S//b MATCH ANY",
        "S//a[b[@c][n > $low]]",
        "S//a[not(n > $low)]",
        "S//a[not(b[n > $low]/c)]",
        "S//a[b[c[k = $k]/n]]",
        "S//a FOLLOWED BY {, 1 h} S//b+ SAME (//k = $k)",
        "S//b->b+ {b/n > prev(b/n)} WITHIN 1 h SAME (//k = $k)",
        "S//b+ FOLLOWED BY {, 1 h} S//c UNLESS S//d WITHIN 1 h SAME (//k = $k) MATCH PARTITION",
        # What is made of matches, and asked of tables, has no part in what is compiled.
        "S//a[k = $k][n > $n] LIMIT $most PER $long",
        "SELECT DISJOINT * FROM S//a[k = $k] FOLLOWED BY {, $within} S//b WITHIN 1 h",
        "S//a[k->x] FOLLOWED BY {x = y, 1 h} S//b[k->y] WITHIN $within LIMIT 1 PER 1 h BY x",
        "S//a[n->x] FOLLOWED BY {x > $n * y, 1 h} S//b[n->y] LIMIT 1 PER 1 h",
        "S//a[k->x] WITHIN $within WINDOW $long BY x HAVING count() > $least LIMIT $most PER $long",
        "(S//a[k->x] NEXT {x = y, 1 h} S//b[k->y][n > $n]) JOIN {, $within} S//c WINDOW $long",
        "S//a[k->x] WHERE t[x].n > $n AND t[$k].n = $n ON MATCH SET t[x].n = $m",
        "S//a[k = $k][k->x] NEXT {, 1 h} S//b WHERE t[x].n > $n LIMIT $most PER 1 h",
        # What is solved below is asked at the root, where the solution leaves it open.
        "S//a[n->x] JOIN {x > $k * y, 1 h} S//b[n->y] JOIN {, 1 h} S//c",
        "S//a[n->x] JOIN {x > $k * $n + 1, 1 h} S//b JOIN {, 1 h} S//c",
        "S//a[n->x] JOIN {x > y div $k, 1 h} S//b[n->y] JOIN {, 1 h} S//c",
        # Alternatives that ask for different data are asked for those of all.
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c) UNLESS S//d[m != $m]",
        "S//a NEXT {, 1 h} (S//b[n > $n] | S//c[m > $m])",
        "S//a NEXT {, 1 h} (S//b[n > $n][m > $m] | S//c)",
        "S//a NOT FOLLOWED BY {, 1 h} (S//b[n > $n][m > $m] | S//c[n > $n])",
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c[k = $m] | S//d)",
        "S//a NEXT {, 1 h} (S//b[k != $k][m = $m] | S//c[k != $k])",
        "S//a NEXT {, 1 h} (S//b[k != $k] | S//c[m != $m])",
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c[k = $m])",
        "S//a[k = $k] NOT FOLLOWED BY {, 1 h} (S//b[k = $k][m = $m] | S//c[m = $m])",
        "S//a NEXT {, 1 h} (S//b[k = $k] | S//c[count(m) = $k])",
        "S//a NOT FOLLOWED BY {, 1 h} (S//b[k = $k] | S//c[k = $m])",
        # A tuple of each window is decided by itself.
        "S//a NOT FOLLOWED BY {, $within} S//b[k != $k]",
        "S//a NOT FOLLOWED BY {, $within} S//b[k = $k]",
        "S//a[k = $k] NOT FOLLOWED BY {, $within} S//b[k = $k][m = $m]",
        # Else the operand says all data.
        "S//a[n->x] NEXT {x > $n OR x = y, 1 h} S//b[n->y]",
        "S//a NEXT {, $within} S//b UNLESS S//c[k = $k]",
        "S//a[n->x] NEXT {x > y * $k, 1 h} S//b[n->y]",
        "S//a->a NEXT {a/k = b/k OR exists(b/e[k = $k]), 1 h} S//b->b WHERE empty(a/e[n > $n])",
        # Of several windows it says those of what is absent, too.
        "S//a NEXT {, 1 h} S//b UNLESS {, $within} S//c UNLESS {, $other} S//d",
        "S//a FOLLOWED BY {, $within} S//b UNLESS {, $within} S//c",
        "S//a NEXT S//b[k = $k] UNLESS {, $other} S//c[k != $k] WITHIN $within",
        "S//a UNLESS {, $within} S//b UNLESS {, 1 h} S//c",
        "S//a UNLESS {, $within} S//b UNLESS {, $other} S//c UNLESS {, 1 h} S//d",
        # WITHIN is the window of operators that have none, and a condition of others.
        "S//a NEXT {, 1 h} S//b WITHIN $within",
        "S//a NEXT S//b NEXT {, 1 h} S//c UNLESS {, $other} S//d WITHIN $within",
        "S//a NEXT S//b NEXT S//c WITHIN $within",
        "S//a NEXT (S//b FOLLOWED BY S//c UNLESS {, 1 h} S//d) NEXT S//c WITHIN $within",
        # A window of what competes is a threshold, or is asked.
        "S//a NEXT {, 1 h} (S//b FOLLOWED BY {, $within} S//c)",
        "S//a NEXT {, $within} (S//b NOT FOLLOWED BY {, $within} S//c)",
        "S//a NEXT {, 1 h} (S//b JOIN {, $within} S//c JOIN {, $other} S//d)",
        "S//a NEXT {, 1 h} (S//b NEXT {, $within} S//c UNLESS S//d[k = $k])",
        "S//a[k = $k] NEXT {, 1 h} (S//b NOT FOLLOWED BY {, 1 h} S//c[k = $k])",
        # What no box has is asked where tuples are handed on, which say the data.
        "(S//a->a NEXT {, 1 h} S//b WHERE exists(a/e[k = $k])) NEXT {, 1 h} S//c",
        "(S//a->a FOLLOWED BY {a/k = b/k OR exists(b/e[k = $k]), 1 h} S//b->b) NEXT {, 1 h} S//c",
        "(S//a[n->x] JOIN {x > $k * y, 1 h} S//b[n->y]) NEXT {, 1 h} S//c",
        "(S//a NEXT {, 1 h} S//b->b WHERE exists(b/e[../k = $k])) NEXT {, 1 h} S//c",
        "S//a[k = $k] NEXT {, 1 h} (S//b[k->x] JOIN {concat(x, $k) != y, 1 h} S//c[k->y])",
        "(S//a->a JOIN {time(b) > time(a) + $long, 1 h} S//b->b) FOLLOWED BY {, 1 h} S//c+",
        # What is asked of values of a node is a test of a box, or of each tuple.
        "S//a[n = 1 or n > $low]",
        "S//a[not(k = $k or n > $n)]",
        "S//a[b[k = $k][n > $n]]",
        "S//a[b[not(k = $k)][not(n > $n)]/c]",
        "S//a[count(b) > $few]",
        "S//a[b[$n]/c = 'x']",
        "S//a[k = $k and n > $n or contains(k, $k)] FOLLOWED BY {, 1 h} S//b",
        "S//a[b[n > m * $n]/c[concat(k, $k) = 'ab']]",
        "S//a[b[n > m * $n]/c = $k]",
        "S//a[n > m * $n] JOIN {, 1 h} S//b[n * $n - $k < 5] JOIN {, 1 h} S//c",
        "S//a[k = $k or n > 1] NEXT {, 1 h} S//b",
        # Of what XPath 1.0 makes with parameters, what has none is a value of the node.
        "S//a[contains(substring-after(k, $mark), 'x')]",
        "S//a[string(k) = $k] NEXT {, 1 h} S//b",
        "S//a[k = normalize-space($k)] NEXT {, 1 h} S//b",
        "S//a[concat(../k, $k) = k] FOLLOWED BY {, 1 h} S//b FOLLOWED BY {, 1 h} S//c[n or $n]",
        # What two conditions of one block read is one value.
        "S//a[not(k = $k and m)][sum(k) > $n or k != m * $m] FOLLOWED BY {, 1 h} S//b",
        # So is where a node stands, and what is worked out of a text and of data.
        "S//a[position() < $first]",
        "S//a[$first]/b[k->x] FOLLOWED BY {x = y, 1 h} S//b[k->y]",
        "S//a[k->x] JOIN {x = y AND replace(x, $k, 'b') = y, 1 h} S//b[k->y] JOIN {, 1 h} S//c",
        "S//a[k->x] JOIN {concat(x, $more) = 'ab', 1 h} S//b JOIN {, 1 h} S//c",
        "S//a->a JOIN {contains(a/k, concat($k, 's')), 1 h} S//b JOIN {, 1 h} S//c",
        "S//a->a JOIN {if (a/n > $n) then 1 else a/m = 1, 1 h} S//b JOIN {, 1 h} S//c",
        "S//a->a JOIN {time(b) > time(a) + $long, 1 h} S//b->b JOIN {, 1 h} S//c",
        "S//a->a WHERE tokenize(a/k, $mark) = 'x' AND exists(a/b[k = $k])",
        "S//a->a JOIN {a/b[$n] = b/k, 1 h} S//b->b",
        "S//a->a JOIN {a[n > m * $n]/k = b/k, 1 h} S//b->b JOIN {, 1 h} S//c",
        "S//a->a JOIN {empty(a/b[k = $k]) OR exists(a/c[$n]/d), 1 h} S//b->b",
        "S//a[b[n > m * $n]/c]",
        "S//a[b[concat(k, $k) = 'ab']]",
        "S//a[contains(b[n > $low], 'x')]",
        "S//a[n > m * $n] NEXT {, 1 h} S//b",
        "S//a[concat(k, $k) = 'ab'] NEXT {, 1 h} S//b",
        "S//a[n != m * $n] NOT FOLLOWED BY {, 1 h} S//b",
        "S//a[k = $k and n = 1 or not(n > $n)] FOLLOWED BY {, 1 h} S//b UNLESS S//c",
        "S//a[not(n > m mod $n and k = $k)] FOLLOWED BY {, 1 h} S//b+",
        "S//a[n > m * $n]->a JOIN {, 1 h} S//b[k = $k and n = 1 or n > $n] LIMIT 1 PER 1 h",
        "S//a[n > m * $n]->a WHERE t[a/k].n > 1 WINDOW 1 h",
        # Words that look like a parameter where it is written down are none.
        "S//a[contains(k, 'Parameter(')][k = $k]",
        "S//a[not(b[k = $k][n > $n])]",
        "S//a[not(b[k = $k]/n > $n)]",
        "S//a[b[c][$n]]",
        "S//a[b[last() - $n]]",
        "S//a[b[k = $k]/n > $n or k = $k]",
        "S//a[not(b[concat(k, $k) = 'ab'])]",
        "S//a[b[n > m * $n][2]]",
        "S//a[count(b[k = $k]) > 1]",
        "S//a[n = 1 or n > $low][2]",
        "S//a[position() < $first][k][1]",
        "S//a[last() = $n][k = $k]",
        "S//a/b[k = $k][2]/c",
        "S//a[../k = $k]",
        "S//a[lang($k)]",
        "S//a[k->x] FOLLOWED BY {substring-after(x, $mark) = y, 1 h} S//b[k->y]",
        "S//a[k->x] FOLLOWED BY {lower-case(substring-after(x, $mark)) = y, 1 h} S//b[k->y]",
        "S//a[k->x] JOIN {substring-after(x, $mark) = y, 1 h} S//b[k->y] LIMIT 1 PER 1 h",
        "(S//a[k->x] JOIN {replace(x, $k, 'b') = y, 1 h} S//b[k->y]) NEXT {, 1 h} S//c",
    ],
)
def test_a_parameter_that_is_held_against_a_value_is_data(text: str) -> None:
    assert prepared(text)


@pytest.mark.parametrize(
    "text",
    [
        "(S//a NEXT S//b WITHIN $other) NEXT S//c WITHIN $within",
        "S//a NOT FOLLOWED BY S//b WITHIN $within",
        "S//a[k = $k] FOLLOWED BY S//b+ WITHIN $within MATCH NEXT",
        "(S//a FOLLOWED BY S//c) FOLLOWED BY {, 1 h} S//b+ WITHIN $within",
        "S//b[k = $k]+ {, $gap} WITHIN 1 h WINDOW 1 h HAVING count() > 5",
        "S//b[k = $k]->b+ {b/n > prev(b/n) * $n} WITHIN 1 h WINDOW 1 h HAVING count() > 5",
        "SELECT COMPRESSED FROM S//a[k = $k] FOLLOWED BY {, 1 h} S//b[k = $k]+ MATCH ANY",
        "S//a[k = $k] FOLLOWED BY {, 1 h} S//b+ WINDOW 1 h HAVING count() > $least",
        "SELECT COMPRESSED FROM S//a[k = $k] FOLLOWED BY {, 1 h} S//b+",
    ],
)
def test_a_parameter_that_decides_what_a_pattern_is_is_not_data(text: str) -> None:
    assert not prepared(text)


def test_a_bound_behind_not_may_be_given_as_the_text_of_a_number() -> None:
    [query] = xscl.parse("S//a NEXT {, 1 h} S//b[not(count(n) > $n)]", id="q")
    clauses = [c for each in compile_query(query, 0, PatternCatalog(), {}) for c in each.clauses]
    typed = {each for clause in clauses for test in clause.box for each in test.typed()}
    assert typed == {("n", MustBe.READ_AS_NUMBER)}
    given = 3, "3", " 1. ", "INF", "x", "9" * 400
    assert [MustBe.READ_AS_NUMBER.fits(each) for each in given] == [True] * 3 + [False] * 3


def test_a_number_may_be_given_where_each_datum_is_asked() -> None:
    [query] = xscl.parse("S//a NEXT {, 1 h} S//b[n > $n][m > $m][not(k = $k or o > $o)]", id="q")
    clauses = [c for each in compile_query(query, 0, PatternCatalog(), {}) for c in each.clauses]
    typed = {each for clause in clauses for test in clause.box for each in test.typed()}
    assert typed == {("k", MustBe.STRING)}
