"""Equations with a known structure, functions of matrices, and matrices made of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError, UnsupportedError
from fnad.numpy.indexing import as_array
from fnad.primitives import factors as prims
from fnad.primitives import linalg as square_prims
from fnad.primitives import shape as shape_prims
from fnad.scipy.linalg._arguments import adjoint, as_given, checked, columns, real_square, square, transposed
from fnad.scipy.linalg.factors import cho_factor, cho_solve, triangular

# -- equations ----------------------------------------------------------------------------------------------------


_STRUCTURES = {
    "diagonal": "diagonal", "tridiagonal": "tridiagonal", "banded": "general", "general": "general", "gen": "general",
    "upper triangular": "upper", "lower triangular": "lower", "symmetric": "symmetric", "sym": "symmetric", "hermitian": "hermitian",
    "her": "hermitian", "positive definite": "positive", "pos": "positive",
}  # fmt: skip


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True,
    assume_a: Any = None, transposed: bool = False,
) -> Any:  # fmt: skip
    """The x with `a @ x = b`, with what is known of `a`: `scipy.linalg.solve`.

    Args:
        a: Matrices, (..., n, n).
        b: A vector (n,) or matrices (..., n, m) whose leading axes broadcast with those of `a`.
        lower: Which triangle is read of a symmetric, Hermitian or positive definite matrix.
        overwrite_a: Has no effect.
        overwrite_b: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.
        assume_a: SciPy's names of structures: "gen", "diagonal", "tridiagonal", "banded", "upper triangular",
            "lower triangular", "sym", "her", "pos". None is "gen", whatever `a` looks like.
        transposed: Whether to solve `a.T @ x = b`.

    Returns:
        An array of the shape of `b`, with the leading axes of both. The gradient by `a` is 0 in what a structure leaves out,
        and symmetric where `a` is taken for symmetric.

    Raises:
        ArgumentError: the structure is not known.
        ShapeError: the shapes do not fit.
        LinAlgError: a matrix is singular, or not positive definite.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.scipy.linalg import solve
        >>> b = np.array([1.0, 2.0])
        >>> solve(np.diag([2.0, 4.0]), b, assume_a="pos")
        array([0.5, 0.5])
        >>> fnad.grad(lambda a: np.sum(solve(a, b, assume_a="diagonal")))(np.diag([2.0, 4.0]))
        array([[-0.25 ,  0.   ],
               [ 0.   , -0.125]])
    """
    structure = "general" if assume_a is None else _STRUCTURES.get(assume_a)
    if structure is None:
        raise ArgumentError(f"{assume_a} is not a recognized matrix structure", got={"assume_a": assume_a}, fix=", ".join(_STRUCTURES))
    a = square(a, check_finite)
    b, vector = columns(b, a, check_finite)
    if transposed and a.dtype.kind == "c":
        raise NotImplementedError("scipy.linalg.solve can currently not solve a^T x = b or a^H x = b for complex matrices.")
    return as_given(_solved(a, b, structure, lower, int(transposed)), vector)


def _mirrored(a: Any, lower: bool, hermitian: bool) -> Any:
    """The symmetric matrix that one triangle stands for; the gradient is symmetric, as if both were read."""
    turn = adjoint if hermitian else transposed
    half = prims.triangle(a, lower)
    value = shape_prims.stop(half + turn(prims.triangle(half, lower, unit=True)))
    both = 0.5 * (a + turn(a))
    return value + (both - shape_prims.stop(both))


def _solved(a: Any, b: Any, structure: str, lower: bool, trans: int) -> Any:
    if structure == "positive":
        return cho_solve(cho_factor(a, lower, check_finite=False), b, check_finite=False)
    if structure in ("upper", "lower"):
        return triangular(a, b, structure == "lower", trans=trans)
    if structure == "diagonal":
        return b / np.diagonal(a, 0, -2, -1)[..., None]
    if structure in ("symmetric", "hermitian"):
        a = _mirrored(a, lower, structure == "hermitian")
    elif structure == "tridiagonal":
        a = np.triu(np.tril(a, 1), -1)
    return square_prims.solve(transposed(a) if trans else a, b)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False) -> Any:
    """The inverse of square matrices: `scipy.linalg.inv`.

    Args:
        a: Matrices, (..., n, n).
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.
        assume_a: As in `solve`.
        lower: As in `solve`.

    Returns:
        Matrices of the shape of `a`.

    Raises:
        LinAlgError: a matrix is singular.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import inv
        >>> inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    if assume_a is None:
        return square_prims.inv(square(a, check_finite))
    a = square(a, check_finite)
    return solve(a, np.eye(shape_of(a)[-1], dtype=a.dtype), lower, check_finite=False, assume_a=assume_a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant of square matrices, whose gradient is right at singular ones too: `scipy.linalg.det`.

    Args:
        a: Matrices, (..., n, n).
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        An array of shape (...).

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import det
        >>> det(np.array([[0.0, 1.0], [1.0, 0.0]]))
        np.float64(-1.0)
    """
    return square_prims.det(square(a, check_finite))


# -- functions of matrices -----------------------------------------------------------------------------------------


def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    type: int = 1, check_finite: bool = True, subset_by_index: Any = None, subset_by_value: Any = None, driver: Any = None,
) -> Any:  # fmt: skip
    """Eigenvalues (rising) and eigenvectors (columns) of real symmetric matrices: `scipy.linalg.eigh`.

    Args:
        a: Real matrices, (..., n, n), taken for symmetric: only one triangle is read, and the gradient is symmetric.
        b: Must be None.
        lower: Which triangle.
        eigvals_only: Whether to return the eigenvalues alone. Their gradient holds where some are equal.
        overwrite_a: Has no effect.
        overwrite_b: Has no effect.
        type: Must be 1.
        check_finite: Whether nan and infinity are refused where values are known.
        subset_by_index: Must be None: take a part of the result.
        subset_by_value: Must be None.
        driver: Has no effect.

    Returns:
        Eigenvalues (..., n), and unless `eigvals_only` eigenvectors (..., n, n).

    Raises:
        UnsupportedError: a generalised problem, or a subset.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import eigh
        >>> eigh(np.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
        array([1., 2.])
    """
    if b is not None or type != 1 or subset_by_index is not None or subset_by_value is not None:
        raise UnsupportedError(
            "fnad.scipy.linalg.eigh solves `a @ v = v * w` for all w",
            fix="for b, take its Cholesky factor l and solve inv(l) @ a @ inv(l).T; take subsets of the result",
        )
    a = real_square(a, check_finite, "eigh")
    w, v = square_prims.eigh(a if lower else transposed(a))
    return w if eigvals_only else (w, v)


def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Singular values of real matrices, falling; their gradient holds where some are equal: `scipy.linalg.svdvals`.

    Args:
        a: Real matrices, (..., m, n).
        overwrite_a: Has no effect.
        check_finite: Whether nan and infinity are refused where values are known.

    Returns:
        An array of shape (..., min(m, n)).

    Raises:
        DTypeError: a traced matrix is complex.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import svdvals
        >>> svdvals(np.diag([2.0, 4.0]))
        array([4., 2.])
    """
    return np.linalg.svdvals(checked(a, check_finite))


def expm(A: Any) -> Any:
    """The matrix exponential: `scipy.linalg.expm`.

    Args:
        A: Matrices, (..., n, n).

    Returns:
        Matrices of the shape of `A`. The derivative is exact: it comes from the exponential of a block matrix of twice the size.

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.scipy.linalg import expm
        >>> generator = np.array([[0.0, -1.0], [1.0, 0.0]])
        >>> fnad.grad(lambda t: expm(t * generator)[1, 0])(0.0)
        np.float64(1.0)
    """
    return prims.expm(square(A, False))


# -- matrices made of parts ----------------------------------------------------------------------------------------


def block_diag(*arrs: Any) -> Any:
    """A matrix with the given ones along its diagonal: `scipy.linalg.block_diag`.

    Args:
        arrs: Matrices; vectors are rows, and scalars matrices of one entry.

    Returns:
        A matrix.

    Raises:
        ShapeError: an array has more than two axes.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import block_diag
        >>> block_diag([[1.0, 2.0]], 3.0)
        array([[1., 2., 0.],
               [0., 0., 3.]])
    """
    parts = [np.atleast_2d(as_array(a)) for a in arrs or (np.zeros((1, 0)),)]
    for k, a in enumerate(parts):
        if len(shape_of(a)) != 2:
            raise ShapeError("block_diag: arrays must have at most two axes", got={f"array {k}": aval_of(a)})
    width, begin, rows = sum(shape_of(a)[1] for a in parts), 0, []
    for a in parts:
        columns = shape_of(a)[1]
        rows.append(np.pad(a, ((0, 0), (begin, width - begin - columns))))
        begin += columns
    return np.concatenate(rows, axis=0)


def toeplitz(c: Any, r: Any = None) -> Any:
    """A matrix that is constant along each diagonal: `scipy.linalg.toeplitz`.

    Args:
        c: The first column.
        r: The first row, whose first entry does not count; None is the conjugate of `c`.

    Returns:
        A matrix of shape (c.size, r.size).

    Raises:
        ShapeError: a column or row is no vector.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.linalg import toeplitz
        >>> toeplitz([1.0, 2.0, 3.0], [1.0, 4.0])
        array([[1., 4.],
               [2., 1.],
               [3., 2.]])
    """
    c = as_array(c)
    r = np.conjugate(c) if r is None else as_array(r)
    for name, x in (("c", c), ("r", r)):
        if len(shape_of(x)) != 1:
            raise ShapeError("toeplitz: the first column and the first row must be vectors", got={name: aval_of(x)})
    n, m = shape_of(c)[0], shape_of(r)[0]
    entries = np.concatenate([c[::-1], r[1:]])
    return np.take(entries, np.arange(n - 1, -1, -1)[:, None] + np.arange(m))
