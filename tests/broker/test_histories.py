"""Queries and subscriptions come and go while documents flow: a broker finds what the oracle finds.

`python benchmarks/oracle_run.py --dynamic --cases 5000` tries many more.
"""

from __future__ import annotations

import json
import tempfile
from itertools import product
from pathlib import Path

import pytest
from histories.decided import repeated_history
from histories.history import history_matches, parse_history
from histories.limited import limited_history
from histories.made import made_history
from histories.runs import Way, random_way, run_history
from histories.similar import similar_history
from histories.strategies import history_texts, random_history
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.examples import examples, some
from support.runners import SOME_ENGINES

from joins.engines import DEFAULT_ENGINE, EngineName

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def assert_right(text: str, way: Way) -> list[str]:
    history = parse_history(text)
    expected = history_matches(history)
    with tempfile.TemporaryDirectory() as directory:
        assert run_history(history, Path(directory), way) == expected
    return expected


@pytest.mark.parametrize("first_seed", range(0, examples(3), 3))
def test_a_history_finds_what_the_oracle_finds_for_each_stretch(first_seed: int) -> None:
    found = 0
    for seed in range(first_seed, first_seed + 3):
        found += len(assert_right(random_history(seed), random_way(seed, [DEFAULT_ENGINE])))
    assert found > 5


def test_thresholds_of_similarity_come_and_go_and_look_back() -> None:
    found = 0
    for seed in range(examples(3)):
        found += len(assert_right(similar_history(seed), random_way(seed, [DEFAULT_ENGINE])))
    assert found > 5


def test_runs_stay_right_when_queries_come_and_go_and_look_back() -> None:
    found = 0
    for seed in range(32, 32 + examples(3)):
        found += len(assert_right(repeated_history(seed), random_way(seed, [DEFAULT_ENGINE])))
    assert found > 5


def test_what_was_given_counts_over_pauses_and_for_nobody_who_subscribes_later() -> None:
    found = 0
    for seed in range(examples(3)):
        found += len(assert_right(limited_history(seed), random_way(seed, [DEFAULT_ENGINE])))
    assert found > 5


def test_texts_of_several_values_and_of_data_are_joined_for_whoever_asks() -> None:
    found = 0
    for seed in range(3, 3 + examples(2)):
        found += len(assert_right(made_history(seed), random_way(seed, [DEFAULT_ENGINE])))
    assert found > 5


@settings(max_examples=examples(1), deadline=None, suppress_health_check=SLOW)
@given(text=history_texts(), way=st.integers(0, 99))
def test_any_history_finds_what_the_oracle_finds(text: str, way: int) -> None:
    assert_right(text, random_way(way, [DEFAULT_ENGINE]))


PUBLISHED = """
register publisher
    FROM S//i->a FOLLOWED BY {{a/c = b/c, 1 h}} S//i->b PUBLISH P
register reader
    FROM P//i->a JOIN {{a/c = b/c, INF}} S//i->b
document 1 S 00:05 <i><c>x</c></i>
document 2 S 00:06 <i><c>x</c></i>
{first}
document 3 S 00:07 <i><c>x</c></i>
drain
{then}
document 4 S 00:08 <i><c>x</c></i>
"""
ANOTHER = "register publisher\n    FROM S//i->a JOIN {a/c = b/c, 2 h} S//i->b PUBLISH P"
LATE = "register late since 0\n    FROM P//i->a JOIN {a/c = b/c, INF} S//i->b"


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_what_was_published_stays_whatever_becomes_of_its_publisher(engine: EngineName) -> None:
    ends = ["remove publisher", "pause publisher", ANOTHER]
    thens = ["restart", "drain", LATE, "register other since 0\n    S//i[c]"]
    for first in ends if engine == DEFAULT_ENGINE else ends[:1]:
        for then in some(thens, 1) if engine == DEFAULT_ENGINE else thens[:1]:
            text = PUBLISHED.format(first=first, then=then)
            found = assert_right(text, Way(engine=engine))
            assert any('"docid": 4' in line and '"reader"' in line for line in found)


