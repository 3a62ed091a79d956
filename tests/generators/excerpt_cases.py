"""Random cases of conditions on what is above or beside a node, in all places, as case texts."""

from __future__ import annotations

import json

from generators.choosers import Chooser

__all__ = ["PLACES", "excerpt_case"]

CONDITIONS = (
    *("[p > $n][1]", "[k = $x][2]", "[k = $x][last()]", "[k][$n]", "[p > $n][k = $x][1]"),
    *("[../@m = $x]", "[/f/@m = $x]", "[ancestor::*/@m = $x]", "[lang($x)]", "[../t = $x]"),
    *("[following-sibling::a/k = $x]", "[preceding-sibling::*/p > $n]", "[following::*/k = $x]"),
    *("[count(../*[k = $x]) > 1]", "[not(../b[k = $x][p > $n])]", "[k = $x or ../@m = $x]"),
    *("[@q[../k = $x]]", "[p[../k = $x][1]]"),
)

PLACES = (
    *("S//a?->u", "S//f[not(a?)]->v", "S//f[a?/k->i] JOIN {i = j, W} S//b[k->j]"),
    "S//a?[k->i] JOIN {i = j, W} S//b?[k->j]",
    "S//a[k->i] FOLLOWED BY {i = j, W} S//b?[k->j]",
    "S//a?[k->i] JOIN {i = j, W} S//b?[k->j] JOIN {j = l, W} S//c[k->l]",
    "S//a[k->i] JOIN {i = j, W} S//b[k->j] JOIN {j = l, W} S//c?[k->l]",
    "S//a?[k->i] JOIN {i = j, W} (S//b?[k->j] JOIN {j = l, W} S//c[k->l])",
    "S//a? FOLLOWED BY {, W} S//b FOLLOWED BY {, W} S//c WITHIN 9 s",
    *("(S//a? | S//b?) JOIN {, W} S//c", "S//a NEXT {, W} (S//b? | S//c?)"),
    *("S//a? NEXT {, W} S//b", "S//a NEXT {, W} S//b?", "S//a?[k->i] NEXT {i = j, W} S//b?[k->j]"),
    *("S//a? NEXT {, W} S//b[k = $x]", "(S//a? NEXT {, W} S//b) JOIN {, W} S//c"),
    *("(S//a NEXT {, W} S//b?) NEXT {, W} S//c", "S//a NEXT {, W} (S//b? JOIN {, W} S//c)"),
    *("S//a? NOT FOLLOWED BY {, W} S//b", "S//a NOT FOLLOWED BY {, W} S//b?"),
    *("S//a? NOT FOLLOWED BY {, W} S//b[k = $x]", "S//a? UNLESS {, W} S//b"),
    "(S//a?[k->i] JOIN {i = j, W} S//b[k->j]) NOT FOLLOWED BY {, W} S//c",
    *("S//a FOLLOWED BY {, W} S//b UNLESS S//c?", "S//a? FOLLOWED BY {, W} S//b UNLESS S//c"),
    "S//a?->v FOLLOWED BY {, W} S//b->u+ {u/k = v/k}",
    "S//a->v FOLLOWED BY {, W} S//b?->u+ {u/k = v/k}",
    "S//a?->v NEXT {, W} S//b->u+ WHERE count(u) = 2",
    *("S//a->v JOIN {exists(v/p?), W} S//b->u", "S//a->v JOIN {v/k? = u/k, W} S//b->u"),
    "S//a->v JOIN {exists(v/p?) OR v/k = u/k, W} S//b->u",
    "S//f->v JOIN {exists(v/a?) OR v/k = u/k, W} S//b->u JOIN {, W} S//c",
    "S//f->v JOIN {v/a?/k = u/k, W} S//b->u JOIN {, W} S//c",
    "S//f->v JOIN {if (exists(v/a?)) then v/t else u/k = 'x', W} S//b->u JOIN {, W} S//c",
    "(S//f->v NEXT {, W} S//b) NEXT {exists(v/a?) OR v/t = u/t, W} S//f->u",
    "S//f->v FOLLOWED BY {, W} S//c UNLESS {exists(v/a?) OR u/k = 'x', W} S//b->u",
    "S//a FOLLOWED BY {, W} S//c UNLESS {exists(u/a?) OR u/t = 'x', W} S//f->u",
    "S//a->v NEXT {exists(v/p?), W} S//b->u",
    "S//f->v NEXT {exists(u/a?) OR v/k = u/k, W} S//f->u",
    "S//f->v NOT FOLLOWED BY {exists(v/a?) OR v/t = u/t, W} S//f->u",
    "(S//f->v JOIN {exists(v/a?) OR v/t = u/t, W} S//f->u) NEXT {, W} S//c",
    "S//c NEXT {, W} (S//f->v NEXT {, W} S//b->u WHERE exists(v/a?) OR v/t = u/k)",
    "S//a[k = $x] NEXT {, W} (S//b? | S//c?)",
    "S//a[k = $x] NOT FOLLOWED BY {, W} (S//b? | S//c[k = $x]?)",
    "S//a NOT FOLLOWED BY {contains(u/k, $x) OR exists(u/k?), W} S//b->u",
    "S//f->v JOIN {if (exists(v/a?)) then v/t else u/k = 'x', W} S//b->u",
)


def excerpt_case(chooser: Chooser) -> str:
    """Return the text of a case with a statement, assigned some times, and documents."""
    first, *others = chooser.choice(PLACES).split("?")
    query = first + "".join(chooser.choice(CONDITIONS) + each for each in others)
    query = query.replace("W}", f"{chooser.choice('235')} s}}")
    is_decided = any(word in query for word in ("NEXT", "UNLESS", "NOT F", "+"))
    if is_decided and chooser.integer(0, 1):
        query += " GRACE 0 s"
    rows = []
    for _ in range(chooser.integer(1, 3)):
        given: dict[str, str | int] = {"x": chooser.choice("xyz"), "n": chooser.integer(0, 2)}
        used = {name: value for name, value in given.items() if f"${name}" in query}
        rows.append(f"parameters q {json.dumps(used)}")
    second, documents = 0, list[str]()
    for number in range(1, chooser.integer(2, 6) + 1):
        second += chooser.integer(0, 3)
        documents.append(f"document {number} S 12:00:{second:02}  {_document(chooser)}")
    return "\n".join(["query q", f"    {query}", *rows, "", *documents, "----", ""])


def _document(chooser: Chooser) -> str:
    items = "".join(_item(chooser) for _ in range(chooser.integer(1, 5)))
    text = f"<t>{chooser.choice('xy')}</t>" if chooser.integer(0, 1) else ""
    inner = text + items if chooser.integer(0, 1) else items + text
    return f"<f m='{chooser.choice('xyz')}'>{inner}</f>"


def _item(chooser: Chooser, *, is_inner: bool = False) -> str:
    name = chooser.choice("aabbc")
    inner = "".join(
        f"<{tag}>{chooser.choice(values)}</{tag}>"
        for tag, values in (("k", "xyz"), ("p", "123"))
        if chooser.integer(0, 5)
    )
    if not is_inner and not chooser.integer(0, 6):
        inner += _item(chooser, is_inner=True)
    own = chooser.choice(("", "", " q='1'", " xml:lang='x'"))
    return f"<{name}{own}>{inner}</{name}>"
