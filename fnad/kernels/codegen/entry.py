"""How Python calls a program: a built-in function that checks its arguments, makes the results and runs the code.

One native function serves all programs. What it has to know of each (the plan) are numbers in an array: what the arguments
must be, what the results will be, where the code lies. It reads the fields of list, tuple and ndarray objects directly
(CPython's and NumPy's C ABI), which takes nanoseconds per array where the public functions take microseconds.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad import _llvm
from fnad.kernels.codegen.load import machine

NAME = "fnad_entry"
HEADER = ("tuple", "list", "ndarray", "none", "inputs", "constants", "constant_items", "outputs", "code", "sizes", "literals", "release")
WANTED = 0x101  # C_CONTIGUOUS and ALIGNED
OWN = 0x505  # and OWNDATA and WRITEABLE
TUPLE_ITEMS = tuple.__basicsize__  # where a tuple's items begin

Shape = tuple[int, ...]


class Output(NamedTuple):
    """A result to be made: scalars leave as NumPy scalars."""

    shape: Shape
    dtype: np.dtype[Any]
    scalar: bool


class Code(NamedTuple):
    """Where machine code and its numbers lie; `release`: let other Python threads run meanwhile."""

    address: int
    sizes: int
    literals: int
    release: bool


NOTHING = Code(0, 0, 0, False)  # arguments are checked and results made, but not computed


def entry(
    inputs: Sequence[tuple[Shape, np.dtype[Any]]],
    constants: tuple[Any, ...],
    outputs: Sequence[Output],
    code: Code,
    given: Collection[int] = (),
) -> Callable[..., list[Any] | None]:
    """`run(leaves, workspace=0)`: a list of results; None if an argument is not as it was recorded.

    Args:
        inputs: Shape and dtype of each leaf, which must be a C-contiguous, aligned ndarray.
        constants: Closed-over arrays, checked in the same way.
        outputs: The results.
        code: What computes them.
        given: Positions of leaves whose memory is written to: it must be their own, and of no other argument.
    """
    kinds = [*inputs, *((x.shape, x.dtype) for x in constants)]
    dtypes = [np.dtype(d) for _, d in kinds], [np.dtype(o.dtype) for o in outputs]
    head = [id(tuple), id(list), id(np.ndarray), id(None), len(inputs), len(constants), id(constants) + TUPLE_ITEMS, len(outputs), *code]
    words = [*head, len(given), *given]
    for k, (shape, _) in enumerate(kinds):
        words += [len(shape), id(dtypes[0][k]), OWN if k in given else WANTED, *shape]
    for o, dtype in zip(outputs, dtypes[1], strict=True):
        words += [len(o.shape), id(dtype), o.scalar, *o.shape]
    plan = np.array(words, np.int64)
    return _builtin(plan, (constants, dtypes))


class _Method(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


@functools.cache
def _method() -> _Method:
    for name in ("PyList_New", "PyLong_AsLongLong", "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread"):
        _llvm.name_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    _llvm.name_symbol("fnad_new_array", table[94] or 0)  # PyArray_NewFromDescr
    _llvm.name_symbol("fnad_return_array", table[76] or 0)  # PyArray_Return
    text = f"{sys.implementation.cache_tag} {object.__basicsize__} {TUPLE_ITEMS} {list.__basicsize__}"
    address = machine(NAME, text, lambda: str(importlib.import_module("fnad.kernels.codegen.emit_entry").print_entry()))
    method = _Method(b"program", address, 0x80, b"A compiled program of fnad.")  # METH_FASTCALL
    _prove(method)
    return method


def _builtin(plan: np.ndarray[Any, Any], keep: Any, method: _Method | None = None) -> Callable[..., list[Any] | None]:
    """A built-in function bound to a plan; it keeps alive what the plan points to."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    found = method or _method()
    made: Callable[..., list[Any] | None] = make(ctypes.addressof(found), plan, keep)
    return made


def _prove(method: _Method) -> None:
    """This interpreter and NumPy must lay out their objects as assumed; better to stop here than to read what is not there."""
    dtype = np.dtype(np.float32)
    keep: tuple[Any, ...] = ()
    head = [id(tuple), id(list), id(np.ndarray), id(None), 1, 0, id(keep) + TUPLE_ITEMS, 1, *NOTHING]
    words = [*head, 0, 2, id(dtype), WANTED, 2, 3, 1, id(dtype), False, 5]
    run = _builtin(np.array(words, np.int64), (keep, dtype), method)
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
