"""What has come in bulk is looked through for cycles no more, and goes like everything else."""

from __future__ import annotations

import subprocess
import sys

BULK = """
import gc

import xscl
from broker.pipeline.thisprocess import set_up_process

set_up_process()
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.queries import collecting

TEXT = "S//a%s->x FOLLOWED BY {x/n = y/l, 1 h} S//b->y"


def engine(queries):
    texts = [xscl.parse(TEXT % i, id=f"q{i}")[0] for i in range(queries)]
    return Engine([RegisteredQuery(each, 0) for each in texts], lateness_us=0)
"""

ASIDE = """
before = gc.get_freeze_count()
few = engine(3)
print(gc.get_freeze_count() > before)
many = engine(1000)
print(gc.get_freeze_count() > before + 100_000)
"""

REMOVED = """
engine(1)
gc.collect()  # of modules: classes with slots stand in the place of others
many = engine(1000)
gc.collect()
gc.disable()
for i in range(1000):
    many.queries.remove(f"q{i}")
gc.unfreeze()
print(gc.collect() < 100)
"""

TAKEN_BACK = """
engine(3)
gc.collect()
before = len(gc.get_objects()) + gc.get_freeze_count()
many = engine(1000)
del many
gc.collect()
print(len(gc.get_objects()) + gc.get_freeze_count() > before + 50_000)
collecting.take_back()
print(len(gc.get_objects()) + gc.get_freeze_count() > before + 50_000)
"""

GONE = """
from broker.documents.document import Document

many = engine(1000)
texts = [b"<a0><n>x</n></a0>", b"<b><l>x</l></b>"]
documents = [Document(i, "S", str(i), i, i, i, i, text) for i, text in enumerate(texts, 1)]
found = many.process(many.evaluate(documents), lambda ids: {i: texts[i - 1] for i in ids})
print(len(found.matches))
"""


def printed(program: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", BULK + program], capture_output=True, text=True, check=True
    )
    assert not run.stderr
    return run.stdout.splitlines()


def test_many_queries_are_put_aside_and_a_few_are_not() -> None:
    assert printed(ASIDE) == ["False", "True"]


def test_removed_queries_leave_no_cycles() -> None:
    assert printed(REMOVED) == ["True"]


def test_an_engine_that_was_put_aside_goes_before_another_is_made() -> None:
    assert printed(TAKEN_BACK) == ["True", "False"]


def test_an_engine_that_was_put_aside_goes_when_its_process_ends() -> None:
    assert printed(GONE) == ["1"]  # DuckDB would say on stderr what is left of it
