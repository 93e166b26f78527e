"""np.linalg on decompositions of general matrices: singular values, QR, eigenvalues, least squares, ranks; and tensor equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, UnsupportedError
from fnad.numpy.elementwise import plain
from fnad.numpy.indexing import known
from fnad.numpy.linalg import inexact, need_square
from fnad.primitives import decompositions as prims
from fnad.primitives import linalg as square_prims

_NO = np._NoValue
_SVD_RESULT = type(np.linalg.svd(np.eye(1)))
_QR_RESULT = type(np.linalg.qr(np.eye(1)))
_EIG_RESULT = type(np.linalg.eig(np.eye(1)))


def _real_matrix(a: Any, name: str) -> Any:
    a = inexact(a)
    if len(shape_of(a)) < 2:
        raise np.linalg.LinAlgError(f"{len(shape_of(a))}-dimensional array given. Array must be at least two-dimensional")
    if a.dtype.kind == "c":
        raise DTypeError(
            f"np.linalg.{name} of a traced complex matrix has no rule",
            got={"matrix": aval_of(a)},
            fix="use the real matrix [[re, -im], [im, re]] of twice the size",
        )
    return a


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Of real matrices; of one that is not square only the thin form. The gradient of singular values holds where some are equal;
    that of the vectors does not mix those of equal ones."""
    a = _real_matrix(a, "svd")
    m, n = shape_of(a)[-2:]
    if hermitian:
        return _svd_of_symmetric(a, compute_uv)
    if compute_uv and full_matrices and m != n:
        raise UnsupportedError(
            "np.linalg.svd: the vectors that full_matrices adds are arbitrary, so they have no derivative",
            got={"matrix": aval_of(a)},
            fix="pass full_matrices=False",
        )
    u, s, vt = prims.svd(a)
    return _SVD_RESULT(u, s, vt) if compute_uv else s


def _svd_of_symmetric(a: Any, compute_uv: bool) -> Any:
    w, v = np.linalg.eigh(a)
    order = np.argsort(-np.abs(plain(w)), axis=-1)
    w = np.take_along_axis(w, order, axis=-1)
    if not compute_uv:
        return np.abs(w)
    u = np.take_along_axis(v, order[..., None, :], axis=-1)
    return _SVD_RESULT(u, np.abs(w), np.matrix_transpose(u * np.copysign(1.0, plain(w))[..., None, :]))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """Singular values, falling; their gradient holds where some are equal."""
    return svd(x, compute_uv=False)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Of real matrices whose first min(m, n) columns are linearly independent; modes "reduced" and "r"."""
    a = _real_matrix(a, "qr")
    m, n = shape_of(a)[-2:]
    if mode not in ("reduced", "r", "complete", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    if mode == "raw" or (mode == "complete" and m > n):
        raise UnsupportedError(
            f"np.linalg.qr has no rule for mode={mode!r} of a traced matrix", got={"matrix": aval_of(a)}, fix="use mode='reduced'"
        )
    if m >= n:
        q, r = prims.qr(a)
    else:
        q, left = prims.qr(a[..., :m])
        r = np.concatenate([left, np.matmul(np.matrix_transpose(q), a[..., m:])], axis=-1)
    return r if mode == "r" else _QR_RESULT(q, r)


# -- eigenvalues ---------------------------------------------------------------------------------------------------


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors: complex ones, but as in NumPy real ones of a real matrix if all are and their values are known
    (not while recording, not under `vmap`). Equal eigenvalues do not mix in the derivative of the vectors."""
    a = inexact(a)
    need_square(a)
    w, v = prims.eig(a)
    values = known(w)
    if a.dtype.kind != "c" and values is not None and np.all(values.imag == 0):
        w, v = np.real(w), np.real(v)
    return _EIG_RESULT(w, v)


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """As those of `eig`; simple eigenvalues have a derivative, others none."""
    return eig(a)[0]


# -- least squares -------------------------------------------------------------------------------------------------


