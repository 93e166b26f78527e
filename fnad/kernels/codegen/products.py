"""The matrix product that programs call: our own kernel where we have measured it, elsewhere SciPy's BLAS."""

from __future__ import annotations

import importlib
import platform

from fnad import _llvm, _scipy

_LETTERS = {"f32": "s", "f64": "d"}
BY_BLAS = platform.machine().lower() not in ("x86_64", "amd64")
"""On x86-64, OpenBLAS is as fast at best, and half as fast where there is AVX-512."""


def printed(name: str, code: str) -> str:
    """The module of the function `fnad_gemm_<code>`."""
    if BY_BLAS:
        return str(importlib.import_module("fnad.kernels.codegen.emit_blas").print_gemm(name, code))
    matrix = importlib.import_module("fnad.kernels.codegen.emit_matrix")
    return str(matrix.print_gemm(name, code, matrix.tile_for(_llvm.host()[1])))


def register_blas(code: str) -> None:
    """Let native code call BLAS as `fnad_blas_<code>`."""
    _llvm.name_symbol(f"fnad_blas_{code}", _scipy.address("cython_blas", _LETTERS[code] + "gemm"))


def register_lapack(routine: str, code: str) -> None:
    """Let native code call a routine of LAPACK (`gesv`, ...) as `fnad_<routine>_<code>`."""
    _llvm.name_symbol(f"fnad_{routine}_{code}", _scipy.address("cython_lapack", _LETTERS[code] + routine))
