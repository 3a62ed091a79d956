"""Kernels: loops that numba compiles, where the extra `fast` is installed.

Each kernel does what array operations beside it do, which stay the default and the judge: without
the extra nothing is missing, and with it nothing is different but the time.  A module of kernels is
imported only when it is first of use, since numba takes half a second to import.

Compiled code is kept in files, beside the module or where numba keeps such files for a user, so
that only the first process compiles.  Where no directory can be written to, every process does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

__all__ = ["can_compile", "compiled"]

Loop = TypeVar("Loop", bound=Callable[..., object])


@cache
def can_compile() -> bool:
    """Return whether numba is installed, in a version that this NumPy has."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(loop: Loop) -> Loop:
    """Have a function compiled when it is first called, for the types that it is called with."""
    import numba

    try:
        return cast("Loop", numba.njit(cache=True, nogil=True)(loop))
    except RuntimeError:
        # No directory for its cache can be written to.
        return cast("Loop", numba.njit(nogil=True)(loop))
