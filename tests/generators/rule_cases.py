"""Random cases of statements that use tables, as case texts."""

from __future__ import annotations

import xscl
from generators.choosers import Chooser
from xscl.files import check_set

__all__ = ["rule_case"]

TABLES = """query t
    CREATE TABLE t (id KEY, n DEFAULT 0, s DEFAULT 'no')
query u
    CREATE TABLE u (id KEY, n DEFAULT 0)
"""


def _unit(chooser: Chooser, name: str, stream: str) -> str:
    """Return a block that binds a key and its node."""
    return f"{stream}//{chooser.choice('ab')}->{name}[k->{name}k]"


def _source(chooser: Chooser, stream: str) -> tuple[str, list[str]]:
    """Return a from, and the names of its nodes."""
    x, y, z = (_unit(chooser, name, stream) for name in "xyz")
    window = chooser.choice(["2 s", "4 s", "9 s"])
    match chooser.integer(0, 6):
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


def _guard(chooser: Chooser, names: list[str]) -> str:
    """Return what a statement asks tables."""
    name = chooser.choice(names)
    key = chooser.choice([f"{name}k", f"{name}k", f"{name}/k", "'x'"])
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
        ]
    )


def _action(chooser: Chooser, names: list[str]) -> str:
    """Return one action."""
    name = chooser.choice(names)
    key = chooser.choice([f"{name}k", f"{name}k", f"{name}/k", "'x'"])
    return chooser.choice(
        [
            f"SET t[{key}].n = t[{key}].n + 1",
            f"SET t[{key}].s = 'yes'",
            f"SET t[{key}].s = {name}k",
            f"SET t[{key}].n = {name}/p",
            f"SET u[{key}].n = u[{key}].n + t[{key}].n + 1",
            f"SET u[{key}].n = 0",
            f"DELETE t[{key}]",
            f"DELETE u[{key}]",
        ]
    )


def _statement(chooser: Chooser, stream: str, published: str, grace: str) -> str:
    source, names = _source(chooser, stream)
    text = f"SELECT * FROM {source}"
    uses = chooser.integer(0, 5)
    if uses < 4:
        guards = [_guard(chooser, names) for _ in range(chooser.integer(1, 2))]
        text += f" WHERE {' AND '.join(guards)}"
    text += grace
    if 1 < uses < 5:
        actions = [_action(chooser, names) for _ in range(chooser.integer(1, 2))]
        text += f" ON MATCH {', '.join(actions)}"
    return text + published


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
    lines += [f"query q{number}\n    {text}" for number, text in enumerate(texts)]
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
