"""The order of rows by columns is the one of a sort column by column."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.memory import ordering
from joins.memory.ordering import order_by

NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 62]),
)
HASHES = st.one_of(
    st.integers(0, 3),
    st.integers(0, (1 << 64) - 1),
    # They begin alike and differ behind.
    st.integers(0, 3).map(lambda n: (1 << 63) + n),
)


@given(st.lists(st.tuples(HASHES, NUMBERS, HASHES, NUMBERS), min_size=1, max_size=10))
def test_an_order_by_columns_is_that_of_a_sort_column_by_column(rows):
    dtypes = (np.uint64, np.int64, np.uint64, np.int64)
    columns = [np.array(c, d) for c, d in zip(zip(*rows, strict=True), dtypes, strict=True)]
    few = columns[1].astype(np.int32), columns[3].astype(np.int8)
    with patch.object(ordering, "FEW", 2):
        for count in range(1, 5):
            wanted = np.lexsort(columns[:count][::-1])
            assert order_by(*columns[:count]).tolist() == wanted.tolist()
        assert order_by(*few).tolist() == np.lexsort(few[::-1]).tolist()


def test_few_rows_and_none_have_an_order():
    assert order_by(np.array([2, 1, 2, 1]), np.array([5, 7, 4, 6])).tolist() == [3, 1, 2, 0]
    assert order_by(np.zeros(0, np.int64)).tolist() == []


def test_hashes_that_begin_alike_stand_in_order():
    keys = (np.arange(5_000, dtype=np.uint64) * np.uint64(1 << 61)) + np.arange(
        5_000, 0, -1, dtype=np.uint64
    )
    assert order_by(keys).tolist() == np.lexsort((keys,)).tolist()
