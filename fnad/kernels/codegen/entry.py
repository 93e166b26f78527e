"""How Python calls a program: a built-in function that checks its arguments, makes the results and runs the code.

One native function serves all programs. What it has to know of each (the plan) are numbers in an array: what the arguments
must be, what the results will be, where the code lies. It reads the fields of list, tuple and ndarray objects directly
(CPython's and NumPy's C ABI), which takes nanoseconds per array where the public functions take microseconds.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad import _fork, _llvm
from fnad.kernels.codegen.load import machine

NAME = "fnad_entry"
HEADER = (
    *("tuple", "list", "ndarray", "none", "true"),
    *("inputs", "constants", "constant_items", "outputs"),
    *("code", "sizes", "literals", "release", "stack", "given"),
)
WANTED = 0x101  # C_CONTIGUOUS and ALIGNED
OWN = 0x505  # and OWNDATA and WRITEABLE
TUPLE_ITEMS = tuple.__basicsize__  # where a tuple's items begin

Shape = tuple[int, ...]


class Input(NamedTuple):
    """What a leaf must be: a C-contiguous, aligned ndarray; for `()` also a NumPy scalar, or if weak only a Python scalar."""

    shape: Shape
    dtype: np.dtype[Any]
    weak: bool = False
    given: bool = False
    """Whether its memory is written to: it must be the array's own, and no other argument may lie there, however it came to."""


class Output(NamedTuple):
    """A result to be made; one that is the array of a given leaf names its position."""

    shape: Shape
    dtype: np.dtype[Any]
    kind: int
    position: int = 0


ARRAY, SCALAR, TAKEN = range(3)  # kinds of results


class Code(NamedTuple):
    """Where machine code and its numbers lie."""

    address: int
    sizes: int
    literals: int
    release: bool
    """Let other Python threads run meanwhile."""
    stack: int
    """Bytes of workspace that the entry makes itself; 0 if its address is an argument."""


NOTHING = Code(0, 0, 0, False, 0)  # arguments are checked and results made, but not computed
VALUE, INT, BOOL = range(3)  # how to read a scalar: its value lies in the object, or Python must be asked
_PYTHON = {"f": (float, VALUE), "c": (complex, VALUE), "i": (int, INT), "b": (bool, BOOL)}


def entry(inputs: Sequence[Input], constants: tuple[Any, ...], outputs: Sequence[Output], code: Code) -> Callable[..., list[Any] | None]:
    """`run(leaves, workspace=0)`: a list of results; None if an argument or a constant (a closed-over array) is not as recorded."""
    wanted = [*inputs, *(Input(x.shape, x.dtype) for x in constants)]
    given = [k for k, x in enumerate(inputs) if x.given]
    head = [*map(id, (tuple, list, np.ndarray, None, True)), len(inputs), len(constants), id(constants) + TUPLE_ITEMS, len(outputs)]
    words = [*head, *code, len(given), *given]
    for x in wanted:
        scalar, how = _PYTHON[x.dtype.kind] if x.weak else (x.dtype.type, VALUE)
        kinds = (0 if x.weak else id(np.ndarray), 0 if x.shape else id(scalar), how)
        size = math.prod(x.shape) * x.dtype.itemsize
        words += [len(x.shape), id(x.dtype), OWN if x.given else WANTED, *kinds, size, *x.shape]
    for out in outputs:
        words += [len(out.shape), id(out.dtype), out.kind, out.position, *out.shape]
    return _builtin(np.array(words, np.int64), (constants, [x.dtype for x in wanted], [x.dtype for x in outputs]))


class _Method(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_lock = _fork.lock(1)
_methods: list[_Method] = []


def _method() -> _Method:
    with _lock:
        if not _methods:
            _methods.append(_load())
            _prove()
        return _methods[0]


_PYTHON_API = (
    *("PyList_New", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear"),
    *("Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread"),
)


def _load() -> _Method:
    for name in _PYTHON_API:
        _llvm.name_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    _llvm.name_symbol("fnad_new_array", table[94] or 0)  # PyArray_NewFromDescr
    _llvm.name_symbol("fnad_return_array", table[76] or 0)  # PyArray_Return
    text = f"{sys.implementation.cache_tag} {object.__basicsize__} {TUPLE_ITEMS} {list.__basicsize__}"
    address = machine(NAME, text, lambda: str(importlib.import_module("fnad.kernels.codegen.emit_entry").print_entry()))
    return _Method(b"program", address, 0x80, b"A compiled program of fnad.")  # METH_FASTCALL


def _builtin(plan: np.ndarray[Any, Any], keep: Any) -> Callable[..., list[Any] | None]:
    """A built-in function bound to a plan; it keeps alive what the plan points to."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    made: Callable[..., list[Any] | None] = make(ctypes.addressof(_method()), plan, keep)
    return made


def _prove() -> None:
    """This interpreter and NumPy must lay out their objects as assumed; better to stop here than to read what is not there."""
    dtype = np.dtype(np.float32)
    run = entry([Input((2, 3), dtype)], (), [Output((5,), dtype, ARRAY)], NOTHING)
    good = np.zeros((2, 3), np.float32)
    wrong = [np.zeros((2, 4), np.float32), np.zeros((2, 3)), np.zeros((3, 2), np.float32).T, np.zeros(6, np.float32), 1.0, (good,)]
    for pack in (list, tuple):
        found = run(pack([good]))
        fine = found is not None and len(found) == 1 and found[0].shape == (5,) and found[0].dtype == dtype
        if not fine or any(run(pack([x])) is not None for x in wrong) or run(pack([good, good])) is not None:
            raise RuntimeError(
                "fnad.jit reads arrays as CPython and NumPy lay them out on 64-bit machines; this interpreter does it in another way "
                f"({sys.implementation.name} {sys.version.split()[0]}, NumPy {np.__version__}). Use fnad.disable_jit()"
            )
