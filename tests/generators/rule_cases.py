"""Random cases of statements that use tables, as case texts."""

from __future__ import annotations

import xscl
from generators.choosers import Chooser
from generators.ordered_cases import assignments
from xscl.files import check_set

__all__ = ["rule_case"]

TABLES = """query t
    CREATE TABLE t (id KEY, n DEFAULT 0, s DEFAULT 'no')
query u
    CREATE TABLE u (id KEY, n DEFAULT 0)
"""


def _unit(chooser: Chooser, name: str, stream: str) -> str:
    """Return a block that binds a key and its node."""
    own = chooser.choice([*[""] * 7, "[k = $key]", "[p >= $least]"])
    return f"{stream}//{chooser.choice('ab')}{own}->{name}[k->{name}k]"


def _source(chooser: Chooser, stream: str) -> tuple[str, list[str]]:
    """Return a from, and the names of its nodes."""
    x, y, z = (_unit(chooser, name, stream) for name in "xyz")
    window = chooser.choice([*["2 s", "4 s", "9 s"] * 3, "$within"])
    match chooser.integer(0, 10):
        case 9:
            v = _unit(chooser, "v", stream)
            lossy = f"{y} LOSS {chooser.choice(['0.1', '0.5'])} DELAY uniform(0 s, 6 s)"
            chain = f"{x} FOLLOWED BY {{xk = yk, {window}}} {lossy}"
            return f"{chain} FOLLOWED BY {{yk = vk, {window}}} {v}", ["x", "y", "v"]
        case 10:
            lossy = f"{z} LOSS 0.25 DELAY cdf(2 s: 0.5, 5 s: 0.8)"
            chain = f"{x} FOLLOWED BY {{xk = yk, {window}}} {y}"
            return f"{chain} UNLESS {{xk = zk}} {lossy}", ["x", "y"]
        case 7:
            return f"{x} NEXT {{xk = zk, {window}}} {z}+ {{zk = xk, 3 s}}", ["x", "z"]
        case 8:
            run = f"{z}+ {{z/p >= prev(z/p, 0), 3 s}}"
            return f"{x} FOLLOWED BY {{xk = zk, 4 s}} {run}", ["x", "z"]
        case 0 | 1:
            return x, ["x"]
        case 2:
            return f"{x} FOLLOWED BY {{xk = yk, {window}}} {y}", ["x", "y"]
        case 3:
            return f"{x} NEXT {{xk = yk, {window}}} {y}", ["x", "y"]
        case 4:
            return f"{x} FOLLOWED BY {{, {window}}} {y} UNLESS {{xk = zk}} {z}", ["x", "y"]
        case 5:
            return f"{x} NOT FOLLOWED BY {{xk = yk, {window}}} {y}", ["x"]
    return f"{x} JOIN {{xk = yk, {window}}} {y}", ["x", "y"]


_OF_RUNS = ["count(z)", "sum(z/p)", "max(z/p)", "last(z/p)", "z/p"]
"""What actions may say of a run."""


def _key(chooser: Chooser, names: list[str]) -> tuple[str, str]:
    """Return the name of a node, and a key of a row: `z` is repeated."""
    name = chooser.choice(names)
    if name == "z":
        return name, chooser.choice(["last(zk)", "first(z/k)", "zk"])
    return name, chooser.choice([f"{name}k", f"{name}k", f"{name}/k", "'x'"])


def _guard(chooser: Chooser, names: list[str]) -> str:
    """Return what a statement asks tables."""
    name, key = _key(chooser, names)
    return chooser.choice(
        [
            f"t[{key}].n <= {chooser.integer(0, 2)}",
            f"t[{key}].s = 'no'",
            f"t[{key}].s = 'yes'",
            f"exists(t[{key}])",
            f"empty(u[{key}])",
            f"u[{key}].n < t[{key}].n + 1",
            f"u[t[{key}].s].n = 0",
            f"(t[{key}].n = 0 OR {name}/p = 2)",
            f"{name}/p = t[{key}].n",
            f"t[{key}].n <= $least",
            f"t[{key}].n {chooser.choice(['<', '>', '>=', '=', '!='])} $least",
            "t[$key].n = 0",
        ]
    )


