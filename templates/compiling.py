"""Kernels: loops that numba compiles, where the extra `fast` is installed.

Each kernel does what array operations beside it do, which stay the default and the judge: without
the extra nothing is missing, and with it nothing is different but the time.  A module of kernels is
imported only when it is first of use, since numba takes half a second to import.

Compiled code is kept in files, beside the module or where numba keeps such files for a user, so
that only the first process compiles.  Where no directory can be written to, every process does.
What another version of the program has left there, with types that there are no more, is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from types import CodeType
from typing import Any, TypeVar, cast

__all__ = ["borrowed", "can_compile", "compiled", "inlined", "lacks_code"]

Loop = TypeVar("Loop", bound=Callable[..., object])


@cache
def can_compile() -> bool:
    """Return whether numba is installed, in a version that works with this NumPy."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(loop: Loop) -> Loop:
    """Have a function compiled when it is first called, for the types that it is called with.

    The code is kept until the function changes, one that it calls, or a number that they name,
    wherever these stand.
    """
    import numba

    try:
        kernel: Any = numba.njit(cache=True, nogil=True)(loop)
    except RuntimeError:
        # No directory for its cache can be written to.
        return cast("Loop", numba.njit(nogil=True)(loop))
    _stamp_by_code(kernel)
    _drop_unreadable(kernel)
    return cast("Loop", kernel)


def _stamp_by_code(kernel: Any) -> None:
    """Stamp the compiled code that is kept of a kernel by what is compiled.

    Numba stamps it by the file in which the function stands.  The stamp is made when an index is
    read, as it is before anything is written, too: what stands further down in the module is not
    there yet when the function is decorated.
    """
    kept = kernel._cache._cache_file
    read = kept._load_index

    def read_own() -> Any:
        kept._source_stamp = _stamp(kernel.py_func)
        return read()

    kept._load_index = read_own


def _stamp(loop: Any) -> str:
    """Return what tells a function, all that it calls and all numbers that these name."""
    digest, pending, seen = sha256(), [loop], set[Any]()
    while pending:
        own = pending.pop()
        if own in seen:
            continue
        seen.add(own)
        codes = [own.__code__]
        for code in codes:
            codes += [each for each in code.co_consts if isinstance(each, CodeType)]
            plain = [each for each in code.co_consts if not isinstance(each, CodeType)]
            named = [(name, own.__globals__.get(name)) for name in code.co_names]
            numbers = [each for each in named if isinstance(each[1], (int, float))]
            parts = (code.co_code, plain, code.co_names, code.co_varnames, numbers)
            digest.update(repr(parts).encode())
            pending += [value.py_func for _, value in named if hasattr(value, "py_func")]
    return digest.hexdigest()


def inlined(loop: Loop) -> Loop:
    """Have a function be a part of the loops that call it, once they are compiled.

    A call costs more than a few numbers that are added up, and arrays that are handed to it are
    counted again: of a part it is seen that they are borrowed.
    """
    import numba

    return cast("Loop", numba.njit(forceinline=True)(loop))


def borrowed() -> Any:
    """Return what returns an array as one that nobody counts who has it, for loops to call.

    Each variable of a loop that an array is written to is counted, and each field of a tuple that
    is read, with a locked bus: that is most of what a short step costs.  Whoever lends an array
    must have it for as long as it is lent.
    """
    from numba.core import cgutils
    from numba.extending import intrinsic

    null = cast("Any", cgutils).get_null_value

    @intrinsic
    def lent(typing: Any, array: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            own = context.make_array(array)(context, builder, value=arguments[0])
            own.meminfo = null(own.meminfo.type)
            own.parent = null(own.parent.type)
            return own._getvalue()

        return array(array), code

    return lent


def lacks_code(kernel: Any) -> bool:
    """Return whether the file for a kernel's compiled code can be written, and has none yet."""
    kept = getattr(kernel._cache, "_cache_file", None)
    return kept is not None and not kept._load_index()


def _drop_unreadable(kernel: Any) -> None:
    """Drop the compiled code that is kept of a kernel where its index cannot be read.

    The index has types by name.  Numba asks whether it is of this version of the source only when
    it has read all of it.
    """
    kept = kernel._cache._cache_file
    try:
        kept._load_index()
    except Exception:
        kept.flush()
