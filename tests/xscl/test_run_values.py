"""What a tuple carries of a run is what is read of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xscl.runvalues import Run, RunElement, TermNode, read_run

TEXTS = st.text(st.sampled_from('a\n\r\u2028\\"é\0'), max_size=4)
NODES = st.builds(TermNode, st.integers(0, 1 << 40), st.none() | TEXTS)
ELEMENTS = st.builds(
    RunElement,
    st.integers(0, 9),
    st.integers(-(1 << 60), 1 << 60),
    st.integers(-(1 << 60), 1 << 60),
    st.dictionaries(TEXTS, NODES, max_size=3),
)
FOLDS = st.dictionaries(TEXTS, st.lists(TEXTS | st.floats(allow_nan=False), max_size=2).map(tuple))


@given(st.lists(ELEMENTS, min_size=1, max_size=4), FOLDS)
def test_a_run_is_read_as_it_was(elements, folds):
    run = Run(tuple(elements), folds)
    read = read_run(run.spell())
    assert read.elements == run.elements
    assert {name: tuple(values) for name, values in read.folds.items()} == folds


def test_an_element_of_several_runs_is_read_once():
    element = RunElement(0, 1, 2, {"t": TermNode(3, "x\ny")})
    one, other = (read_run(Run((element,) * count, {}).spell()) for count in (1, 2))
    assert one.elements[0] is other.elements[1]
