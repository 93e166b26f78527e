"""Threads for large loops: numba's pool on top of TBB, found without importing the rest of numba."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from typing import Any

from fnad import _llvm


@functools.cache
def threads() -> int:
    """How many threads large loops may use: as many as numba would, if TBB is there to run them; otherwise one.

    From then on native code finds the thread pool under the name `fnad_parallel_for`.
    """
    try:
        _find_tbb()
        pool = extension("numba", "np.ufunc.tbbpool")
        wanted = _wanted()
        ctypes.CFUNCTYPE(None, ctypes.c_int)(pool.launch_threads)(wanted)
        _llvm.name_symbol("fnad_parallel_for", pool.parallel_for)
    except (ImportError, OSError, AttributeError):
        _llvm.name_symbol("fnad_parallel_for", 1)  # never called: programs look at the number of threads first
        return 1
    return wanted


def _wanted() -> int:
    """What numba's configuration says: `NUMBA_NUM_THREADS`, else the processors that this process may use."""
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return int(config.NUMBA_NUM_THREADS)
    chosen = os.environ.get("NUMBA_NUM_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _find_tbb() -> None:
    """pip puts TBB where the loader does not look."""
    for name in ("lib/libtbb.so.12", "Library/bin/tbb12.dll", "lib/libtbb.12.dylib"):
        path = pathlib.Path(sys.prefix) / name
        if path.exists():
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            return


@functools.cache
def extension(package: str, name: str) -> Any:
    """An extension module of a package, loaded by itself: importing all that surrounds it takes many times longer."""
    full = f"{package}.{name}"
    if full in sys.modules:
        return sys.modules[full]
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise ImportError(f"{package} is not installed")
    folder = pathlib.Path(found.submodule_search_locations[0]).joinpath(*name.split(".")[:-1])
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"{name.split('.')[-1]}{suffix}"
        if path.exists():
            loader = importlib.machinery.ExtensionFileLoader(full, str(path))
            spec = importlib.util.spec_from_file_location(full, path, loader=loader)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            return module
    return importlib.import_module(full)
