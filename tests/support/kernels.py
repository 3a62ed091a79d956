"""Tests of compiled loops need the extra `fast`."""

from __future__ import annotations

import pytest

from templates.compiling import can_compile

__all__ = ["needs_kernels"]


def needs_kernels() -> None:
    """Skip a test where numba is not installed."""
    if not can_compile():
        pytest.skip("numba is not here, in a version for this NumPy: pip install -e '.[fast]'")
