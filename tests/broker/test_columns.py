"""Columns of numbers: what is found without sorting is what sorting finds."""

from __future__ import annotations

import numpy as np
import pytest

from broker.matching.boxes.columns import are_as_before, distinct


@pytest.mark.parametrize("largest", [0, 3, 100, 100_000, 1 << 40])
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_different_numbers_are_those_of_numpy(count: int, largest: int) -> None:
    numbers = np.random.default_rng(count).integers(0, largest, count, endpoint=True)
    expected = np.unique(numbers, return_index=True, return_inverse=True)
    for found, own in zip(distinct(numbers), expected, strict=True):
        assert found.tolist() == own.tolist()


def test_rows_are_compared_with_the_row_before_in_all_columns() -> None:
    columns = [np.array([1, 1, 1, 2, 2]), np.array([5, 5, 6, 6, 6])]
    assert are_as_before(columns).tolist() == [True, False, False, True]
    assert are_as_before(columns[:1]).tolist() == [True, True, False, True]
    assert are_as_before([column[:0] for column in columns]).tolist() == []
