"""Decompositions, and what is made of them; more products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fnad.torch._call import lift
from fnad.torch._linalg import baddbmm, bmm, dot, kron, matmul, mv, outer, slogdet
from fnad.torch._operators import mul
from fnad.torch._reductions import bincount, nanmean, nansum
from fnad.torch._tensor import method


class QR(NamedTuple):
    Q: Any
    R: Any


class SVD(NamedTuple):
    U: Any
    S: Any
    Vh: Any


class OldSVD(NamedTuple):
    U: Any
    S: Any
    V: Any


class Eig(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class Lstsq(NamedTuple):
    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


_qr, _svd = lift(np.linalg.qr, "qr"), lift(np.linalg.svd, "svd")


def linalg_qr(A: Any, mode: str = "reduced") -> QR:
    """A = Q R, with orthonormal columns in Q and an upper triangle R."""
    return QR(*_qr(A, mode))


def linalg_svd(A: Any, full_matrices: bool = True) -> SVD:
    """A = U diag(S) Vh, with falling singular values."""
    return SVD(*_svd(A, full_matrices))


@method()
def qr(input: Any, some: bool = True) -> QR:
    """See `linalg.qr`."""
    return linalg_qr(input, "reduced" if some else "complete")


@method()
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """A = U diag(S) V.T: see `linalg.svd`, which returns the transpose of V."""
    u, s, vh = _svd(input, not some)
    return OldSVD(u, s, vh.mT)


svdvals = lift(lambda a: np.linalg.svd(a, compute_uv=False), "svdvals")
pinv = lift(np.linalg.pinv, "pinv")
cond, matrix_rank = lift(np.linalg.cond, "cond"), lift(np.linalg.matrix_rank, "matrix_rank")
eigvals, tensorsolve, tensorinv = (lift(getattr(np.linalg, n), n) for n in ("eigvals", "tensorsolve", "tensorinv"))


def eig(A: Any) -> Eig:
    """Eigenvalues and eigenvectors, which are complex."""
    return Eig(*lift(np.linalg.eig, "eig")(A))


def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X for which A X is closest to B."""
    return Lstsq(*lift(np.linalg.lstsq, "lstsq")(A, B, rcond))


@method()
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse."""
    return pinv(input, rcond)


@method()
def logdet(input: Any) -> Any:
    """The logarithm of the determinant; nan where that is negative."""
    sign, value = slogdet(input)
    return value.masked_fill(sign < 0, float("nan"))


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Sums of products along an axis."""
    return (x * y).sum(dim)


def vander(x: Any, N: int | None = None) -> Any:
    """Powers of entries, rising: (..., n) -> (..., n, N)."""
    return x.unsqueeze(-1) ** x.new_tensor(np.arange(x._data.shape[-1] if N is None else N))


def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The X for which A X = B (or X A = B), with a triangle A."""
    triangle = A.triu() if upper else A.tril()
    if unitriangular:
        triangle = triangle - triangle.diagonal(0, -2, -1).diag_embed() + A.new_tensor(np.eye(A._data.shape[-1]))
    solve = lift(np.linalg.solve, "solve_triangular")
    return solve(triangle, B) if left else solve(triangle.mT, B.mT).mT


@method()
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat @ vec)."""
    return mul(input, beta) + mul(mv(mat, vec), alpha)


@method()
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (vec1 outer vec2)."""
    return mul(input, beta) + mul(outer(vec1, vec2), alpha)


@method()
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * the sum of all batch1[i] @ batch2[i]."""
    return mul(input, beta) + mul(bmm(batch1, batch2).sum(0), alpha)


@method()
def adjoint(input: Any) -> Any:
    """The conjugate transpose."""
    return input.mT.conj() if input._data.dtype.kind == "c" else input.mT


ger, vdot = method("ger")(outer), method("vdot")(lambda self, other: dot(self.conj() if self.is_complex() else self, other))
method("mH")(property(adjoint))
method("H")(property(adjoint))
for _name, _f in (
    ("kron", kron), ("slogdet", slogdet), ("bincount", bincount), ("nanmean", nanmean), ("nansum", nansum), ("baddbmm", baddbmm),
):  # fmt: skip
    method(_name)(_f)


def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices."""
    out = matrices[0]
    for m in matrices[1:]:
        out = matmul(out, m)
    return out


__all__ = ["addbmm", "addmv", "addr", "adjoint", "chain_matmul", "ger", "logdet", "pinverse", "qr", "svd", "vander", "vdot"]