UNFINISHED = """
lateness 100 s
register publisher
    SELECT * FROM S//a GRACE 0 s PUBLISH P
register reader
    {reader} GRACE 0 s
document 1 S 00:05:01 <a><k>x</k></a>
document 2 S 00:05:02 <b><k>x</k></b>
{end}
document 3 S 00:05:03 <b><k>x</k></b>
document 4 S 00:06:00 <z/>
"""
READERS = (
    "P//a NEXT {, 9 s} S//b+ WHILE {count() < 9}",
    "P//a FOLLOWED BY {, 9 s} S//b+ MATCH NEXT",
    "SELECT COMPRESSED FROM P//a FOLLOWED BY {, 9 s} S//b+ MATCH ANY",
)


@pytest.mark.parametrize("reader", READERS)
def test_runs_that_read_what_was_published_go_on_without_its_publisher(reader: str) -> None:
    for end in ("remove publisher", "pause publisher\nresume publisher"):
        found = assert_right(UNFINISHED.format(reader=reader, end=end), Way())
        assert any('"docid": 3' in line and '"reader"' in line for line in found)


ENDED = """
register q
    FROM S//i->a FOLLOWED BY {{a/c = b/c, $w}} S//i->b PUBLISH P
register reader
    FROM P//i->a JOIN {{a/c = b/c, INF}} S//i->b
subscribe one q {{"w": "1 h"}}
document 1 S 00:05 <i><c>x</c></i>
{first}
document 2 S 00:06 <i><c>x</c></i>
{end}
document 3 S 00:07 <i><c>x</c></i>
{then}
document 4 S 00:08 <i><c>x</c></i>
"""


@pytest.mark.parametrize("then", some(["drain", "restart", ""], 1))
@pytest.mark.parametrize(
    ("first", "end"),
    [
        ("", "unsubscribe one"),
        ("", "remove q"),
        ('subscribe two q {"w": "1 h"}', "unsubscribe one"),
        ('subscribe two q {"w": "2 h"}', "unsubscribe one"),
        ("drain", 'unsubscribe one\nsubscribe again q {"w": "1 h"}'),
    ],
)
def test_what_was_accepted_before_a_subscription_ended_is_matched(
    first: str, end: str, then: str
) -> None:
    found = assert_right(ENDED.format(first=first, end=end, then=then), Way())
    assert any('"docid": 3' in line and '"reader"' in line for line in found)


@pytest.mark.parametrize("end", ["remove publisher", "pause publisher", ANOTHER])
def test_who_looks_back_reads_what_a_publisher_that_has_gone_still_publishes(end: str) -> None:
    text = PUBLISHED.format(first="", then=f"{end}\n{LATE}").replace("\ndrain", "")
    found = assert_right(text, Way())
    late = [line for line in found if '"late"' in line]
    assert any('"docid": 3' in line and '"docid": 4' not in line for line in late)


@pytest.mark.parametrize("then", ["drain", "restart"])
def test_a_publisher_that_goes_on_has_published_nothing_while_it_was_paused(then: str) -> None:
    text = PUBLISHED.format(first="pause publisher", then=f"resume publisher\n{then}")
    assert_right(text, Way())


NESTED = """
register q
    FROM S//i->a FOLLOWED BY {a/c = b/c, $w} S//i->b FOLLOWED BY {b/c = d/c, 1 h} S//i->d
subscribe one q {"w": "1 h"}
document 1 S 00:05 <i><c>x</c></i>
subscribe two q since 1 {"w": "1 h"}
document 2 S 00:06 <i><c>x</c></i>
document 3 S 00:07 <i><c>x</c></i>
drain
unsubscribe one
document 4 S 00:08 <i><c>x</c></i>
"""


def test_inner_tuples_stay_where_the_first_of_several_equal_subscriptions_ends() -> None:
    found = assert_right(NESTED, Way())
    newest = [line for line in found if '"docid": 4' in line]
    assert len(newest) == 1, "documents 2, 3 and 4; document 1 is for who has gone"


READ = """
register publisher
    FROM S//i->a PUBLISH P
register reader
    FROM P//i->a FOLLOWED BY {{a/c = b/c, 1 h}} S//i->b FOLLOWED BY {{b/c = d/c, 1 h}} S//i->d
document 1 S 00:05 <i><c>x</c></i>
document 2 S 00:06 <i><c>x</c></i>
drain
{then}
document 3 S 00:07 <i><c>x</c></i>
"""


