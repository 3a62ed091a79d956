"""Compiled loops need numba, which the extra `fast` installs."""

from __future__ import annotations

from functools import cache

import pytest

from joins.memory.compilation import compile_loops as compile_look_ups
from joins.signature.compilation import compile_loops as compile_comparison
from joins.similarity.compilation import compile_loops
from templates.compiling import can_compile

__all__ = ["needs_kernels"]


def needs_kernels() -> None:
    """Skip a test where no loops can be compiled; compile them where they have not been."""
    if not can_compile():
        pytest.skip("there is no numba that knows this NumPy: pip install -e '.[fast]'")
    _compile_once()


@cache
def _compile_once() -> None:
    compile_loops()
    compile_look_ups()
    compile_comparison()
