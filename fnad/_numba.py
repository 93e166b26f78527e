"""The only file that imports numba, and only when a kernel is called for the first time.

    @kernel
    def scale(x, factor, out):
        for i in range(x.size):
            out[i] = factor * x[i]

A kernel is compiled for the argument types it meets, without fast-math, with NumPy's answers to division by zero, and
runs without the GIL. Its machine code is cached on disk under the time stamp of its own file: a kernel that calls
kernels of another file is not compiled anew when only those change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fnad import _fork

_lock = _fork.lock(5)


class Kernel:
    """A numba function that compiles on its first call. `py_func` is the plain Python function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._compiled: Callable[..., Any] | None = None
        self._inner: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        try:
            return (self._compiled or self._compile())(*args)
        except Exception as error:
            if not _raised_by_cache(error):
                raise
        return self._compile(damaged=True)(*args)

    def _compile(self, damaged: bool = False) -> Callable[..., Any]:
        """What to call; a cache that cannot be used costs a compilation per process, never an error."""
        with _lock:
            if damaged:
                self._compiled = _njit(self.py_func, cache=False)
            elif self._compiled is None:
                try:
                    self._compiled = _njit(self.py_func, cache=True)
                except (RuntimeError, OSError):  # "no locator available": no directory can be written
                    self._compiled = _njit(self.py_func, cache=False)
            return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """How numba sees a kernel that another kernel calls: compiled into the caller, and cached as part of it."""
        import numba

        with _lock:
            if self._inner is None:
                self._inner = _njit(self.py_func, cache=False)
            typeof: Any = numba.typeof
            return typeof(self._inner)

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)  # by name, as functions are


def kernel(function: Callable[..., Any]) -> Kernel:
    """Decorator: compile a function of arrays and scalars with numba when it is first called."""
    return Kernel(function)


def _njit(function: Callable[..., Any], cache: bool) -> Callable[..., Any]:
    import numba

    return numba.njit(cache=cache, nogil=True, error_model="numpy")(function)


def _raised_by_cache(error: BaseException) -> bool:
    """Whether numba failed to read or write its cache (a damaged file, a full disk, a directory that became read-only)."""
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_globals.get("__name__") == "numba.core.caching":
            return True
        step = step.tb_next
    return False


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What `numba.njit(**options)` makes of a function; it is compiled when it is called."""
    import numba

    _fork.prepare()
    signature = options.get("signature")
    rest = {k: v for k, v in options.items() if k != "signature"}
    made: Any = numba.njit(**rest)(function) if signature is None else numba.njit(signature, **rest)(function)
    return made


def c_function(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function `(addresses, sizes) -> status` as machine code, at once: see `core.lowering.Native`. Its `address` says where."""
    import numba
    from numba import types

    _fork.prepare()
    signature: Any = types.int64(types.CPointer(types.voidptr), types.CPointer(types.int64))
    made: Any = numba.cfunc(signature, **options)(function)
    return made


def as_array() -> Any:
    """`numba.carray`, for compiled code."""
    import numba

    return numba.carray


def parallel_range() -> Any:
    """`numba.prange`, which is `range` outside of compiled functions."""
    import numba

    return numba.prange


def type_of(value: Any) -> Any:
    """How numba sees a value."""
    import numba

    typeof: Any = numba.typeof
    return typeof(value)


def by_types(function_for: Callable[[tuple[Any, ...]], Callable[..., Any]], leaf: Callable[[Any, int | None], Any], name: str) -> Any:
    """A numba function whose text depends on the types of its arguments: `leaf(dtype, rank)` for each number and array, in tuples."""
    import numba
    from numba import extending, types
    from numba.np.numpy_support import as_dtype

    def described(t: Any) -> Any:
        t = types.unliteral(t)
        if isinstance(t, types.Array):
            return leaf(as_dtype(t.dtype), t.ndim)
        if isinstance(t, types.BaseNamedTuple):
            return t.instance_class(*map(described, t))
        return tuple(map(described, t)) if isinstance(t, types.BaseTuple) else leaf(as_dtype(t), None)

    def stub(*args: Any) -> None:
        raise NotImplementedError(name)

    def choose(*args: Any) -> Any:
        chosen: Any = numba.njit(nogil=True, error_model="numpy")(function_for(tuple(map(described, args))))
        return lambda *args: chosen(*args)

    extending.overload(stub, strict=False)(choose)
    made: Any = numba.njit(nogil=True, error_model="numpy")(lambda *args: stub(*args))
    return made