def _action(chooser: Chooser, names: list[str]) -> str:
    """Return one action."""
    name, key = _key(chooser, names)
    if "z" in names and chooser.integer(0, 3) == 0:
        return f"SET {chooser.choice('tu')}[{key}].n = {chooser.choice(_OF_RUNS)}"
    return chooser.choice(
        [
            f"SET t[{key}].n = t[{key}].n + 1",
            f"SET t[{key}].s = 'yes'",
            f"SET t[{key}].s = {'last(zk)' if name == 'z' else f'{name}k'}",
            f"SET t[{key}].n = {name}/p",
            f"SET u[{key}].n = u[{key}].n + t[{key}].n + 1",
            f"SET u[{key}].n = 0",
            f"DELETE t[{key}]",
            f"DELETE u[{key}]",
            f"SET t[{key}].n = $least",
            "SET u[$key].n = u[$key].n + 1",
        ]
    )


def _statement(chooser: Chooser, stream: str, published: str, grace: str) -> str:
    source, names = _source(chooser, stream)
    source += " SAME (//k)" if chooser.integer(0, 6) == 0 else ""
    uses = chooser.integer(0, 5)
    where = ""
    if uses < 4:
        guards = [_guard(chooser, names) for _ in range(chooser.integer(1, 2))]
        where = f" WHERE {' AND '.join(guards)}"
    acts = 1 < uses < 5
    outcome = chooser.integer(0, 9) if "LOSS" not in source else 0
    if outcome > 6:
        names = [name for name in names if name != "z"]
        return _rows(chooser, source + where, names, acts=acts, grace=grace) + published
    text = f"SELECT {'DISJOINT ' if outcome == 6 else ''}* FROM {source}{where}"
    if outcome == 5 or (outcome == 6 and chooser.integer(0, 2) == 0):
        text += _limit(chooser, [f"{names[0]}k", f"{names[0]}/k"])
    if "LOSS" in source:
        sure = ["0.05"] if "uniform" in source else ["0.3", "0.8"]
        text += chooser.choice(["", f" CONFIDENCE {chooser.choice(sure)}"])
    text += grace
    if acts:
        actions = [_action(chooser, names) for _ in range(chooser.integer(1, 2))]
        text += f" ON MATCH {', '.join(actions)}"
    return text + published


def _limit(chooser: Chooser, keys: list[str]) -> str:
    by = f" BY {chooser.choice(keys)}" if keys and chooser.integer(0, 1) else ""
    length = chooser.choice([*["1 s", "3 s", "6 s"] * 2, "$long"])
    return f" LIMIT {chooser.choice([*'1112', '$most'])} PER {length}{by}"


def _rows(chooser: Chooser, source: str, names: list[str], *, acts: bool, grace: str) -> str:
    """Return a statement of rows, in which HAVING asks tables and rows act."""
    name = chooser.choice(names)
    key = chooser.choice([f"{name}k", f"{name}/k", ""])
    text = f"SELECT * FROM {source} WINDOW {chooser.choice(['0 s', '2 s', '5 s', '20 s', '$long'])}"
    text += f" BY {key}" if key else ""
    row = key or chooser.choice([f"first({name}k)", "'x'", f"collect(distinct {name}k)"])
    asked = [
        f"t[{row}].n <= {chooser.integer(0, 2)}",
        f"t[{row}].n < count()",
        f"sum({name}/p) >= u[{row}].n",
        f"exists(t[{row}])",
        f"empty(u[{row}])",
        f"count(distinct {name}k) = 1",
        f"count() >= {chooser.integer(1, 3)}",
        "count() >= $least",
        f"t[{row}].n < $least",
        f"(t[{row}].s = 'no' OR count({name}/p) > 1)",
    ]
    if chooser.integer(0, 3):
        terms = [chooser.choice(asked) for _ in range(chooser.integer(1, 2))]
        text += f" HAVING {' AND '.join(terms)}"
    if chooser.integer(0, 2) == 0:
        text += _limit(chooser, [key] if key else [])
    text += grace
    if acts:
        done = [
            f"SET t[{row}].n = count()",
            f"SET t[{row}].n = t[{row}].n + count()",
            f"SET u[{row}].n = sum({name}/p)",
            f"SET t[{row}].s = last({name}k)",
            f"SET u[{row}].n = max({name}/p)",
            f"SET t[{row}].s = if (count() > 1) then 'yes' else 'no'",
            f"DELETE t[{row}]",
            f"DELETE u[{row}]",
        ]
        actions = [chooser.choice(done) for _ in range(chooser.integer(1, 2))]
        text += f" ON MATCH {', '.join(actions)}"
    return text


