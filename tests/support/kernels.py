"""Compiled loops need numba, which the extra `fast` installs."""

from __future__ import annotations

import pytest

from templates.compiling import can_compile

__all__ = ["needs_kernels"]


def needs_kernels() -> None:
    """Skip a test where no loops can be compiled."""
    if not can_compile():
        pytest.skip("there is no numba that knows this NumPy: pip install -e '.[fast]'")