def _pseudo_inverse(a: Any, cutoff: float) -> Any:
    *lead, m, n = shape_of(a)
    if not m or not n:
        return np.zeros((*lead, n, m), a.dtype)
    if m < n:
        return np.matrix_transpose(prims.pinv(np.matrix_transpose(a), cutoff=cutoff))
    return prims.pinv(a, cutoff=cutoff)


def _cutoff(value: Any, name: str) -> float:
    if isinstance(value, Tracer) or np.ndim(value):
        raise ArgumentError(f"np.linalg.{name}: the cutoff of singular values must be a plain number", got={"cutoff": repr(value)})
    return float(value)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _NO) -> Any:
    """Of real matrices. Its gradient is right wherever the rank does not change."""
    a = _real_matrix(a, "pinv")
    if rcond is not None and rtol is not _NO:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is _NO else max(shape_of(a)[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    return _pseudo_inverse(a, _cutoff(rcond, "pinv"))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The shortest of the least-squares solutions. While recording, the matrix is taken for one of full rank when it comes to whether
    there are residuals."""
    a, b = _real_matrix(a, "lstsq"), inexact(b)
    dtype = np.result_type(a.dtype, b.dtype)
    if len(shape_of(a)) != 2 or len(shape_of(b)) not in (1, 2):
        raise np.linalg.LinAlgError("np.linalg.lstsq takes one matrix and a vector or matrix")
    m, n = shape_of(a)
    if shape_of(b)[0] != m:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    cutoff = float(np.finfo(dtype).eps) * max(m, n) if rcond is None else _cutoff(rcond, "lstsq")
    a, b = np.astype(a, dtype), np.astype(b, dtype)
    s = svdvals(a)
    x = np.matmul(_pseudo_inverse(a, max(cutoff, 0.0)), b)
    rank = np.sum(plain(s) > cutoff * np.max(plain(s), axis=-1, initial=0.0, keepdims=True), axis=-1)
    given = known(rank)
    full = m > n and (given is None or given == n)
    columns = b if len(shape_of(b)) == 2 else b[:, None]
    fitted = np.matmul(a, x if len(shape_of(b)) == 2 else x[:, None])
    residuals = np.sum(np.square(columns - fitted), axis=0) if full else np.zeros(0, dtype)
    return x, residuals, rank if given is None else np.int32(given), s


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """A count of singular values: constant."""
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = plain(A)
    shape = shape_of(A)
    if len(shape) < 2:
        found = np.astype(np.logical_not(np.all(A == 0)), np.int64)
        return int(found) if known(found) is not None else found
    s = np.linalg.svd(A, compute_uv=False, hermitian=hermitian)
    if tol is None:
        rtol = max(shape[-2:]) * np.finfo(aval_of(s).dtype).eps if rtol is None else np.asarray(rtol)[..., None]
        tol = np.max(s, axis=-1, keepdims=True, initial=0) * rtol
    else:
        tol = np.asarray(tol)[..., None]
    return np.count_nonzero(s > tol, axis=-1)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition number in any norm."""
    x = inexact(x)
    if 0 in shape_of(x)[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        s = svdvals(x)
        ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        need_square(x)
        ratio = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(square_prims.inv(x), p, axis=(-2, -1))
    lost = np.isnan(ratio) & np.logical_not(np.any(np.isnan(x), axis=(-2, -1)))
    return np.where(lost, math.inf, ratio)


# -- tensors -------------------------------------------------------------------------------------------------------


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    a, b = inexact(a), inexact(b)
    order = list(range(len(shape_of(a))))
    for k in axes or ():
        order.remove(k)
        order.append(k)
    a = np.transpose(a, order)
    shape = shape_of(a)[len(shape_of(b)) :]
    n = math.prod(shape)
    if a.size != n * n:
        raise np.linalg.LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return np.reshape(np.linalg.solve(np.reshape(a, (n, n)), np.ravel(b)), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    a = inexact(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    first, last = shape_of(a)[:ind], shape_of(a)[ind:]
    return np.reshape(np.linalg.inv(np.reshape(a, (math.prod(last), -1))), (*last, *first))
