"""SciPy, imported when it is first needed: `import fnad` alone must not wait for it."""

from __future__ import annotations

import ctypes
import functools
from types import ModuleType

from fnad._threads import extension


@functools.cache
def special() -> ModuleType:
    """The module `scipy.special`."""
    import scipy.special

    return scipy.special


@functools.cache
def linalg() -> ModuleType:
    """The module `scipy.linalg`."""
    import scipy.linalg

    return scipy.linalg


def address(module: str, name: str) -> int:
    """The address of a routine of BLAS or LAPACK (of `cython_blas`: `dgemm`, of `cython_lapack`: `dgesv`) that SciPy carries.

    The extension module that exports it is loaded by itself: importing all of `scipy.linalg` takes several times longer.
    """
    capsule = extension("scipy", f"linalg.{module}").__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def load_blas() -> None:
    """Load SciPy's BLAS."""
    extension("scipy", "linalg.cython_blas")  # the library is loaded with it