@pytest.mark.parametrize("way", [*map(Way, SOME_ENGINES), Way(shards=3)])
@pytest.mark.parametrize("then", ["remove publisher", ANOTHER])
def test_inner_tuples_of_what_was_published_stay_when_the_publisher_goes(
    then: str, way: Way
) -> None:
    found = assert_right(READ.format(then=then), way)
    assert any('"docid": 3' in line and '"reader"' in line for line in found)


LIMITED = (
    "S//a LIMIT 1 PER 20 s GRACE 0 s",
    "S//a->a WINDOW 0 s BY a/v HAVING count() >= 1 LIMIT 1 PER 20 s GRACE 0 s",
    "SELECT DISJOINT * FROM S//a->a+ WITHIN 20 s GRACE 0 s",
)
LEARNING = """
lateness 9 s
register q
    SELECT * FROM S//a[k->x] FOLLOWED BY {x = y, 20 s} S//b[k->y] LOSS 0.5 DELAY learned
    FOLLOWED BY {y = z, 20 s} S//c->c[k->z] GRACE 5 s
"""


def at(second: int, xml: str) -> str:
    return f"document {second + 1} S 00:{second // 60:02}:{second % 60:02}  {xml}\n"


@pytest.mark.parametrize("then", ["", "restart\n"])
def test_what_was_given_before_a_pause_counts_and_what_was_not_given_in_it_does_not(
    then: str,
) -> None:
    text = "lateness 1 m\n"
    text += "".join(f"register q{i}\n    {each}\n" for i, each in enumerate(LIMITED))
    change = "".join(f"{{0}} q{i}\n" for i in range(len(LIMITED)))
    for second in (1, 3, 5, 23, 45, 47):
        verb = {3: "pause", 5: "resume", 45: "pause", 47: "resume"}.get(second, "")
        text += change.format(verb) + then if verb else ""
        text += at(second, f"<a><v>{second}</v></a>") + at(second + 1, "<b/>")
    found = [json.loads(line) for line in assert_right(text + at(99, "<b/>"), Way())]
    ends = sorted((each["query"], each["end"][17:19]) for each in found)
    given = ("01", "23", "47")
    assert ends == [*product(("q0", "q1"), given), *product(["q2"], ("01", "05", "23", "47"))]


def test_delays_that_were_learned_before_a_pause_are_known_behind_it() -> None:
    text = LEARNING
    for group in range(32):
        text += "" if group != 31 else "pause q\n"
        text += f"{at(60 * group, f'<a><k>{group}</k></a>')}"
        text += at(60 * group + 1 + group % 7, f"<b><k>{group}</k></b>") if group < 31 else ""
        text += at(60 * group + 9, f"<c><k>{group}</k></c>")
        text += "resume q\n" if group == 31 else ""
    text += at(60 * 33, "<a><k>x</k></a>") + at(60 * 33 + 9, "<c><k>x</k></c>")
    *_, last = assert_right(text + at(60 * 40, "<d/>"), Way())
    assert '"missing"' in last


PAUSED = """
register q
    S//i[v > $least]
document 1 S 00:05 <i><v>1</v></i>
pause q
document 2 S 00:06 <i><v>2</v></i>
subscribe one q since 0 {"least": 0}
document 3 S 00:07 <i><v>3</v></i>
resume q
document 4 S 00:08 <i><v>4</v></i>
"""


def test_who_looks_back_at_a_paused_query_finds_what_there_is_by_then() -> None:
    found = [json.loads(line)["documents"] for line in assert_right(PAUSED, Way())]
    assert sorted(each["docid"] for [each] in found) == [1, 2, 4]


OVERLAPPING = """
register q
    FROM *//i->a[* = $v]
subscribe one q since 0 {"v": "y"}
document 1 S 00:05 <i><c>x</c></i>
subscribe two q {"v": "x"}
pause q
document 2 S 00:06 <i><c>y</c></i>
resume q
document 3 S 00:07 <i><c>x</c></i>
subscribe three q since 2 {"v": "x"}
unsubscribe two
unsubscribe three
document 4 S 00:08 <i><c>x</c></i>
subscribe four q since 1 {"v": "z"}
subscribe five q since 1 {"v": "y"}
drain
"""


def test_who_looks_back_finds_nothing_for_others_and_nothing_that_was_passed_over() -> None:
    (found,) = assert_right(OVERLAPPING, Way())
    assert '"docid": 3' in found
