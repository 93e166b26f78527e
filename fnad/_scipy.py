"""SciPy, imported when it is first needed: `import fnad` alone must not wait for it."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import pathlib
from types import ModuleType
from typing import Any

from fnad import _fork
from fnad._threads import extension


@functools.cache
def special() -> ModuleType:
    """The module `scipy.special`."""
    import scipy.special

    return scipy.special


def blas_address(name: str) -> int:
    """The address of a BLAS routine (`dgemm`, ...) in the library that SciPy carries.

    The extension module that exports it is loaded by itself: importing all of `scipy.linalg` takes several times longer.
    """
    capsule = extension("scipy", "linalg.cython_blas").__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


class _OneThread:
    """While programs run that divide products among threads themselves, SciPy's OpenBLAS keeps to one per call."""

    def __init__(self) -> None:
        self._lock = _fork.lock(5)
        self._inside = 0
        self._before = 0
        self._get: Any = None
        self._set: Any = None
        extension("scipy", "linalg.cython_blas")  # the library is loaded with it
        found = importlib.util.find_spec("scipy")
        assert found is not None
        assert found.submodule_search_locations is not None
        home = pathlib.Path(found.submodule_search_locations[0])
        for folder in (home.parent / "scipy.libs", home / ".dylibs"):
            for path in folder.glob("*openblas*") if folder.is_dir() else ():
                library = ctypes.CDLL(str(path))
                if hasattr(library, "scipy_openblas_set_num_threads"):
                    self._get, self._set = library.scipy_openblas_get_num_threads, library.scipy_openblas_set_num_threads

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


@functools.cache
def one_blas_thread() -> _OneThread:
    return _OneThread()