def rule_case(chooser: Chooser) -> str:
    """Return the text of a case: two to four statements, documents and ticks."""
    grace = f" GRACE {chooser.choice([0, 0, 1, 3])} s"
    streams, texts = ["S"], []
    for number in range(chooser.integer(2, 4)):
        own = f" GRACE {chooser.integer(0, 3)} s" if chooser.integer(0, 5) == 0 else grace
        is_publisher = chooser.integer(0, 2) == 0
        published = f" PUBLISH P{number}" if is_publisher else ""
        text = _statement(chooser, chooser.choice(["S", *streams]), published, own)
        if is_publisher:
            queries = [q for i, t in enumerate([*texts, text]) for q in xscl.parse(t, id=f"q{i}")]
            if check_set([(query, "", query.text) for query in queries]):
                text = text.removesuffix(published)
            else:
                streams.append(f"P{number}")
        texts.append(text)
    if _has_cycle(texts):
        texts = [text.split(" PUBLISH ")[0] for text in texts]
        texts = [text.replace("P0//", "S//").replace("P1//", "S//") for text in texts]
        texts = [text.replace("P2//", "S//") for text in texts]
    lines = [TABLES, f"lateness {chooser.choice([2, 5, 100, 100])} s"]
    for number, text in enumerate(texts):
        query = f"query q{number}\n    {text}"
        lines += [query, *dict.fromkeys(assignments(chooser, query, 4))]
    count = chooser.integer(5, 12)
    times = sorted(chooser.integer(10, 10 + chooser.choice([4, 12])) for _ in range(count))
    for _ in range(chooser.choice([0, 0, 1, 3])):
        i, j = (chooser.integer(0, count - 1) for _ in range(2))
        times[i], times[j] = times[j], times[i]
    lines += [_document(chooser, number, second) for number, second in enumerate(times, 1)]
    if chooser.integer(0, 4):
        lines.append(f"tick {count + 1} 00:10:00")
    return "\n".join(lines) + "\n----\n"


def _has_cycle(texts: list[str]) -> bool:
    queries = [query for i, text in enumerate(texts) for query in xscl.parse(text, id=f"q{i}")]
    return bool(check_set([(query, "", query.text) for query in queries]))


def _document(chooser: Chooser, number: int, second: int) -> str:
    if chooser.integer(0, 9) == 0:
        row = chooser.choice(['<row id="x"><n>2</n></row>', '<delete id="y"/>', '<row id="y"/>'])
        return f"document {number} TABLE.t 00:00:{second:02} arrival=01:00  <rows>{row}</rows>"
    keys = "".join(f"<k>{chooser.choice('xxy')}</k>" for _ in range(chooser.choice([1, 1, 1, 2])))
    numbers = f"<p>{chooser.integer(0, 3)}</p>" if chooser.integer(0, 1) else ""
    kind = chooser.choice("ab")
    xml = f"<{kind}>{keys}{numbers}</{kind}>"
    return f"document {number} S 00:00:{second:02} arrival=01:00  {xml}"
