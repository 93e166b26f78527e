"""Native functions: in memory by name, on disk as machine code with a checksum."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import itertools
import pathlib
import re
from collections.abc import Callable
from typing import Any

from fnad import _fork, _llvm, _threads
from fnad._malloc import keep_pages
from fnad.kernels.codegen import cache, products
from fnad.kernels.codegen.callback import name_callback

_lock = _fork.lock(2)
_loaded: dict[str, int] = {}
_EVERY = 64  # programs written between two looks at the size of the cache
_writes = itertools.count(1)
statistics = {"compiled": 0, "loaded": 0}


def native(name: str, text: str, program: Any) -> int:
    """The address of a program's function `(arrays, sizes, literals, work)`, all of them addresses."""
    found = _loaded.get(name)
    if found is not None:
        return found
    keep_pages()
    with _lock:
        if name not in _loaded:
            for code in ("f32", "f64"):
                if f"gemm:{code}" in text:
                    _register_product(code)
            for kernel in sorted(set(re.findall(r"lapack:(\w+)", text))):
                _register_lapack(kernel)
            if "host" in text:
                name_callback()
            if "signals" in text:
                _register_pause()
            if "parts" in text:
                _threads.threads()
            before = statistics["compiled"]

            def printed() -> str:
                statistics["compiled"] += 1
                return str(importlib.import_module("fnad.kernels.codegen.emit").print_program(name, program))

            machine(name, "", printed, loops=True)
            statistics["loaded"] += statistics["compiled"] == before
        return _loaded[name]


def machine(name: str, detail: str, printed: Callable[[], str], loops: bool = False) -> int:
    """The address of the function `name` of a module, from memory, from the disk, or from what `printed` gives LLVM.

    The name, together with the detail, says what the module is; on disk that of the machine is added to it.
    """
    with _lock:
        if name not in _loaded:
            folder = cache.directory()
            path = None if folder is None else folder / f"{name}{hashlib.sha256(detail.encode()).hexdigest()[:8] if detail else ''}.o"
            code = None if path is None else cache.read(path)
            if code is None:
                code = _llvm.machine_code(printed(), loops)
                if path is not None:
                    _keep(path, code)
            _loaded[name] = _llvm.load(code, name)
        return _loaded[name]


def _keep(path: pathlib.Path, code: bytes) -> None:
    try:
        cache.write_once(path, code)
        if next(_writes) % _EVERY == 0:
            cache.evict()
    except OSError:  # a full or vanished disk costs time only
        pass


def _register_lapack(kernel: str) -> None:
    name, code = kernel.rsplit("_", 1)
    printer = importlib.import_module("fnad.kernels.codegen.emit_lapack")
    products.register_lapack(printer.ROUTINES[name], code)
    symbol = f"fnad_{kernel}"
    _llvm.name_symbol(symbol, machine(symbol, "", lambda: str(printer.print_lapack(symbol, name, code))))


_PYTHON_API = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread")


def _to_python(name: str, printer: str) -> int:
    """The address of a function of `emit_pause`."""
    for function in _PYTHON_API:
        _llvm.name_symbol(function, ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value or 0)
    return machine(name, "", lambda: str(getattr(importlib.import_module("fnad.kernels.codegen.emit_pause"), printer)(name)))


def _register_pause() -> None:
    _llvm.name_symbol("fnad_pause", _to_python("fnad_pause", "print_pause"))


@functools.cache
def step() -> Any:
    """A function `(code, arrays, sizes, literals, work)` that runs a part of a program; what a signal's handler raises, it raises."""
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(_to_python("fnad_step", "print_step"))


def _register_product(code: str) -> None:
    name = f"fnad_gemm_{code}"
    if products.BY_BLAS:
        products.register_blas(code)
    _llvm.name_symbol(name, machine(name, "", lambda: products.printed(name, code)))
