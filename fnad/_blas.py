"""How many threads BLAS and LAPACK run on. SciPy and NumPy each carry an OpenBLAS of their own, with one number per process."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import pathlib
from collections.abc import Iterator
from typing import Any

from fnad import _fork
from fnad._scipy import load_blas
from fnad.errors import UnsupportedError


class OneThread:
    """A library that keeps to one thread per call while anybody is inside. Usable from many threads at once."""

    def __init__(self, get: Any, put: Any) -> None:
        self._lock = _fork.lock(5)
        self._inside = 0
        self._before = 0
        self._get, self._set = get, put

    def __enter__(self) -> None:
        if self._set is not None:
            with self._lock:
                if self._inside == 0:
                    self._before = self._get()
                    self._set(1)
                self._inside += 1

    def __exit__(self, *_: Any) -> None:
        if self._set is not None:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._set(self._before)

    @property
    def works(self) -> bool:
        return self._set is not None


def _bundled(package: str) -> OneThread:
    """The OpenBLAS in a package's wheel; one that does nothing if there is none."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.submodule_search_locations is not None
    home = pathlib.Path(found.submodule_search_locations[0])
    for folder in (home.parent / f"{package}.libs", home / ".dylibs"):
        for path in folder.glob("*openblas*") if folder.is_dir() else ():
            library = ctypes.CDLL(str(path))
            for suffix in ("", "64_"):
                if hasattr(library, f"scipy_openblas_set_num_threads{suffix}"):
                    get, put = (getattr(library, f"scipy_openblas_{name}_num_threads{suffix}") for name in ("get", "set"))
                    return OneThread(get, put)
    return OneThread(None, None)


@functools.cache
def scipy_on_one_thread() -> OneThread:
    """For programs that divide products among threads themselves."""
    load_blas()
    return _bundled("scipy")


@functools.cache
def _numpy_on_one_thread() -> OneThread:
    return _bundled("numpy")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """All of BLAS and LAPACK, that of NumPy and that of SciPy, on one thread."""
    libraries = [_numpy_on_one_thread(), scipy_on_one_thread()]
    with contextlib.ExitStack() as stack:
        if not all(library.works for library in libraries):
            stack.enter_context(_limits())
        for library in libraries:
            stack.enter_context(library)
        yield


def _limits() -> Any:
    """The same for a BLAS that is not from the wheels, through threadpoolctl."""
    try:
        import threadpoolctl
    except ImportError:
        threadpoolctl = None
    if threadpoolctl is None or not threadpoolctl.ThreadpoolController().select(user_api="blas").info():
        raise UnsupportedError(
            "deterministic=True must be able to set the number of threads of BLAS",
            got={"BLAS": "not the OpenBLAS of the wheels of NumPy and SciPy"},
            fix="pip install threadpoolctl; or set OMP_NUM_THREADS=1 (MKL_NUM_THREADS, VECLIB_MAXIMUM_THREADS) and leave the option out",
        )
    return threadpoolctl.threadpool_limits(1, user_api="blas")
