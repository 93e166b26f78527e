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

import ctypes
import functools
import importlib
import pathlib
import sys
import threading
from collections.abc import Callable
from typing import Any

_lock = threading.Lock()


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


def compile_for(function: Callable[..., Any], signature: str, cache: bool) -> Callable[..., Any]:
    """The machine code of a function for one signature, without numba's search for a fitting one at each call."""
    import numba

    dispatcher: Any = numba.njit(signature, cache=cache, nogil=True, error_model="numpy")(function)
    return dispatcher.overloads[dispatcher.signatures[0]].entry_point


def word_intrinsic(arguments: int, generate: Callable[[Any, Any], Any]) -> Any:
    """An intrinsic of 64-bit words: `generate(builder, argument values)` prints its body and answers with its value."""
    import numba
    from numba.extending import intrinsic

    names = ", ".join(f"a{i}" for i in range(arguments))
    word = numba.types.int64

    def typed() -> Any:
        return word(*[word] * arguments), lambda context, builder, signature, values: generate(builder, values)

    scope: dict[str, Any] = {"typed": typed}
    exec(f"def body(context, {names}): return typed()", scope)  # numba counts the parameters
    return intrinsic(scope["body"])


def name_symbol(name: str, address: int) -> None:
    """Let native code call what lies at an address."""
    import llvmlite.binding as llvm

    if not llvm.address_of_symbol(name):
        llvm.add_symbol(name, address)


@functools.cache
def threads() -> int:
    """How many threads large loops may use: as many as numba would, if TBB is there to run them; otherwise one.

    From then on native code finds the thread pool under the name `fnad_parallel_for`.
    """
    import numba

    try:
        _find_tbb()
        tbbpool: Any = importlib.import_module("numba.np.ufunc.tbbpool")
        wanted = int(numba.config.NUMBA_NUM_THREADS)
        ctypes.CFUNCTYPE(None, ctypes.c_int)(tbbpool.launch_threads)(wanted)
        name_symbol("fnad_parallel_for", tbbpool.parallel_for)
    except (ImportError, OSError, AttributeError):
        name_symbol("fnad_parallel_for", 1)  # never called: programs look at the number of threads first
        return 1
    return wanted


def _find_tbb() -> None:
    """pip puts TBB where the loader does not look."""
    for name in ("lib/libtbb.so.12", "Library/bin/tbb12.dll", "lib/libtbb.12.dylib"):
        path = pathlib.Path(sys.prefix) / name
        if path.exists():
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            return


def versions() -> str:
    """The versions of what makes machine code."""
    import llvmlite
    import numba

    return f"numba {numba.__version__} llvmlite {llvmlite.__version__}"
