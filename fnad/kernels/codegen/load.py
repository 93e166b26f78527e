"""Native functions of programs: in memory by name, on disk by numba's own cache.

A program is compiled through a generated module, a real file named by the hash of the program's text. Its one function
calls an intrinsic that prints the program; numba caches the machine code beside the file, so a later process finds it
without printing anything.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import pathlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from fnad import _numba, _scipy
from fnad.kernels.codegen import cache

_SIGNATURE = "int64(int64,int64,int64,int64)"
_SOURCE = '''"""A native program of fnad."""

from fnad.kernels.codegen.load import printer

body = printer("{name}")


def {name}(arrays, sizes, literals, work):
    return body(arrays, sizes, literals, work)
'''

_lock = threading.RLock()
_loaded: dict[str, Callable[..., Any]] = {}
_pending: dict[str, Any] = {}
_EVERY = 64  # programs written between two looks at the size of the cache
_writes = itertools.count(1)
statistics = {"compiled": 0, "loaded": 0}


def native(name: str, text: str, program: Any) -> Callable[..., Any]:
    """The compiled function of a program: `(arrays, sizes, literals, work)`, all addresses."""
    found = _loaded.get(name)
    if found is not None:
        return found
    with _lock:
        if name not in _loaded:
            if "gemm" in text:
                _register_blas()
            if "parts" in text:
                _numba.threads()
            _pending[name] = program
            try:
                _loaded[name] = _load(name)
            finally:
                del _pending[name]
        return _loaded[name]


def _load(name: str) -> Callable[..., Any]:
    before = statistics["compiled"]
    made = compiled(name, _SOURCE.format(name=name), _SIGNATURE)
    statistics["loaded"] += statistics["compiled"] == before
    return made


def compiled(name: str, source: str, signature: str) -> Callable[..., Any]:
    """The native function of a generated module, from the disk cache where there is one."""
    folder = cache.directory()
    if folder is not None:
        try:
            path = folder / f"{name}.py"
            if not path.exists():
                cache.write_once(path, source)
                if next(_writes) % _EVERY == 0:
                    cache.evict()
            return _numba.compile_for(_module(name, path), signature, cache=True)
        except Exception:  # a damaged, full or vanished cache costs time only; a real error comes again below
            pass
    names: dict[str, Any] = {}
    exec(source, names)
    return _numba.compile_for(names[name], signature, cache=False)


def _module(name: str, path: pathlib.Path) -> Callable[..., Any]:
    module_name = f"_fnad_programs.{name}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # numba looks it up there when it reads its cache
    spec.loader.exec_module(module)
    return getattr(module, name)


def printer(name: str) -> Any:
    """The intrinsic that prints a pending program into the function which calls it."""

    def generate(builder: Any, arguments: Any) -> Any:
        statistics["compiled"] += 1
        return llvm_printer().print_program(builder, arguments, name, _pending[name])

    return _numba.word_intrinsic(4, generate)


def llvm_printer() -> Any:
    """The module that prints LLVM: it needs llvmlite, so it is imported when something is compiled for the first time."""
    return importlib.import_module("fnad.kernels.codegen.emit")


def _register_blas() -> None:
    for short, long in (("sgemm", "fnad_sgemm"), ("dgemm", "fnad_dgemm")):
        _numba.name_symbol(long, _scipy.blas_address(short))
